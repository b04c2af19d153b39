const UNITS = [
  ['d', 24 * 60 * 60],
  ['h', 60 * 60],
  ['min', 60],
  ['s', 1],
] as const
const MAX_DAYS = 60

/**
 * Formats a time in the future, for example as `in 5 min`, rounded down. Returns a date if the time is more than 60
 * days ahead, and `expired` if it has passed.
 */
export function formatAhead(date: string, nowMs: number): string {
  const seconds = Math.floor((Date.parse(date) - nowMs) / 1000)
  return seconds < 0 ? 'expired' : (formatSpan(seconds, 'in ', '') ?? date.slice(0, 10))
}

/**
 * Formats a time in the past, for example as `5 min ago`. Returns a date if the time is more than 60 days ago or in the
 * future.
 */
export function formatAge(date: string, nowMs: number): string {
  const seconds = Math.floor((nowMs - Date.parse(date)) / 1000)
  return (seconds < 0 ? undefined : formatSpan(seconds, '', ' ago')) ?? date.slice(0, 10)
}

function formatSpan(seconds: number, before: string, after: string): string | undefined {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ['s', 1]
  const count = Math.floor(seconds / size)
  return unit === 'd' && count > MAX_DAYS ? undefined : `${before}${count} ${unit}${after}`
}
