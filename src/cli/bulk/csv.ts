/** Reads CSV as rows. The name of each column is a path in a token, such as `data.number`. */
import { Readable } from 'node:stream'
import { MAX_JSON_DEPTH, parseJson } from '../../domain/json/json.js'
import { suggestName } from '../../domain/text/nearest.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { restore } from '../../domain/text/spreadsheet.js'
import { CofferError, usage } from '../../errors.js'
import { createAttributes, tokenOutput } from '../../operations/token/token-attributes.js'
import { BEGINS_AS_JSON } from '../input/flags.js'
import { countOf, display } from '../output/display.js'
import { MASKED, type Row, refuseMasked } from './rows.js'

const MAX_BYTES = 1024 * 1024
const CHARACTERS_AT_ONCE = 64 * 1024
/**
 * Matches a column name that looks like a value. A file without a header line has values in its first line, and
 * messages must not contain these values.
 */
const VALUE = /\d{4}|@/
const MAX_TOLD = 20
/** Cells of these columns can be numbers. CSV itself does not distinguish numbers from text. */
const NUMBERS: readonly string[] = ['data.expiration_month', 'data.expiration_year']
const LISTS: readonly string[] = ['containers', 'search_indexes']
/** Attributes whose members may have their own columns. */
const OPEN: readonly string[] = ['data', 'metadata', 'mask']

type Path = readonly string[] | undefined
type ToCommand = (maps: readonly string[], isTyped: boolean) => string

/** `lines`: the line number, from 1, at which the record ends. */
type ParsedRecord = { info: { lines: number }; record: readonly string[] }

/**
 * `given`: entries `column=path`. A column with an empty path is skipped. `toCommand` returns the command to suggest in
 * an error.
 * @throws CofferError `usage`, `validation`
 */
export async function* readCsv(texts: AsyncIterable<string>, given: readonly string[], toCommand: ToCommand) {
  const { parse, CsvError } = await import('csv-parse')
  const parser = parse({
    info: true,
    max_record_size: MAX_BYTES,
    skip_empty_lines: true,
    relax_column_count: true,
  })
  const source = Readable.from(texts)
  source.on('error', (error) => parser.destroy(error))
  let paths: Path[] | undefined
  let line = 1
  try {
    for await (const first of source.pipe(parser)) {
      const rows: Row[] = []
      let left = CHARACTERS_AT_ONCE
      // Reads many parsed records at once, because waiting for a promise for each record takes longer than parsing.
      for (let next: ParsedRecord | null = first; next !== null; next = left > 0 ? parser.read() : null) {
        const { info, record } = next
        if (paths === undefined) paths = readHeader(record, given, toCommand)
        else left -= rows[rows.push(readRecord(record, paths, line)) - 1]!.length
        line = info.lines + 1
      }
      yield rows
    }
  } catch (cause) {
    if (!(cause instanceof CsvError)) throw cause
    // The parser's message is not shown, because this message may quote the file.
    const reason = cause.code.replace('CSV_', '').replaceAll('_', ' ').toLowerCase()
    throw new CofferError('validation', `Line ${cause.lines ?? line}: this is not CSV (${reason}).`, {
      cause,
    })
  } finally {
    source.destroy()
  }
  if (paths === undefined)
    throw new CofferError('validation', 'The CSV has no header line with the names of the columns.')
}

