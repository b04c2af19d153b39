/** Prints results, notices, warnings and problems. chalk is imported here only, on first use. */
import type { Config } from '../../config.js'
import { type Problem, usage } from '../../errors.js'
import { FORMATS, type Format } from '../../global-flags.js'
import { display, displayLines, fold, foldRow, measureWidth, toJson } from './display.js'
import { describeUnknown, neutralize, pickFields, readField, toCsvCell, toCsvLine } from './fields.js'
import { describePage, drawOne, isList, isStream, itemsOf, namesOf } from './layout.js'
import { drawMany, GAP } from './table.js'
import { isTerminal, type OutputStream, type Terminal, write } from './terminal.js'

/**
 * `columns`: the columns of a table or CSV; empty means every field. `fields`: the value of `--fields`, which replaces
 * the columns and selects fields in JSON. `hints`: the notices for an empty list, and for an operation without a result.
 */
export interface PrintOptions {
  format: Format
  columns?: readonly string[]
  fields?: readonly string[] | undefined
  hints?: { empty?: string; done?: string }
  /** Valid names of fields, even if no item has them; true: all of `fields` were checked. */
  known?: true | readonly string[]
}

/** The given format; default: a table on a terminal, else JSON. @throws CofferError `usage` for an unknown format */
export function chooseFormat(terminal: Terminal, asked: string | undefined): Format {
  if (asked === undefined) return isTerminal(terminal.stdout) ? 'table' : 'json'
  const format = FORMATS.find((known) => known === asked)
  if (format === undefined) throw usage(`--output takes ${FORMATS.join(', ')}.`)
  return format
}

/**
 * Prints the answer of an operation: any JSON value, a list, undefined (only a notice on a terminal) or, as `ndjson` and
 * `id` only, an async iterable of items. Stops without an error when the reader closes the stream. JSON is indented on a
 * terminal and one line elsewhere; `ndjson`, `id` and `csv` are one line per item.
 * @throws CofferError `usage` if an item has no id in the format `id`
 */
export async function printResult(terminal: Terminal, result: unknown, options: PrintOptions): Promise<void> {
  if (result === undefined)
    return isTerminal(terminal.stderr) ? printNotice(terminal, options.hints?.done ?? 'Done.') : undefined
  const missing = isStream(result) ? [] : findMissing(terminal, itemsOf(result), options)
  await terminal.releaseSignals?.()
  if (options.format === 'json') await printJson(terminal, result, options)
  else if (options.format === 'table') await printTable(terminal, result, options)
  else if (options.format === 'csv') await printCsv(terminal, result, options)
  else await printLines(terminal, result, options)
  if (missing.length > 0) await printNotice(terminal, `No item has the field ${missing.join(', ')}.`)
}

/** The fields that no item has. @throws CofferError `usage` for an unknown field in `--fields` */
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
  const level = parents.findLastIndex((path, at) => at === 0 || valuesAt(items, path).length > 0)
  const there = level === 0 ? items : valuesAt(items, parents[level]!).flat()
  throw usage(describeUnknown(wrong, level, namesOf(there)))
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
  const picked = isList(result) ? { ...result, data: pick(result.data) } : pick(result)
  await write(stdout, `${toJson(picked, spaces)}\n`)
}

async function printLines(terminal: Terminal, result: unknown, options: PrintOptions): Promise<void> {
  const { stdout } = terminal
  const { format, fields } = options
  const show = isTerminal(stdout) ? display : String
  for await (const item of isStream(result) ? result : itemsOf(result)) {
    const picked = fields ? pickFields(item, fields) : item
    const line =
      format === 'ndjson' ? toJson(picked) : show(format === 'id' ? idOf(item) : fieldOf(item, options))
    if (!(await write(stdout, `${line}\n`))) return
  }
}

async function printCsv(terminal: Terminal, result: unknown, options: PrintOptions): Promise<void> {
  const { stdout } = terminal
  const columns = columnsOf(options)
  const items = itemsOf(result)
  const paths = columns.length > 0 ? columns : namesOf(items)
  const show = isTerminal(stdout) ? display : String
  if (!(await write(stdout, `${show(toCsvLine(paths.map(neutralize)))}\n`))) return
  for (const item of items) {
    const line = toCsvLine(paths.map((path) => toCsvCell(readField(item, path))))
    if (!(await write(stdout, `${show(line)}\n`))) return
  }
}

