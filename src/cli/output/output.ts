import type { Config } from '../../config.js'
import type { Problem } from '../../errors.js'
import type { Format } from '../../global-flags.js'
import { display, displayLines, fold, indent, toJson } from './display.js'
import { choosePaths, isList, itemsOf, linesOf, pick, readField } from './fields.js'
import { describePage, drawMany, drawOne, type Layout } from './table.js'
import { isTerminal, type OutputStream, type Terminal, write } from './terminal.js'

export type Summarize = (items: readonly unknown[]) => {
  rows: readonly unknown[]
  columns: readonly string[]
}

/**
 * `fields` replaces `columns` in every format. `hints.empty`: the notice for an empty list. `hints.done`: the notice if
 * there is no result.
 */
export interface PrintOptions extends Pick<Layout, 'marks' | 'formats' | 'wraps' | 'optional'> {
  format: Format
  columns?: readonly string[]
  fields?: readonly string[] | undefined
  hints?: { empty?: string; done?: string }
  summarize?: Summarize | undefined
}

export function chooseFormat({ stdout }: Terminal, asked: Format | undefined): Format {
  return asked ?? (isTerminal(stdout) ? 'table' : 'json')
}

export async function printForRun(
  { terminal, config }: { terminal: Terminal; config: Pick<Config, 'output' | 'fields'> },
  result: unknown,
  options: Omit<PrintOptions, 'format' | 'fields'> = {},
): Promise<void> {
  const format = chooseFormat(terminal, config.output)
  await printResult(terminal, result, { ...options, format, fields: config.fields })
}

/**
 * `result`: JSON or a list. For the formats `ndjson`, `id` and `value`, also an async iterable. Resolves to false if
 * the reader has closed the stream before the end.
 * @throws CofferError `usage` if an item has no id
 */
export async function printResult(
  terminal: Terminal,
  result: unknown,
  options: PrintOptions,
): Promise<boolean> {
  const { stdout, stderr } = terminal
  const { format, fields, hints } = options
  if (result === undefined) {
    if (isTerminal(stderr)) await printNotice(terminal, hints?.done ?? 'Done.')
    return true
  }
  if (format === 'table') return printTable(terminal, result, options)
  if (format === 'json') return write(stdout, `${toJson(pick(result, fields), isTerminal(stdout) ? 2 : 0)}\n`)
  for await (const line of linesOf(result, format, fields, options.columns))
    if (!(await write(stdout, `${isTerminal(stdout) ? display(line) : line}\n`))) return false
  return true
}

async function printTable(terminal: Terminal, result: unknown, options: PrintOptions): Promise<boolean> {
  const { fields, columns, hints, summarize } = options
  const { stdout, colour } = terminal
  const { bold } = await loadPaint(colour.stdout)
  const layout: Layout = { ...options, width: widthOf(stdout), bold }
  if (!isList(result) && !Array.isArray(result)) return write(stdout, drawOne(result, fields, layout))
  const items = itemsOf(result)
  const summary = fields === undefined && items.length > 0 ? summarize?.(items) : undefined
  const usual = choosePaths(items, fields ?? columns)
  const { rows, columns: heads } = summary ?? {
    rows: items,
    columns: fields === undefined ? usual.filter((path) => isShown(items, path)) : usual,
  }
  let isCut = false
  const texts = drawMany(rows, heads, layout, () => {
    isCut = true
  })
  for await (const text of texts) if (!(await write(stdout, text))) return false
  if (isList(result)) await printNotice(terminal, describePage(result, hints?.empty))
  else if (items.length === 0) await printNotice(terminal, hints?.empty ?? 'Nothing found.')
  if (isCut)
    await printNotice(
      terminal,
      'Cells are cut to fit. Show all with -o json, or choose columns with --fields.',
    )
  return true
}

const SPARSE = ['expires_at']

function isShown(items: readonly unknown[], path: string): boolean {
  return !SPARSE.includes(path) || items.some((item) => readField(item, path) !== undefined)
}

/** Returns Infinity for a file or a pipe, so that text is not cut. */
function widthOf(stream: OutputStream): number {
  return isTerminal(stream) && stream.columns ? stream.columns : Number.POSITIVE_INFINITY
}

export async function printNotice({ stderr, quiet }: Terminal, text: string): Promise<void> {
  if (quiet) return
  // If a notice cannot be written, for example to a full disk, the command continues.
  await write(stderr, `${fold(displayLines(text), widthOf(stderr))}\n`).catch(() => undefined)
}

/** Prints one line, so that a name with a line break cannot imitate another line. */
export async function printLogLine(terminal: Terminal, text: string): Promise<void> {
  await printNotice(terminal, display(text))
}

/** `--quiet` does not hide warnings. */
export async function printWarning(terminal: Terminal, text: string): Promise<void> {
  // If the warning cannot be written, the command continues.
  await printMarked(terminal, 'warning:', text).catch(() => undefined)
}

export async function printError(terminal: Terminal, text: string): Promise<void> {
  await printMarked(terminal, 'error:', text)
}

async function printMarked({ stderr, colour }: Terminal, mark: 'warning:' | 'error:', text: string) {
  const paint = await loadPaint(colour.stderr)
  const shown = indentRest(`${mark} ${displayLines(text)}`, 2, widthOf(stderr))
  await write(stderr, `${paint[mark](mark)}${shown.slice(mark.length)}\n`)
}

/**
 * Wraps text, and indents all lines except the first. Because of the indent, a file name or code in the text cannot
 * imitate a message of Coffer.
 */
function indentRest(text: string, columns: number, width: number): string {
  const [first = '', ...rest] = text.split('\n')
  const lines = rest.map((line) =>
    line.startsWith('  ') ? line : indent(fold(line, width - columns), columns),
  )
  return [fold(first, width), ...lines].join('\n')
}

export async function printProblem(terminal: Terminal, problem: Problem, format?: Format): Promise<void> {
  const { stderr } = terminal
  if (format === 'json' || format === 'ndjson')
    return void (await write(stderr, `${toJson(problem, format === 'json' && isTerminal(stderr) ? 2 : 0)}\n`))
  const { type, title, errors = {}, error } = problem
  const isRefusal = type === 'urn:coffer:problem:card-refused'
  const detail = isRefusal ? `${title}: ${problem.detail}` : problem.detail
  if (type === 'urn:coffer:problem:interrupted')
    return void (await write(stderr, `${fold(displayLines(detail), widthOf(stderr))}\n`))
  const lines = Object.entries(errors).flatMap(([path, texts]) => texts.map((text) => `${path}: ${text}`))
  if (error !== undefined) lines.push(`${error.error_source}: ${error.message} ${error.detail}`)
  // If the detail repeats the first of several lines, the number of errors is printed instead of the detail.
  // If the detail contains the only line, only the detail is printed.
  const isRepeated = lines.length > 0 && detail.startsWith(lines[0]!)
  const isOne = lines.length === 1 && detail.includes(lines[0]!)
  const what = isRepeated && !isOne ? `The input has ${lines.length} errors:` : detail
  await printMarked(terminal, 'error:', what)
  if (!isOne)
    for (const line of lines)
      await write(stderr, `  ${indentRest(displayLines(line), 4, Number.POSITIVE_INFINITY)}\n`)
}

async function loadPaint(isColoured: boolean) {
  if (!isColoured) return { bold: String, 'error:': String, 'warning:': String }
  const { Chalk } = await import('chalk')
  const { bold, red, yellow } = new Chalk({ level: 1 })
  return { bold, 'error:': red.bold, 'warning:': yellow.bold }
}
