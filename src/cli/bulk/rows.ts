import { isObject, parseJson } from '../../domain/json/json.js'
import { CofferError } from '../../errors.js'

/** `line`: the first line of the row, from 1. `fault`: why the row cannot be read. */
export interface Row {
  line: number
  value?: unknown
  fault?: string
  /** The approximate number of characters. */
  length: number
}

/** The name of the property or CSV column that an export adds to rows with masked data. */
export const MASKED = 'masked'

const MAX_CHARACTERS = 1024 * 1024

/** Removes a byte order mark. @throws CofferError `validation` if the chunks are not UTF-8 */
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

/** `size`: the length of the piece with its separator. `row`: the row in the piece, if any. */
type Piece = { row: string | undefined; size: number }

/** Splits text into complete pieces. The caller passes the incomplete rest again, with more text. */
type Split = (text: string, isLast: boolean) => Piece[]

/**
 * If no format is given, the first character that is not white space decides: `[` begins a JSON array, any other
 * character begins NDJSON.
 */
export async function* readRows(texts: AsyncIterable<string>, format?: 'ndjson' | 'json') {
  let split: Split | undefined
  let rest = ''
  let line = 1
  const take = (isLast: boolean): Row[] => {
    const isArray = format === undefined ? rest.trimStart().startsWith('[') : format === 'json'
    split ??= isArray ? splitArray() : splitLines
    const rows: Row[] = []
    let start = 0
    for (const { row, size } of split(rest, isLast)) {
      if (row !== undefined) rows.push(parseRow(row, line))
      line += countBreaks(rest.slice(start, start + size))
      start += size
    }
    rest = rest.slice(start)
    if (rest.length <= MAX_CHARACTERS) return rows
    throw new CofferError('too_large', `Line ${line}: a row has at most ${MAX_CHARACTERS} characters.`)
  }
  for await (const text of texts) {
    rest += text
    if (split !== undefined || rest.trimStart() !== '' || rest.length > MAX_CHARACTERS) yield take(false)
  }
  yield take(true)
}

const splitLines: Split = (text, isLast) => {
  const lines = text.split('\n')
  if (!isLast) lines.pop()
  return lines.map((line) => ({ row: line.trim() === '' ? undefined : line, size: line.length + 1 }))
}

/** Matches a string (complete or not), a separator, or a run of other characters. */
const JSON_TOKEN = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"?|[[\]{},]|[^\s",[\]{}]+/g

/** Splits the members of one JSON array. An incomplete member is read again when there is more text. */
function splitArray(): Split {
  let state: 'before' | 'inside' | 'after' = 'before'
  let isEmpty = true
  return (text, isLast) => {
    const pieces: Piece[] = []
    let start = 0
    let depth = 0
    for (const { 0: token, index } of text.matchAll(JSON_TOKEN)) {
      if (state === 'inside' && (depth > 0 || (token !== ',' && token !== ']'))) {
        if (token === '[' || token === '{') depth++
        else if (token === ']' || token === '}') depth--
        continue
      }
      if (state === 'after' || (state === 'before' && token !== '['))
        throw new CofferError('validation', 'The file must be one JSON array, or NDJSON.')
      const row = text.slice(start, index)
      const isRow = state === 'inside' && (token === ',' || !isEmpty || row.trim() !== '')
      pieces.push({ row: isRow ? row : undefined, size: index + 1 - start })
      start = index + 1
      isEmpty &&= !isRow
      state = token === ']' ? 'after' : 'inside'
    }
    if (state !== 'inside') pieces.push({ row: undefined, size: text.length - start })
    if (isLast && state !== 'after') throw new CofferError('validation', 'The JSON array has no end.')
    return pieces
  }
}

function countBreaks(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}

function parseRow(text: string, line: number): Row {
  const { length } = text
  // Blank lines may come before a member of an array.
  const row = text.replace(/^\s*\n/, '')
  const first = line + countBreaks(text.slice(0, length - row.length))
  try {
    const value = parseJson(row, { source: 'the row', firstLine: first })
    return refuseMasked({ line: first, length, value })
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    return { line: first, length, fault: error.message }
  }
}

export function refuseMasked(row: Row): Row {
  const isMasked = isObject(row.value) && row.value[MASKED] === true
  return isMasked ? { ...row, fault: 'The data of the row is masked. Export it with --reveal.' } : row
}
