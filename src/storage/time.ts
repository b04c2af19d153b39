/**
 * Rows expire by the wall clock. This file detects jumps of the wall clock. For an hour after a jump, the clock may be
 * wrong, so only records that had certainly expired before the jump may be purged.
 */
import { formatDate } from '../domain/dates.js'
import type { ClockState } from './store.js'

/** Times of the wall clock, ms since the epoch. */
export interface Times {
  /** The latest time of any change. */
  time: number
  /** The time of the last change. `last` is earlier than `time` if the clock has gone back. */
  last: number
  /**
   * The time when the current jump of the clock was first seen. 0: the clock has not jumped, or the jump is settled.
   */
  since: number
  /** While the jump is not settled, only records that expired by this time may be purged. */
  until: number
}

export interface Counters extends Times {
  seq: number
  rev: number
}

export function createCounters(): Counters {
  return { seq: 1, rev: 1, time: 0, last: 0, since: 0, until: 0 }
}

/**
 * If the last change is longer ago than this, the clock counts as having jumped, because Coffer cannot distinguish a
 * long pause from a clock that was set forward.
 */
const SILENCE_MS = 24 * 60 * 60 * 1000
/** After this time, a jump is settled: the new time is trusted. */
const SETTLING_MS = 60 * 60 * 1000
/**
 * If the clock goes back by at most this time, or is behind the newest record by at most this time, the difference is
 * ignored.
 */
const TOLERANCE_MS = 5 * 60 * 1000

export function advanceTimes({ time, last, since, until }: Times, now: number): Times {
  const newest = Math.max(time, now)
  // If the clock never went back, records that had expired at `last` have certainly expired.
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

/** `time`: the time of the newest record. Returns undefined if it is at most 5 minutes ahead of the clock. */
export function describeAhead(time: number, now: number): string | undefined {
  if (time <= now + TOLERANCE_MS) return undefined
  const minutes = Math.round((time - now) / 60_000)
  const hours = Math.round(minutes / 60)
  const long = hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`
  const distance = minutes < 120 ? `${minutes} minutes` : long
  return (
    `The newest record of this vault is dated ${formatDate(time)}, ${distance} ahead of the clock. ` +
    'If the clock is wrong, set it. If the clock is right, the record was written while the clock was wrong, and nothing is lost. ' +
    'Confirm the clock and end this notice with: coffer vault compact'
  )
}

/** Returns whether a time is in a range. The time 0 means never, and no range contains 0. */
export function isWithin(time: number, range: { from?: number; below?: number }): boolean {
  return time !== 0 && time >= (range.from ?? 0) && time < (range.below ?? Number.POSITIVE_INFINITY)
}