function readHeader(names: readonly string[], given: readonly string[], toCommand: ToCommand): Path[] {
  const map = new Map(
    given.map((text) => {
      const [, column = '', path] = /^([^=]+)=(.*)$/s.exec(text) ?? []
      if (path === undefined) throw usage(`--map takes column=path, not "${display(text)}".`)
      const shown = names.filter((name) => !VALUE.test(name))
      const near = suggestName(column, shown)
      if (!names.includes(column))
        throw usage(`--map takes column=path, and the file has no column "${display(column)}"${near || '.'}`)
      return [column, path]
    }),
  )
  const texts = names.map((name) => map.get(name) ?? name)
  const wrong = names.filter((_, at) => readPath(texts[at]!) === 'none').slice(0, MAX_TOLD)
  const value = wrong.find((name) => VALUE.test(name))
  if (value !== undefined)
    throw usage(
      `The first line must name the columns, but its column ${names.indexOf(value) + 1} looks like a value.`,
    )
  if (wrong.length > 0) {
    const hasData = texts.includes('data')
    const maps = wrong.map((name) => `--map ${quoteWord(`${name}=${hasData ? '' : `data.${name}`}`)}`)
    const what = `Columns without a token field: ${wrong.map((name) => `"${name}"`).join(', ')}`
    const how =
      'Give each column a target (data is secret, metadata is not; without a target, the column is skipped)'
    throw usage(`${what}. ${how}:\n  ${toCommand(maps, texts.includes('type'))}`)
  }
  const paths = texts.map(readPath) as Path[]
  const used = paths.flatMap((path) => path?.join('.') ?? [])
  const known = new Set(used)
  const isInside = (path: Path) => path?.some((_, at) => known.has(path.slice(0, at).join('.')))
  if (known.size < used.length || paths.some(isInside))
    throw usage(
      'Two columns have the same target, or the target of one column contains the target of another column.',
    )
  return paths
}

function readPath(text: string): Path | 'none' {
  if (text === '') return undefined
  const [first = '', ...rest] = text.split('.')
  const path = first === 'metadata' && rest.length > 0 ? [first, rest.join('.')] : [first, ...rest]
  if (text === MASKED) return path
  const isShown = Object.hasOwn(tokenOutput.properties, first)
  // An import ignores columns that the vault derives, such as `created_at`.
  if (isShown && !Object.hasOwn(createAttributes, first)) return undefined
  const isKnown = Object.hasOwn(createAttributes, first) && (rest.length === 0 || OPEN.includes(first))
  const isDeep = path.length > MAX_JSON_DEPTH
  const isPrototype = /(?:^|\.)(?:__proto__|constructor\.prototype)(?:\.|$)/.test(text)
  return isKnown && !isDeep && !path.includes('') && !isPrototype ? path : 'none'
}

function readRecord(cells: readonly string[], paths: readonly Path[], line: number): Row {
  const length = cells.reduce((sum, cell) => sum + cell.length, 0)
  const fault = `The row has ${countOf(cells.length, 'cell')}, but the first line names ${countOf(paths.length, 'column')}.`
  if (cells.length !== paths.length) return { line, length, fault }
  const value: Record<string, unknown> = {}
  try {
    for (const [at, path] of paths.entries())
      if (path !== undefined && cells[at] !== '')
        place(value, path, readCell(restore(cells[at]!), path.join('.')))
    return refuseMasked({ line, length, value })
  } catch (error) {
    if (error instanceof CofferError) return { line, length, fault: error.message }
    throw error
  }
}

function place(value: Record<string, unknown>, path: readonly string[], cell: unknown): object {
  const [first = '', ...rest] = path
  // Uses only own members, because a change inside an inherited member such as `constructor` would affect all objects.
  const inner = Object.hasOwn(value, first) ? (value[first] as typeof value) : {}
  value[first] = rest.length === 0 ? cell : place(inner, rest, cell)
  return value
}

function readCell(text: string, path: string): unknown {
  const isBoolean = path === 'deduplicate_token' || path === MASKED
  if (isBoolean && (text === 'true' || text === 'false')) return text === 'true'
  if (path === 'mask' && text === 'null') return null
  if (NUMBERS.includes(path) && /^\d{1,4}$/.test(text)) return Number(text)
  const isList = LISTS.includes(path)
  if ((isList || OPEN.includes(path)) && BEGINS_AS_JSON.test(text)) return parseJson(text, { source: path })
  return isList ? [text] : text
}
