/** Expiry goes by the wall clock, order by `seq`. Times are stored so that a jump purges nothing. */
import { formatDate } from '../domain/dates.js'
import type { ClockState } from './store.js'

/** Times of the wall clock, ms since the epoch. */
export interface Times {
  /** The latest time of any change. */
  time: number
  /** The time of the last change. */
  last: number
  /** When a jump of the clock that is not settled yet was first seen; 0 for none. */
  since: number
  /** During such a jump, records that expired by then may still be purged. */
  until: number
}

/** The numbers that the next row gets, and the times. */
export interface Counters extends Times {
  seq: number
  rev: number
}

export function createCounters(): Counters {
  return { seq: 1, rev: 1, time: 0, last: 0, since: 0, until: 0 }
}

/** A longer time without changes cannot be told from a clock that was set forward. */
const SILENCE_MS = 24 * 60 * 60 * 1000
/** A jump is settled after this long: it counts as the passing of time. */
const SETTLING_MS = 60 * 60 * 1000
/** A clock that goes back by less, or is behind the newest record by less, is not considered wrong. */
const TOLERANCE_MS = 5 * 60 * 1000

/** The times after a change at `now`. */
export function advanceTimes({ time, last, since, until }: Times, now: number): Times {
  const newest = Math.max(time, now)
  // If the clock has not gone back, `last` and `now` agree that what was due by `last` has expired.
  if (last > 0 && now - last > SILENCE_MS)
    return { time: newest, last: now, since: now, until: time === last ? last : 0 }
  if (now < last - TOLERANCE_MS) return { time: newest, last: now, since: now, until: 0 }
  if (now - since >= SETTLING_MS) return { time: newest, last: now, since: 0, until: 0 }
  return { time: newest, last: now, since, until }
}

export function clockStatus(times: Times, now: number): ClockState {
  const { since, until } = advanceTimes(times, now)
  return { isJump: since !== 0 && since !== times.since, purgeBefore: since === 0 ? now : until }
}

/** A notice that the newest record, of `time`, is dated ahead of the clock; undefined when it is not. */
export function describeAhead(time: number, now: number): string | undefined {
  if (time <= now + TOLERANCE_MS) return undefined
  const minutes = Math.round((time - now) / 60_000)
  const hours = Math.round(minutes / 60)
  const long = hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`
  const distance = minutes < 120 ? `${minutes} minutes` : long
  return (
    `The newest record of this vault is dated ${formatDate(time)}, ${distance} ahead of the clock. Set the clock if it ` +
    'is wrong. If it is right, it was wrong when that was written: nothing is lost, for expiry goes by the clock; ' +
    '`coffer vault compact` confirms the clock and ends this notice.'
  )
}

/** Whether a time is in the range; 0 (never) is in none. */
export function isWithin(time: number, range: { from?: number; below?: number }): boolean {
  return time !== 0 && time >= (range.from ?? 0) && time < (range.below ?? Number.POSITIVE_INFINITY)
}
