/**
 * The vault's time. Expiry goes by the wall clock and order by numbers; what is kept of the clock serves to notice one
 * that went wrong, so that nothing is destroyed under it.
 */
import { formatDate } from '../../domain/dates.js'
import type { ClockState } from '../store.js'

/** Where the clock stood, ms since the epoch. */
export interface Times {
  /** The latest that anything was written at. */
  time: number
  /** When the newest of what there is was written. */
  last: number
  /** When a jump of the clock was first seen that it has not outlived yet; 0 for none. */
  since: number
  /** While there is such a jump: what expired by then may be purged all the same. */
  until: number
}

/** A longer silence is no different from a clock that was set forward. */
const SILENCE_MS = 24 * 60 * 60 * 1000
/** So long a jump has to last before it counts as the passing of time. */
const SETTLING_MS = 60 * 60 * 1000
/** A clock that is corrected by less has not gone back, and one that is behind by less is not wrong. */
const TOLERANCE_MS = 5 * 60 * 1000

/** The times once something was written at `now`. */
export function passTime({ time, last, since, until }: Times, now: number): Times {
  const newest = Math.max(time, now)
  // What had expired before a silence is over by two looks at a clock that has not gone back.
  if (last > 0 && now - last > SILENCE_MS)
    return { time: newest, last: now, since: now, until: time === last ? last : 0 }
  if (now < last - TOLERANCE_MS) return { time: newest, last: now, since: now, until: 0 }
  if (now - since >= SETTLING_MS) return { time: newest, last: now, since: 0, until: 0 }
  return { time: newest, last: now, since, until }
}

export function judgeClock(times: Times, now: number): ClockState {
  const { since, until } = passTime(times, now)
  return { isJump: since !== 0 && since !== times.since, purgeUntil: since === 0 ? now : until }
}

export function isAhead(time: number, now: number): boolean {
  return time > now + TOLERANCE_MS
}

/** What to tell somebody whose newest record is dated `time`, if that is ahead of the clock. */
export function describeAhead(time: number, now: number): string | undefined {
  if (!isAhead(time, now)) return undefined
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
