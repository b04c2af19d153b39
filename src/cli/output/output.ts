/**
 * How results, problems and notices are printed. chalk and cli-table3 live here alone and load only when something
 * is drawn with them, so that JSON pays for neither. Nothing here knows an operation.
 */
import { FORMATS, type Format } from '../../config.js'
import { CofferError, type Problem } from '../../errors.js'
import { display, displayLines, fold, indent, measureUpTo, measureWidth, toJson } from './display.js'
import {
  describeUnknown,
  isObject,
  neutralize,
  pickFields,
  readField,
  toCsvCell,
  toCsvLine,
} from './fields.js'
import { describePage, drawOne, GAP, namesOf, planTable, type TablePlan, textOf } from './layout.js'
import { collect, isList, isStream, itemsOf, sourceOf } from './result.js'
import { isTerminal, type OutputStream, type Terminal, write } from './terminal.js'

export { FORMATS, type Format }

/**
 * `columns`: what a table or CSV of several things shows; empty means every field there is. `fields`: what `--fields`
 * named, instead of the columns and, in JSON, instead of everything. `hints`: what to say when a list is empty, or
 * when an operation that answers nothing is done.
 */
export interface PrintOptions {
  format: Format
  columns?: readonly string[]
  fields?: readonly string[] | undefined
  hints?: { empty?: string; done?: string }
  /** Fields that there may be though nothing has them now; true: every one in `fields` was checked. */
  known?: true | readonly string[]
}

/**
 * The format asked for, else a table on a terminal and JSON everywhere else.
 * @throws CofferError `usage` when there is no such format.
 */
export function chooseFormat(terminal: Terminal, asked: string | undefined): Format {
  if (asked === undefined) return isTerminal(terminal.stdout) ? 'table' : 'json'
  const format = FORMATS.find((known) => known === asked)
  if (format === undefined) throw new CofferError('usage', `--output takes ${FORMATS.join(', ')}.`)
  return format
}

/**
 * Prints what an operation answered: one object, a list, an array, an async iterable of items (written as they come,
 * but for a table), any other JSON value, or undefined (no output; a notice on a terminal). Ends quietly when the
 * reader goes away. JSON is indented on a terminal and one line elsewhere; `ndjson`, `id` and `csv` are one line an item.
 * @throws CofferError `usage` when ids are asked of something that has none.
 */
export async function printResult(terminal: Terminal, result: unknown, options: PrintOptions): Promise<void> {
  if (result === undefined) return printDone(terminal, options)
  const missing = isStream(result) ? [] : findMissing(terminal, itemsOf(result), options)
  await terminal.letGo?.()
  if (options.format === 'json') await printJson(terminal, result, options)
  else if (options.format === 'table') await printTable(terminal, result, options)
  else if (options.format === 'csv') await printCsv(terminal, result, options)
  else await printLines(terminal, result, options)
  if (missing.length > 0) await printNotice(terminal, `Nothing here has the field ${missing.join(', ')}.`)
}

async function printDone(terminal: Terminal, { hints }: PrintOptions): Promise<void> {
  if (isTerminal(terminal.stderr)) await printNotice(terminal, hints?.done ?? 'Done.')
}

/** What none of the items has. @throws CofferError `usage` for what is no field, where the command line asks for it */
function findMissing(
  { mustHaveFields }: Terminal,
  items: readonly unknown[],
  { fields = [], known = [] }: PrintOptions,
): string[] {
  if (items.length === 0) return []
  const missing = fields.filter((path) => valuesAt(items, path).length === 0)
  const wrong = missing.find((path) => known !== true && !known.includes(path.split('.', 1)[0]!))
  if (wrong === undefined || !mustHaveFields) return missing
  const parents = wrong.split('.').map((_, level, names) => names.slice(0, level).join('.'))
  const level = Math.max(
    0,
    parents.findLastIndex((path) => path !== '' && valuesAt(items, path).length > 0),
  )
  const there = level === 0 ? items : valuesAt(items, parents[level]!).flat()
  throw new CofferError('usage', describeUnknown(wrong, level, namesOf(there)))
}

function valuesAt(items: readonly unknown[], path: string): unknown[] {
  return items.map((item) => readField(item, path)).filter((value) => value !== undefined)
}

function columnsOf({ fields, columns = [] }: PrintOptions): readonly string[] {
  return fields ?? columns
}

// ---------------------------------------------------------------- JSON and lines

