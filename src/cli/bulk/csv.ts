/** CSV as rows: each column is a path of a token, such as `data.number`. csv-parse is imported here only. */

import { MAX_JSON_DEPTH, parseJson } from '../../domain/json/json.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError, usage } from '../../errors.js'
import { createAttributes } from '../../operations/token/token-attributes.js'
import { BEGINS_AS_JSON } from '../input/options.js'
import { restore } from '../output/fields.js'
import { MASKED, type Row, refuseMasked } from './rows.js'

const MOST_BYTES = 1024 * 1024
const ROWS_AT_ONCE = 256
/** Members of data that are numbers, which CSV cannot tell from text. */
const NUMBERS: readonly string[] = ['data.expiration_month', 'data.expiration_year']
/** Attributes that may have members with a column of their own. */
const OPEN = ['data', 'metadata', 'mask']

type Path = readonly string[]

function splitMapping(text: string): [column: string, path: string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw usage('--map takes column=path, such as --map number=data.number.')
}

/**
 * `given`: `column=path`, where a column has another name than the path; an empty path leaves it out.
 * @throws CofferError `usage` for columns without a place, `validation` for what is not CSV
 */
export async function* readCsv(
  texts: AsyncIterable<string>,
  given: readonly string[],
): AsyncGenerator<Row[]> {
  const map = new Map(given.map(splitMapping))
  const { parse } = await import('csv-parse')
  const { Readable } = await import('node:stream')
  const parser = parse({
    info: true,
    max_record_size: MOST_BYTES,
    skip_empty_lines: true,
    relax_column_count: true,
  })
  const source = Readable.from(texts)
  source.on('error', (error) => parser.destroy(error))
  let paths: (Path | undefined)[] | undefined
  let rows: Row[] = []
  let characters = 0
  let line = 1
  try {
    for await (const { info, record } of source.pipe(parser) as AsyncIterable<ParsedRecord>) {
      if (paths === undefined) paths = readHeader(record, map)
      else rows.push(readRecord(record, paths, line))
      line = info.lines + 1
      characters += rows.at(-1)?.length ?? 0
      if (rows.length < ROWS_AT_ONCE && characters < MOST_BYTES) continue
      yield rows
      rows = []
      characters = 0
    }
  } catch (cause) {
    // The message of the parser may quote what it read.
    const { code, lines = line } = cause as { code?: unknown; lines?: number }
    if (typeof code !== 'string' || !code.startsWith('CSV_')) throw cause
    const reason = code.replace('CSV_', '').replaceAll('_', ' ').toLowerCase()
    throw new CofferError('validation', `Line ${lines}: this is not CSV (${reason}).`, { cause })
  } finally {
    source.destroy()
  }
  if (paths === undefined)
    throw new CofferError('validation', 'The CSV has no line with the names of columns.')
  yield rows
}

interface ParsedRecord {
  /** `lines`: the last line of the record. */
  info: { lines: number }
  record: readonly string[]
}

/** The path of each column; undefined for one that is left out. @throws CofferError `usage` */
function readHeader(names: readonly string[], map: ReadonlyMap<string, string>): (Path | undefined)[] {
  for (const column of map.keys())
    if (!names.includes(column)) throw usage('--map names a column that the file does not have.')
  const paths = names.map((name) => readPath(name, map.get(name) ?? name))
  const used = new Set<string>()
  for (const path of paths) {
    const text = path?.join('.')
    if (text !== undefined && used.has(text)) throw usage(`Two columns give ${text}.`)
    if (text !== undefined) used.add(text)
  }
  for (const path of paths) {
    const outer = path?.map((_, at) => path.slice(0, at).join('.')).find((text) => used.has(text))
    if (outer !== undefined) throw usage(`Two columns give ${outer}.`)
  }
  return paths
}

function readPath(name: string, text: string): Path | undefined {
  if (text === '') return undefined
  const [first = '', ...rest] = text.split('.')
  const path = first === 'metadata' && rest.length > 0 ? [first, rest.join('.')] : [first, ...rest]
  if (text === MASKED) return path
  const isKnown = Object.hasOwn(createAttributes, first) && (rest.length === 0 || OPEN.includes(first))
  const isDeep = path.length > MAX_JSON_DEPTH
  if (isKnown && !isDeep && !path.includes('') && !path.includes('__proto__')) return path
  throw usage(
    `The column "${name}" is no path of a token. Give it one: --map ${quoteWord(`${name}=metadata.${name}`)}, or none: --map ${quoteWord(`${name}=`)}.`,
  )
}

function readRecord(cells: readonly string[], paths: readonly (Path | undefined)[], line: number): Row {
  const value: Record<string, unknown> = {}
  const length = cells.reduce((sum, cell) => sum + cell.length, 0)
  const fault = `The row has ${cells.length} cells, and ${paths.length} columns have a name.`
  if (cells.length !== paths.length) return { line, length, fault }
  try {
    cells.forEach((cell, at) => {
      const path = paths[at]
      if (path !== undefined && cell !== '') place(value, path, readCell(restore(cell), path.join('.')))
    })
    return refuseMasked({ line, length, value })
  } catch (error) {
    if (error instanceof CofferError) return { line, length, fault: error.message }
    throw error
  }
}

function place(value: Record<string, unknown>, [first = '', ...rest]: Path, cell: unknown): void {
  if (rest.length === 0) {
    value[first] = cell
    return
  }
  value[first] ??= {}
  place(value[first] as Record<string, unknown>, rest, cell)
}

/** Text, or the JSON of a list, a map, or data as a whole. */
function readCell(text: string, path: string): unknown {
  if (path === 'deduplicate_token' || path === MASKED)
    return text === 'true' ? true : text === 'false' ? false : text
  if (NUMBERS.includes(path)) return /^\d{1,4}$/.test(text) ? Number(text) : text
  const isList = path === 'containers' || path === 'search_indexes'
  if ((isList || OPEN.includes(path)) && BEGINS_AS_JSON.test(text)) return parseJson(text, { source: path })
  return isList ? [text] : text
}
