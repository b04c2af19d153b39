/** Liquid's `date` filter, always in UTC and English: it depends on neither clock nor locale of the machine. */
import { validationError } from '../../errors.js'
import { MONTHS } from '../dates.js'

const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')
const DAY_MS = 86_400_000
const MAX_WIDTH = 100
const MAX_FORMAT_LENGTH = 400

/**
 * Formats a value (seconds since the epoch, or a date as text). Texts without an offset are UTC. A value that is not a
 * date is returned unchanged, as in Liquid.
 * @throws CofferError `validation` for `now` and `today`, which depend on the clock.
 */
export function formatDateFilter(value: unknown, format: unknown): unknown {
  const date = readInstant(value)
  if (date === undefined || format === null || format === '') return value
  if (typeof format !== 'string' || format.length > MAX_FORMAT_LENGTH)
    throw validationError(`date takes a format of at most ${MAX_FORMAT_LENGTH} characters such as "%Y-%m"`)
  return formatInstant(date, format)
}

function readInstant(value: unknown): Date | undefined {
  const ms =
    typeof value === 'number' ? value * 1000 : typeof value === 'string' ? readText(value.trim()) : Number.NaN
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? undefined : date
}

function readText(text: string): number {
  if (/^(?:now|today)$/i.test(text))
    throw validationError('"now" and "today" cannot be used: an expression must not depend on the clock')
  if (text.length > 64) return Number.NaN
  if (/^-?\d{1,12}$/.test(text)) return Number(text) * 1000
  if (!(text.match(/[a-z]+/gi) ?? []).every(isDateWord)) return Number.NaN
  const hasZone = /(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})$/i.test(text) || /^\d{4}-\d{2}-\d{2}$/.test(text)
  const zone = /^\d{4}-\d{2}-\d{2}T/.test(text) ? 'Z' : ' UTC'
  return Date.parse(hasZone ? text : text + zone)
}

/** Necessary because `Date.parse` finds a date in almost any text with a number. */
function isDateWord(word: string): boolean {
  const lower = word.toLowerCase()
  if (['am', 'pm', 'utc', 'gmt', 'z', 't'].includes(lower)) return true
  return word.length >= 3 && [...MONTHS, ...DAYS].some((name) => name.toLowerCase().startsWith(lower))
}

// ---------------------------------------------------------------- strftime

type Field = (date: Date) => string | number

/** Padding character, width and value of each directive. */
const FIELDS = new Map<string, [pad: '' | '0' | ' ', width: number, field: Field]>([
  ['a', ['', 0, (date) => DAYS[date.getUTCDay()]!.slice(0, 3)]],
  ['A', ['', 0, (date) => DAYS[date.getUTCDay()]!]],
  ['b', ['', 0, (date) => MONTHS[date.getUTCMonth()]!.slice(0, 3)]],
  ['h', ['', 0, (date) => MONTHS[date.getUTCMonth()]!.slice(0, 3)]],
  ['B', ['', 0, (date) => MONTHS[date.getUTCMonth()]!]],
  ['c', ['', 0, (date) => formatInstant(date, '%a %b %e %H:%M:%S %Y')]],
  ['C', ['0', 2, (date) => Math.floor(date.getUTCFullYear() / 100)]],
  ['d', ['0', 2, (date) => date.getUTCDate()]],
  ['D', ['', 0, (date) => formatInstant(date, '%m/%d/%y')]],
  ['e', [' ', 2, (date) => date.getUTCDate()]],
  ['F', ['', 0, (date) => formatInstant(date, '%Y-%m-%d')]],
  ['H', ['0', 2, (date) => date.getUTCHours()]],
  ['I', ['0', 2, (date) => date.getUTCHours() % 12 || 12]],
  ['j', ['0', 3, dayOfYear]],
  ['k', [' ', 2, (date) => date.getUTCHours()]],
  ['l', [' ', 2, (date) => date.getUTCHours() % 12 || 12]],
  ['L', ['0', 3, (date) => date.getUTCMilliseconds()]],
  ['m', ['0', 2, (date) => date.getUTCMonth() + 1]],
  ['M', ['0', 2, (date) => date.getUTCMinutes()]],
  ['n', ['', 0, () => '\n']],
  ['N', ['', 0, (date) => `${String(date.getUTCMilliseconds()).padStart(3, '0')}000000`]],
  ['p', ['', 0, (date) => (date.getUTCHours() < 12 ? 'AM' : 'PM')]],
  ['P', ['', 0, (date) => (date.getUTCHours() < 12 ? 'am' : 'pm')]],
  ['r', ['', 0, (date) => formatInstant(date, '%I:%M:%S %p')]],
  ['R', ['', 0, (date) => formatInstant(date, '%H:%M')]],
  ['s', ['', 0, (date) => Math.floor(date.getTime() / 1000)]],
  ['S', ['0', 2, (date) => date.getUTCSeconds()]],
  ['t', ['', 0, () => '\t']],
  ['T', ['', 0, (date) => formatInstant(date, '%H:%M:%S')]],
  ['u', ['', 0, (date) => date.getUTCDay() || 7]],
  ['U', ['0', 2, (date) => weekOfYear(date, 0)]],
  ['w', ['', 0, (date) => date.getUTCDay()]],
  ['W', ['0', 2, (date) => weekOfYear(date, 1)]],
  ['x', ['', 0, (date) => formatInstant(date, '%m/%d/%y')]],
  ['X', ['', 0, (date) => formatInstant(date, '%H:%M:%S')]],
  ['y', ['0', 2, (date) => ((date.getUTCFullYear() % 100) + 100) % 100]],
  ['Y', ['0', 4, (date) => date.getUTCFullYear()]],
  ['z', ['', 0, () => '+0000']],
  ['Z', ['', 0, () => 'UTC']],
  ['%', ['', 0, () => '%']],
])

/** Supports the flags `-` (no padding), `_` (spaces), `0` (zeros), `^` (upper case) and a width. */
function formatInstant(date: Date, format: string): string {
  return format.replace(
    /%([-_0^]*)(\d*)([A-Za-z%])/g,
    (directive, flags: string, width: string, letter: string) => {
      const entry = FIELDS.get(letter)
      if (entry === undefined) return directive
      const [pad, least, field] = entry
      const character = flags.includes('_') ? ' ' : flags.includes('0') ? '0' : pad || ' '
      const length = flags.includes('-') ? 0 : Math.min(Number(width) || least, MAX_WIDTH)
      const text = String(field(date)).padStart(length, character)
      return flags.includes('^') ? text.toUpperCase() : text
    },
  )
}

function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / DAY_MS) + 1
}

/** Days before the first `startDay` (0 Sunday) of the year are in week 0. */
function weekOfYear(date: Date, startDay: number): number {
  return Math.floor((dayOfYear(date) + 6 - ((date.getUTCDay() - startDay + 7) % 7)) / 7)
}
