/**
 * The vault's time. Expiry goes by the wall clock and order by numbers; what is kept of the clock serves to notice one
 * that went wrong, so that nothing is destroyed under it.
 */
import { formatDate } from '../domain/dates.js'

/** Where the clock stood, ms since the epoch. */
export interface Times {
  /** The latest that anything was written at. */
  time: number
  /** When the newest of what there is was written. */
  last: number
  /** When a jump of the clock was first seen that it has not outlived yet; 0 for none. */
  since: number
}

/**
 * What a unit of work may take the clock for. `steady`: what expired may be destroyed. `jumped`: it may not, and this is
 * the first that sees the jump. `settling`: it may not yet.
 */
export type ClockState = 'steady' | 'jumped' | 'settling'

/** A longer silence is no different from a clock that was set forward. */
const SILENCE_MS = 24 * 60 * 60 * 1000
/** So long a jump has to last before it counts as the passing of time. */
const SETTLING_MS = 60 * 60 * 1000
/** A clock that is corrected by less has not gone back, and one that is behind by less is not wrong. */
const TOLERANCE_MS = 5 * 60 * 1000

/** The times once something was written at `now`. */
export function passTime({ time, last, since }: Times, now: number): Times {
  const isJump = last > 0 && (now - last > SILENCE_MS || now < last - TOLERANCE_MS)
  const isOutlived = now - since >= SETTLING_MS
  return { time: Math.max(time, now), last: now, since: isJump ? now : isOutlived ? 0 : since }
}

export function judgeClock(times: Times, now: number): ClockState {
  const { since } = passTime(times, now)
  if (since === 0) return 'steady'
  return since === times.since ? 'settling' : 'jumped'
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