async function printJson(terminal: Terminal, result: unknown, { fields }: PrintOptions): Promise<void> {
  const { stdout } = terminal
  const spaces = isTerminal(stdout) ? 2 : 0
  const pick = (value: unknown) => (fields ? pickFields(value, fields) : value)
  if (!isStream(result)) {
    const picked = isList(result) ? { ...result, data: pick(result.data) } : pick(result)
    await write(stdout, `${toJson(picked, spaces)}\n`)
    return
  }
  let before = '['
  for await (const item of result) {
    if (!(await write(stdout, `${before}\n${indent(toJson(pick(item), spaces), spaces)}`))) return
    before = ','
  }
  await write(stdout, before === '[' ? '[]\n' : '\n]\n')
}

async function printLines(terminal: Terminal, result: unknown, options: PrintOptions): Promise<void> {
  const { stdout } = terminal
  const { format, fields } = options
  const show = isTerminal(stdout) ? display : String
  for await (const item of sourceOf(result)) {
    const line = format === 'id' ? show(idOf(item)) : toJson(fields ? pickFields(item, fields) : item)
    if (!(await write(stdout, `${line}\n`))) return
  }
}

async function printCsv(terminal: Terminal, result: unknown, options: PrintOptions): Promise<void> {
  const { stdout } = terminal
  const asked = columnsOf(options)
  // Without columns, only all of the items can say which there are.
  const all = asked.length > 0 ? undefined : await collect(result)
  const paths = all === undefined ? asked : namesOf(all)
  const show = isTerminal(stdout) ? display : String
  if (!(await write(stdout, `${show(toCsvLine(paths.map(neutralize)))}\n`))) return
  for await (const item of all ?? sourceOf(result)) {
    const line = toCsvLine(paths.map((path) => toCsvCell(readField(item, path))))
    if (!(await write(stdout, `${show(line)}\n`))) return
  }
}

function idOf(item: unknown): string {
  const id = typeof item === 'string' ? item : readField(item, 'id')
  if (typeof id === 'string') return id
  throw new CofferError('usage', 'These results have no id. Choose another --output, such as json.')
}

// ---------------------------------------------------------------- tables

async function printTable(terminal: Terminal, result: unknown, options: PrintOptions): Promise<void> {
  const paint = await loadPaint(terminal.colour.stdout)
  const width = widthOf(terminal.stdout)
  const items = await collect(result)
  const isOne = !isStream(result) && !isList(result) && !Array.isArray(result)
  const texts = isOne
    ? [drawOne(result, options.fields, width, paint.bold)]
    : drawMany(items, columnsOf(options), width, paint)
  for await (const text of texts) if (!(await write(terminal.stdout, text))) return
  if (isList(result)) await printNotice(terminal, describePage(result, options.hints?.empty))
  else if (items.length === 0) await printNotice(terminal, options.hints?.empty ?? 'Nothing found.')
}

/** Text that goes to a file or a pipe is not cut. */
function widthOf(stream: OutputStream): number {
  return isTerminal(stream) && stream.columns ? stream.columns : Number.POSITIVE_INFINITY
}

/** Several things, line by line: a table when every column can be wide enough to be of use, else one after another. */
async function* drawMany(
  items: readonly unknown[],
  asked: readonly string[],
  width: number,
  paint: Paint,
): AsyncGenerator<string> {
  if (items.length === 0) return
  const columns = asked.length > 0 ? asked : namesOf(items)
  const isPlain = !items.some(isObject)
  const plan = isPlain ? undefined : planTable(items, columns, width)
  if (plan !== undefined) yield* drawTable(plan, paint)
  else
    for (const [at, item] of items.entries())
      yield isPlain ? `${textOf(item)}\n` : (at === 0 ? '' : '\n') + drawOne(item, columns, width, paint.bold)
}

/** Stands in for one column of text; from the private use area, and never printed. */
const STAND_IN = '\ue000'

/**
 * Columns side by side, without rules, so that the output of a terminal can be searched and pasted. cli-table3
 * measures by an old Unicode (a Thai or Hindi name would shift its row), so it lays out stand-ins of the right width,
 * and the cells take their places in reading order.
 */
