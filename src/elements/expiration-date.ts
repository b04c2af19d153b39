import { missing } from './errors.js'
import type { Reading } from './reading.js'

export interface DateOptions {
  /** The field accepts a card that expired at most this number of years ago. Default: 0. */
  maxElapsedExpirationYear?: number | undefined
  showSpacing?: boolean | undefined
}

export interface MonthAndYear {
  month: number
  /** Four digits. */
  year: number
}

const CENTURY = 2000

/** Formats digits as `MM/YY`. A browser may fill in a year of four digits. */
export function formatDate(text: string, { showSpacing = false }: DateOptions): string {
  const slash = showSpacing ? ' / ' : '/'
  const [, first = '', given, second = ''] = /^\D*(\d*)\s*(\/?)(.*)$/.exec(text.trimStart())!
  const isShortMonth = /^[2-9]/.test(first) || (given === '/' && /^[1-9]$/.test(first))
  const digits = (isShortMonth ? '0' : '') + first + second.replaceAll(/\D/g, '')
  const month = digits.slice(0, 2)
  const rest = digits.slice(2)
  if (rest !== '') return `${month}${slash}${formatYear(rest)}`
  return given === '/' && month.length === 2 ? `${month}${slash}` : month
}

/**
 * Returns the last two digits of a year of four digits. A shorter year that begins with 20 is not cut, because the user
 * can still complete a year of four digits.
 */
function formatYear(digits: string): string {
  if (!digits.startsWith('20')) return digits.slice(0, 2)
  return digits.length >= 4 ? digits.slice(2, 4) : digits
}

export function readDate(text: string, options: DateOptions, now: Date): Reading {
  const value = text.replaceAll(' ', '')
  const date = parseDate(value)
  const isLong = /^\d\d\/\d\d$/.test(value)
  const isValid = date !== undefined && !isPast(date, options, now)
  const fault = isValid ? undefined : isLong || isMonthWrong(value) ? 'invalid' : 'incomplete'
  return { value, isEmpty: value === '', isComplete: isValid, isValid, fault }
}

/** Returns undefined if the text is not `MM/YY` with a month from 01 to 12. */
export function parseDate(text: string): MonthAndYear | undefined {
  const [, month, year] = /^(0[1-9]|1[0-2])\/(\d\d)$/.exec(text) ?? []
  return month === undefined ? undefined : { month: Number(month), year: CENTURY + Number(year) }
}

function isMonthWrong(text: string): boolean {
  return /^\d\d/.test(text) && !/^(?:0[1-9]|1[0-2])/.test(text)
}

/** A card is valid until the end of its month. */
function isPast({ month, year }: MonthAndYear, { maxElapsedExpirationYear = 0 }: DateOptions, now: Date) {
  const oldest = (now.getFullYear() - maxElapsedExpirationYear) * 12 + now.getMonth() + 1
  return year * 12 + month < oldest
}

const TOKEN = /'([^']*)'|yyyy|yy|MM|M|[A-Za-z]+|[^A-Za-z']+/g

/** Formats a date with the patterns `yyyy`, `yy`, `MM` and `M` of Luxon. @throws Error that names any other pattern */
export function printDate({ month, year }: MonthAndYear, pattern: string): string {
  const known: Record<string, string> = {
    yyyy: String(year),
    yy: String(year % 100).padStart(2, '0'),
    MM: String(month).padStart(2, '0'),
    M: String(month),
  }
  return pattern.replaceAll(TOKEN, (token, quoted?: string) => {
    if (quoted !== undefined) return quoted
    if (!/^[A-Za-z]/.test(token)) return token
    const text = known[token]
    if (text === undefined) throw missing(`the date pattern "${token}" (only yyyy, yy, MM and M)`)
    return text
  })
}
