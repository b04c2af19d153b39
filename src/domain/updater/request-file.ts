/** Reads the file of a batch job: CSV (RFC 4180) with a header. The columns may have any order. */

export const MAX_FILE_BYTES = 2 * 1024 * 1024
export const MAX_LINES = 20_000

const CENTURY = 2000
const BYTE_ORDER_MARK = '\ufeff'

export interface FileHeader {
  /** The index of each column, or -1 if the file lacks the column. */
  columns: Record<'token' | 'expiration_year' | 'expiration_month', number>
  /** The position of the first row, in characters. */
  end: number
}

export interface RequestRow {
  token: string
  /** The text of the field in the file, without white space around it. */
  expiration_year: string
  expiration_month: string
}

/** If the file cannot be processed, returns the error of the job. */
export function readHeader(text: string): FileHeader | string {
  if (text.replace(BYTE_ORDER_MARK, '').trim() === '') return 'File cannot be empty'
  if (countLines(text) > MAX_LINES) return `File cannot have more than ${MAX_LINES} lines`
  const { fields, end } = readRecord(text, text.startsWith(BYTE_ORDER_MARK) ? 1 : 0)
  const names = fields.map((name) => name.trim().toLowerCase())
  const placeOf = (name: string) => names.indexOf(name)
  if (placeOf('token') === -1) return 'The first line of the file must name the column token'
  if (text.slice(end).trim() === '') return 'File has no rows'
  const [expiration_year, expiration_month] = [placeOf('expiration_year'), placeOf('expiration_month')]
  return { columns: { token: placeOf('token'), expiration_year, expiration_month }, end }
}

/** Skips empty lines. `end`: where the next row begins. */
export function readRows(
  text: string,
  { columns }: FileHeader,
  from: number,
  most: number,
): { rows: RequestRow[]; end: number } {
  const rows: RequestRow[] = []
  let end = from
  while (rows.length < most && end < text.length) {
    const record = readRecord(text, end)
    end = record.end
    const field = (place: number) => (record.fields[place] ?? '').trim()
    if (record.fields.length === 1 && field(0) === '') continue
    rows.push({
      token: field(columns.token),
      expiration_year: field(columns.expiration_year),
      expiration_month: field(columns.expiration_month),
    })
  }
  return { rows, end }
}

/** An empty field gives undefined. An invalid field gives NaN. */
export function readDate({ expiration_month: month, expiration_year: year }: RequestRow) {
  const isMonth = /^(?:0?[1-9]|1[0-2])$/.test(month)
  const isYear = /^\d{2}$/.test(year)
  return {
    expiration_month: month === '' ? undefined : isMonth ? Number(month) : Number.NaN,
    expiration_year: year === '' ? undefined : isYear ? CENTURY + Number(year) : Number.NaN,
  }
}

function countLines(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines++
  return lines
}

/** A field in quotes may contain commas, line breaks and doubled quotes. */
function readRecord(text: string, from: number): { fields: string[]; end: number } {
  const fields: string[] = []
  let field = ''
  for (let at = from; at < text.length; at++) {
    const character = text[at]!
    if (character === '"' && field.trim() === '') {
      const quoted = readQuoted(text, at + 1)
      field = quoted.value
      at = quoted.end
    } else if (character === ',') {
      fields.push(field)
      field = ''
    } else if (character === '\n') return { fields: [...fields, field], end: at + 1 }
    else if (character !== '\r' || text[at + 1] !== '\n') field += character
  }
  return { fields: [...fields, field], end: text.length }
}

/** `end`: the position of the closing quote, or the end of the text if the quote is not closed. */
function readQuoted(text: string, from: number): { value: string; end: number } {
  let value = ''
  for (let at = from; at < text.length; at++) {
    if (text[at] !== '"') value += text[at]
    else if (text[at + 1] === '"') value += text[at++]
    else return { value, end: at }
  }
  return { value, end: text.length }
}
