/** Times are in ms since the epoch. A date without an offset is in UTC. */
import { validationError } from '../errors.js'

export const MONTHS =
  'January February March April May June July August September October November December'.split(' ')

export function formatDate(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}+00:00`
}

export function parseExpiry(text: string, nowMs: number): number {
  const ms = readAmerican(text) ?? readIso(text)
  if (ms === undefined) throw validationError(`must be an existing date, ${EXPIRY_FORMATS}`)
  if (ms <= nowMs) throw validationError(`must be in the future, written as ${EXPIRY_FORMATS}`)
  return ms
}

export function parseLogDate(text: string): number {
  const ms = readIso(text)
  if (ms !== undefined) return ms
  throw validationError('must be an existing ISO 8601 date such as 2030-08-27 or 2030-08-27T02:23:57Z')
}

const EXPIRY_FORMATS =
  '"M/D/YYYY h:mm:ss AM/PM +hh:mm" (without an offset: UTC), "M/D/YYYY" (12 AM UTC) ' +
  'or ISO 8601 such as 2030-08-27T02:23:57+00:00'

const AMERICAN =
  /^(\d{1,2})\/(\d{1,2})\/(\d{4})(?: (\d{1,2}):(\d{2}):(\d{2}) (AM|PM)(?: ([+-])(\d{2}):(\d{2}))?)?$/i
const ISO =
  /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:Z|([+-])(\d{2}):?(\d{2}))?)?$/i

function readAmerican(text: string): number | undefined {
  const found = AMERICAN.exec(text)
  if (found === null) return undefined
  const [, month, day, year, hour = 12, minute = 0, second = 0, half = 'AM', ...offset] = found
  if (Number(hour) < 1 || Number(hour) > 12) return undefined
  const hour24 = (Number(hour) % 12) + (half.toUpperCase() === 'PM' ? 12 : 0)
  return instant([year, month, day, hour24, minute, second], readOffset(...offset))
}

function readIso(text: string): number | undefined {
  const found = ISO.exec(text)
  if (found === null) return undefined
  const [, year, month, day, hour = 0, minute = 0, second = 0, fraction = 0, ...offset] = found
  const ms = Math.floor(Number(`0.${fraction}`) * 1000)
  return instant([year, month, day, hour, minute, second, ms], readOffset(...offset))
}

/** Returns minutes east of UTC, or undefined if the offset is not between -12:00 and +14:00. */
function readOffset(sign?: string, hours = '0', minutes = '0'): number | undefined {
  const east = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
  return Number(minutes) > 59 || east < -12 * 60 || east > 14 * 60 ? undefined : east
}

function instant(fields: readonly unknown[], eastMinutes?: number): number | undefined {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ms = 0] = fields.map(Number)
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  if (eastMinutes === undefined || hour > 23 || minute > 59 || second > 59) return undefined
  return date.setUTCHours(hour, minute - eastMinutes, second, ms)
}

const UNIT_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

export function parseDuration(text: string): number | undefined {
  const [, digits, unit = ''] = /^([1-9]\d{0,5})([smhdw])$/.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * UNIT_MS[unit]!
}

export function monthOf(date: string): string {
  return date.slice(0, '2030-01'.length)
}

export function minuteOf(date: string): string {
  return date.slice(0, '2030-01-15T12:34'.length)
}
