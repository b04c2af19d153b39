/**
 * Rows expire by the wall clock, but are ordered by `seq`. The engine stores times to detect a jump of the clock, because a
 * jump must not purge records.
 */
import { formatDate } from '../domain/dates.js'
import type { ClockState } from './store.js'

/** Times of the wall clock, ms since the epoch. */
export interface Times {
  /** The latest time of any change. */
  time: number
  /** The time of the last change. */
  last: number
  /** When the current jump of the clock was first seen. 0: there is none, or it is settled. */
  since: number
  /** During the jump, records that expired until this time may still be purged. */
  until: number
}

/** The `seq` and `rev` of the next row, and the times. */
export interface Counters extends Times {
  seq: number
  rev: number
}

export function createCounters(): Counters {
  return { seq: 1, rev: 1, time: 0, last: 0, since: 0, until: 0 }
}

/** A longer time without changes looks like a clock that was set forward, so it counts as a jump. */
const SILENCE_MS = 24 * 60 * 60 * 1000
/** A jump is settled after this time. From then on, the new time is trusted. */
const SETTLING_MS = 60 * 60 * 1000
/** Smaller deviations are normal: a step back of the clock, or a newest record that is dated ahead of the clock. */
const TOLERANCE_MS = 5 * 60 * 1000

export function advanceTimes({ time, last, since, until }: Times, now: number): Times {
  const newest = Math.max(time, now)
  // If the clock never went back, records that had expired at `last` have surely expired.
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

/** Returns a notice if the newest record, of `time`, is dated ahead of the clock. */
export function describeAhead(time: number, now: number): string | undefined {
  if (time <= now + TOLERANCE_MS) return undefined
  const minutes = Math.round((time - now) / 60_000)
  const hours = Math.round(minutes / 60)
  const long = hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`
  const distance = minutes < 120 ? `${minutes} minutes` : long
  return (
    `The newest record of this vault is dated ${formatDate(time)}, ${distance} ahead of the clock. If the clock is ` +
    'wrong, set it. If it is right, the record was written while the clock was wrong, and nothing is lost. ' +
    'Confirm the clock and end this notice with: coffer vault compact'
  )
}

/** 0 (never) is in no range. */
export function isWithin(time: number, range: { from?: number; below?: number }): boolean {
  return time !== 0 && time >= (range.from ?? 0) && time < (range.below ?? Number.POSITIVE_INFINITY)
}
