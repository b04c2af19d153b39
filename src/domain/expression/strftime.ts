/** Liquid's `date` filter, in UTC and English. */
import { MONTHS } from '../dates.js'
import { refuse } from './filter.js'

const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')
const DAY_MS = 86_400_000
const MAX_FORMAT_LENGTH = 400

/**
 * `value`: seconds since the epoch, or the text of a date. A date without an offset is in UTC. Any other value is
 * returned unchanged.
 */
export function formatDateFilter(value: unknown, format: unknown): unknown {
  const ms =
    typeof value === 'number' ? value * 1000 : typeof value === 'string' ? readText(value.trim()) : Number.NaN
  const date = new Date(ms)
  if (Number.isNaN(date.getTime()) || format === null || format === '') return value
  if (typeof format !== 'string' || format.length > MAX_FORMAT_LENGTH)
    refuse(`date takes a format of at most ${MAX_FORMAT_LENGTH} characters such as "%Y-%m"`)
  return formatDate(date, format)
}

function readText(text: string): number {
  if (/^(?:now|today)$/i.test(text))
    refuse('"now" and "today" cannot be used: an expression must not depend on the clock')
  if (text.length > 64) return Number.NaN
  if (/^-?\d{1,12}$/.test(text)) return Number(text) * 1000
  if (!(text.match(/[a-z]+/gi) ?? []).every(isDateWord)) return Number.NaN
  const hasZone = /(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})$/i.test(text) || /^\d{4}-\d{2}-\d{2}$/.test(text)
  const zone = /^\d{4}-\d{2}-\d{2}T/.test(text) ? 'Z' : ' UTC'
  return Date.parse(hasZone ? text : text + zone)
}

/** `Date.parse` finds a date in almost any text with a number. Therefore every word is checked first. */
function isDateWord(word: string): boolean {
  const lower = word.toLowerCase()
  if (['am', 'pm', 'utc', 'gmt', 'z', 't'].includes(lower)) return true
  return word.length >= 3 && [...MONTHS, ...DAYS].some((name) => name.toLowerCase().startsWith(lower))
}

const COMPOSED = new Map([
  ['c', '%a %b %e %H:%M:%S %Y'],
  ['D', '%m/%d/%y'],
  ['F', '%Y-%m-%d'],
  ['r', '%I:%M:%S %p'],
  ['R', '%H:%M'],
  ['T', '%H:%M:%S'],
  ['x', '%m/%d/%y'],
  ['X', '%H:%M:%S'],
])

/** `%-d` removes the padding. `%^a` changes the text to upper case. */
function formatDate(date: Date, format: string): string {
  const fields = fieldsOf(date)
  return format.replaceAll(/%([-^]?)([A-Za-z%])/g, (directive, flag: string, letter: string) => {
    const composed = COMPOSED.get(letter)
    if (composed !== undefined) return formatDate(date, composed)
    const text = fields.get(letter) ?? refuse(`date does not know "${directive}"`)
    return flag === '-' ? text.replace(/^[0 ]+(?=.)/, '') : flag === '^' ? text.toUpperCase() : text
  })
}

function fieldsOf(date: Date): Map<string, string> {
  const pad = (number: number, width = 2, character = '0') => String(number).padStart(width, character)
  const hours = date.getUTCHours()
  const day = date.getUTCDate()
  const weekday = date.getUTCDay()
  const year = date.getUTCFullYear()
  const [dayName, month] = [DAYS[weekday]!, MONTHS[date.getUTCMonth()]!]
  const dayOfYear = Math.floor((date.getTime() - Date.UTC(year, 0, 1)) / DAY_MS) + 1
  return new Map([
    ['a', dayName.slice(0, 3)],
    ['A', dayName],
    ['b', month.slice(0, 3)],
    ['B', month],
    ['d', pad(day)],
    ['e', pad(day, 2, ' ')],
    ['H', pad(hours)],
    ['I', pad(hours % 12 || 12)],
    ['j', pad(dayOfYear, 3)],
    ['l', pad(hours % 12 || 12, 2, ' ')],
    ['L', pad(date.getUTCMilliseconds(), 3)],
    ['m', pad(date.getUTCMonth() + 1)],
    ['M', pad(date.getUTCMinutes())],
    ['p', hours < 12 ? 'AM' : 'PM'],
    ['P', hours < 12 ? 'am' : 'pm'],
    ['s', String(Math.floor(date.getTime() / 1000))],
    ['S', pad(date.getUTCSeconds())],
    ['u', String(weekday || 7)],
    ['w', String(weekday)],
    ['y', pad(((year % 100) + 100) % 100)],
    ['Y', pad(year, 4)],
    ['z', '+0000'],
    ['Z', 'UTC'],
    ['%', '%'],
  ])
}