async function* drawTable({ heads, rows, widths }: TablePlan, paint: Paint): AsyncGenerator<string> {
  const { default: Table } = await import('cli-table3')
  const cells = [...heads.map((head) => paint.bold(head)), ...rows.flat()]
    .filter((cell) => cell !== '')
    .values()
  const all = [heads, ...rows]
  for (let at = 0; at < all.length; at += ROWS_AT_ONCE) {
    const table = new Table({
      chars: NO_RULES,
      style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
      colWidths: widths,
    })
    const standIns = all.slice(at, at + ROWS_AT_ONCE)
    table.push(...standIns.map((row) => row.map((cell, column) => toStandIn(cell, widths[column]!))))
    // Trimmed before the cells take their places: how long these are, and what they hold, costs nothing then.
    for (const line of table.toString().split('\n'))
      yield `${line.trimEnd().replace(/\ue000+/g, () => cells.next().value ?? '')}\n`
  }
}

/** cli-table3 takes time that grows with the square of its rows. */
const ROWS_AT_ONCE = 50

/** A cell that is longer than its column moves the rest of its row. */
function toStandIn(text: string, width: number): string {
  return text === '' ? '' : STAND_IN.repeat(Math.max(1, measureUpTo(text, width)))
}

const NO_RULES = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: GAP },
}

// ---------------------------------------------------------------- words for the person

/** A sentence on standard error that `--quiet` silences. */
export async function printNotice(terminal: Terminal, text: string): Promise<void> {
  const { stderr, quiet } = terminal
  if (!quiet) await write(stderr, `${fold(displayLines(text), widthOf(stderr))}\n`)
}

/** A notice that something is about to go wrong or could be done better; `--quiet` silences it too. */
export async function printWarning(terminal: Terminal, text: string): Promise<void> {
  const { stderr, quiet, colour } = terminal
  if (quiet) return
  const paint = await loadPaint(colour.stderr)
  const folded = fold(`${WARNING} ${displayLines(text)}`, widthOf(stderr))
  await write(stderr, `${paint.yellow(WARNING)}${folded.slice(WARNING.length)}\n`)
}

const WARNING = 'warning:'
const ERROR = 'error:'

/**
 * A failure on standard error: the problem object itself where JSON is spoken, else in words, one line a property.
 * Who said no, or pressed Ctrl-C, made no error and is not told of one.
 */
export async function printProblem(
  terminal: Terminal,
  problem: Problem,
  { format }: Pick<PrintOptions, 'format'>,
): Promise<void> {
  const { stderr } = terminal
  if (format === 'json' || format === 'ndjson') {
    await write(stderr, `${toJson(problem, format === 'json' && isTerminal(stderr) ? 2 : 0)}\n`)
    return
  }
  const width = widthOf(stderr)
  const { detail, errors = {} } = problem
  if (problem.type === INTERRUPTED) {
    await write(stderr, `${fold(displayLines(detail), width)}\n`)
    return
  }
  const paint = await loadPaint(terminal.colour.stderr)
  const lines = Object.entries(errors).flatMap(([path, messages]) =>
    messages.map((message) => ({ path: display(path), message: displayLines(message) })),
  )
  const [first] = lines
  // Nothing is said twice: neither the one line below, nor the first of several above.
  const isSaid = first !== undefined && displayLines(detail).startsWith(`${first.path}: ${first.message}`)
  const headline = isSaid && lines.length > 1 ? `Refused for ${lines.length} reasons:` : displayLines(detail)
  const below = isSaid && lines.length === 1 ? '' : drawLines(lines, width, paint)
  const folded = fold(`${ERROR} ${headline}`, width)
  await write(stderr, `${paint.red(ERROR)}${folded.slice(ERROR.length)}\n${below}`)
}

const INTERRUPTED = 'urn:coffer:problem:interrupted'
/** A column of messages narrower than this is left to the terminal to break. */
const LEAST_MESSAGE_WIDTH = 24

function drawLines(lines: readonly { path: string; message: string }[], width: number, paint: Paint): string {
  const widest = Math.max(0, ...lines.map(({ path }) => measureWidth(path)))
  const left = widest + 2 * GAP.length
  const room = width - left < LEAST_MESSAGE_WIDTH ? Number.POSITIVE_INFINITY : width - left
  return lines
    .map(({ path, message }) => {
      const hanging = indent(fold(message, room), left).slice(left)
      return `${GAP}${paint.bold(path)}${' '.repeat(widest - measureWidth(path))}${GAP}${hanging}\n`
    })
    .join('')
}

interface Paint {
  bold(text: string): string
  red(text: string): string
  yellow(text: string): string
}

async function loadPaint(isColoured: boolean): Promise<Paint> {
  if (!isColoured) return { bold: String, red: String, yellow: String }
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level: 1 })
  return { bold: chalk.bold, red: chalk.red.bold, yellow: chalk.yellow.bold }
}
