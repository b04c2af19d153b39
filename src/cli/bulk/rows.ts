/** Reads the rows of a bulk file as they come: NDJSON, a JSON array, or CSV. Memory is that of a few rows. */
import { isObject, parseJson } from '../../domain/json/json.js'
import { CofferError } from '../../errors.js'

/** A row and the line that it begins on, from 1; `fault`: why it cannot be read. */
export interface Row {
  line: number
  value?: unknown
  fault?: string
  /** In characters, about. */
  length: number
}

export const ROW_FORMATS = ['ndjson', 'json', 'csv'] as const
export type RowFormat = (typeof ROW_FORMATS)[number]

/** The property, or column, of an exported row whose data is masked. */
export const MASKED = 'masked'
const IS_MASKED = 'The data of the row is masked. Export it with --reveal.'

/** The longest row in characters: what a request may have. */
const MOST_CHARACTERS = 1024 * 1024

/** Text of a stream of UTF-8, without a byte order mark. @throws CofferError `validation` */
export async function* decodeChunks(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (chunk?: Uint8Array) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch (cause) {
      throw new CofferError('validation', `${name} is not UTF-8.`, { cause })
    }
  }
  for await (const chunk of chunks) yield decode(chunk)
  yield decode()
}

/** Takes text after text, and gives what ended in it. */
type Split<T> = (text: string, isLast: boolean) => T[]

/** The first character decides, unless a format is given: an array begins with a bracket. */
export async function* readRows(
  texts: AsyncIterable<string>,
  format?: 'ndjson' | 'json',
): AsyncGenerator<Row[]> {
  let split: Split<Row> | undefined
  let early = ''
  for await (const text of texts) {
    early += text
    const first = /\S/.exec(early)?.[0]
    if (split === undefined && first === undefined && early.length < MOST_CHARACTERS) continue
    split ??= (format ?? (first === '[' ? 'json' : 'ndjson')) === 'json' ? splitArray() : splitLines()
    yield split(early, false)
    early = ''
  }
  split ??= format === 'json' ? splitArray() : splitLines()
  yield split(early, true)
}

/** Lines of text, each with its number; those without text are left out. */
export function splitTextLines(): Split<{ line: number; text: string }> {
  let rest = ''
  let line = 0
  return (text, isLast) => {
    const lines = (rest + text + (isLast ? '\n' : '')).split('\n')
    rest = lines.pop()!
    requireShort(rest.length, line + lines.length + 1)
    return lines.flatMap((each) => {
      line++
      return each.trim() === '' ? [] : [{ line, text: each }]
    })
  }
}

function splitLines(): Split<Row> {
  const split = splitTextLines()
  return (text, isLast) => split(text, isLast).map(({ line, text: row }) => parseRow(row, line))
}

/** The members of one JSON array, each parsed by itself. */
function splitArray(): Split<Row> {
  let rest = ''
  /** The offset in `rest` and the next text at which to continue. */
  let next = 0
  let line = 1
  let rowLine = 1
  let state: 'before' | 'inside' | 'after' = 'before'
  /** Brackets that are open within the member. */
  let depth = 0
  let isText = false
  /** Whether the member has only white space so far. */
  let isBlank = true
  let count = 0
  return (text, isLast) => {
    const rows: Row[] = []
    const all = rest + text
    let start = 0
    let at = next
    for (; at < all.length; at++) {
      const code = all[at]!
      if (code === '\n') line++
      if (isText) {
        if (code === '\\') at++
        else if (code === '"') isText = false
      } else if (code <= ' ') {
        // White space between members.
      } else if (state !== 'inside') {
        if (state === 'after' || code !== '[')
          throw new CofferError('validation', `Line ${line}: the file must be one JSON array, or NDJSON.`)
        state = 'inside'
        start = at + 1
      } else if (depth === 0 && (code === ',' || code === ']')) {
        const piece = all.slice(start, at)
        const isNone = code === ']' && count === 0 && piece.trim() === ''
        if (!isNone) rows.push(parseRow(piece, rowLine))
        count++
        isBlank = true
        start = at + 1
        if (code === ']') state = 'after'
      } else {
        if (isBlank) rowLine = line
        isBlank = false
        if (code === '"') isText = true
        else if (code === '[' || code === '{') depth++
        else if (code === ']' || code === '}') depth--
      }
    }
    rest = state === 'inside' ? all.slice(start) : ''
    next = state === 'inside' ? at - start : 0
    requireShort(rest.length, line)
    if (isLast && state !== 'after') throw new CofferError('validation', 'The JSON array has no end.')
    return rows
  }
}

function parseRow(text: string, line: number): Row {
  const { length } = text
  try {
    // A member of an array begins where the one before it ended.
    const own = text.replace(/^\s*\n/, '')
    return refuseMasked({ line, length, value: parseJson(own, { source: 'the row' }) })
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    const fault = error.message.replace(/at line (\d+)/, (_, own) => `at line ${line - 1 + Number(own)}`)
    return { line, length, fault }
  }
}

/** The row, with a fault if it was exported with masked data. */
export function refuseMasked(row: Row): Row {
  return isObject(row.value) && row.value[MASKED] === true ? { ...row, fault: IS_MASKED } : row
}

function requireShort(length: number, line: number): void {
  if (length <= MOST_CHARACTERS) return
  throw new CofferError('too_large', `Line ${line}: a row has at most ${MOST_CHARACTERS} characters.`)
}
