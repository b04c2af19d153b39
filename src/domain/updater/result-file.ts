/** Writes the result of a batch job as CSV (RFC 4180), but ends each line with a line feed. */
import type { RequestRow } from './request-file.js'
import type { ResultCode, ResultVersion } from './result-codes.js'

const COLUMNS = [
  'token',
  'expiration_year',
  'expiration_month',
  'new_token',
  'new_expiration_year',
  'new_expiration_month',
  'result_code',
] as const
const ADDED: Record<ResultVersion, readonly string[]> = {
  '1': [],
  '1.1': ['new_fingerprint', 'new_brand'],
  '1.2': ['new_fingerprint', 'new_brand', 'new_last4'],
}

export interface ResultRow extends RequestRow {
  code: ResultCode
  new_token?: string | undefined
  /** Present only if the date has changed. */
  new_expiration_month?: number | undefined
  new_expiration_year?: number | undefined
  new_fingerprint?: string | undefined
  new_brand?: string | undefined
  new_last4?: string | undefined
}

export function formatHeader(version: ResultVersion): string {
  return formatLine([...COLUMNS, ...ADDED[version]])
}

export function formatRow(row: ResultRow, version: ResultVersion): string {
  const values: Readonly<Record<string, string | undefined>> = {
    ...row,
    result_code: row.code,
    new_expiration_month: twoDigits(row.new_expiration_month),
    new_expiration_year: twoDigits(row.new_expiration_year),
  }
  return formatLine([...COLUMNS, ...ADDED[version]].map((name) => values[name] ?? ''))
}

function twoDigits(value: number | undefined): string | undefined {
  return value === undefined ? undefined : String(value % 100).padStart(2, '0')
}

function formatLine(fields: readonly string[]): string {
  return `${fields.map(quote).join(',')}\n`
}

function quote(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}