function idOf(item: unknown): string {
  const id = typeof item === 'string' ? item : readField(item, 'id')
  if (typeof id === 'string') return id
  throw usage('These results have no id. Choose another --output, such as json.')
}

/** The value of the only field, text without quotes. @throws CofferError `usage` */
function fieldOf(item: unknown, { fields = [] }: PrintOptions): string {
  const [path] = fields
  if (path === undefined || fields.length > 1)
    throw usage('--output value prints one field: add --fields NAME.')
  const value = readField(item, path)
  return typeof value === 'string' ? value : toJson(value ?? null)
}

// ---------------------------------------------------------------- tables

async function printTable(terminal: Terminal, result: unknown, options: PrintOptions): Promise<void> {
  const paint = await loadPaint(terminal.colour.stdout)
  const width = widthOf(terminal.stdout)
  const items = itemsOf(result)
  const isOne = !isList(result) && !Array.isArray(result)
  let cut: string | undefined
  const chosen = { asked: columnsOf(options), isChosen: options.fields !== undefined }
  const texts = isOne
    ? [drawOne(result, options.fields, width, paint.bold)]
    : drawMany(items, chosen, width, paint.bold, (lost) => {
        cut = lost
      })
  for await (const text of texts) if (!(await write(terminal.stdout, text))) return
  if (isList(result)) await printNotice(terminal, describePage(result, options.hints?.empty))
  else if (items.length === 0) await printNotice(terminal, options.hints?.empty ?? 'Nothing found.')
  if (cut !== undefined)
    await printNotice(terminal, `${cut} to fit: -o json shows all, --fields fewer columns.`)
}

/** Text to a file or a pipe is not truncated. */
function widthOf(stream: OutputStream): number {
  return isTerminal(stream) && stream.columns ? stream.columns : Number.POSITIVE_INFINITY
}

/** Prints a result in the format and with the fields of this run. */
export async function printForRun(
  { terminal, config }: { terminal: Terminal; config: Pick<Config, 'output' | 'fields'> },
  result: unknown,
  options: Omit<PrintOptions, 'format' | 'fields'> = {},
): Promise<void> {
  const format = chooseFormat(terminal, config.output)
  await printResult(terminal, result, { ...options, format, fields: config.fields })
}

// ---------------------------------------------------------------- notices and errors

/** Prints to standard error, unless `--quiet`. */
export async function printNotice(terminal: Terminal, text: string): Promise<void> {
  const { stderr, quiet } = terminal
  if (quiet) return
  // The command goes on if a notice cannot be written, as on a full disk: often nobody awaits it.
  await write(stderr, `${fold(displayLines(text), widthOf(stderr))}\n`).catch(() => undefined)
}

/** Prints a warning to standard error, unless `--quiet`. */
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
 * Prints a failure to standard error: in JSON formats the problem object, else text with one line per property. An
 * interruption or a refused confirmation is printed without "error:".
 */
export async function printProblem(terminal: Terminal, problem: Problem, format: Format): Promise<void> {
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
  // Avoids repeating an error in the headline and in the lines below.
  const isInDetail = first !== undefined && displayLines(detail).startsWith(`${first.path}: ${first.message}`)
  const headline =
    isInDetail && lines.length > 1 ? `The input has ${lines.length} errors:` : displayLines(detail)
  const below = isInDetail && lines.length === 1 ? '' : drawLines(lines, width, paint)
  const folded = fold(`${ERROR} ${headline}`, width)
  await write(stderr, `${paint.red(ERROR)}${folded.slice(ERROR.length)}\n${below}`)
}

const INTERRUPTED = 'urn:coffer:problem:interrupted'
function drawLines(lines: readonly { path: string; message: string }[], width: number, paint: Paint): string {
  const widest = Math.max(0, ...lines.map(({ path }) => measureWidth(path)))
  return lines
    .map(({ path, message }) => {
      const begin = `${GAP}${path}${' '.repeat(widest - measureWidth(path))}${GAP}`
      return `${foldRow(begin, message, width).replace(path, () => paint.bold(path))}\n`
    })
    .join('')
}

type Paint = Awaited<ReturnType<typeof loadPaint>>

async function loadPaint(isColoured: boolean) {
  if (!isColoured) return { bold: String, red: String, yellow: String }
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level: 1 })
  return { bold: chalk.bold, red: chalk.red.bold, yellow: chalk.yellow.bold }
}
