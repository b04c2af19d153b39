/** How many children there may be, for whom, and for how long; and what one invocation may use. */
import { DEFAULT_LIMITS, type ReactorLimits } from './limits.js'

export interface PoolSettings {
  /** The name under which the code finds its client, and which the header of the API has. */
  prefix: string
  limits: ReactorLimits
  /** `process`: a child of its own for every invocation. */
  isolation: 'pooled' | 'process'
  /** Children at a time; the last of them is never had by a caller who has another one. */
  mostChildren: number
  /** Children beyond those, for callers who have fewer than their share. */
  reservedChildren: number
  /** Children at a time that one reactor may have, so that one that hangs leaves room for others. */
  mostPerReactor: number
  /** Blank children started ahead of need. */
  spares: number
  /** ms that an idle child stays warm. */
  warmMs: number
  /** Runs of one child. */
  mostRuns: number
  mostWaiting: number
  mostWaitingOfCaller: number
  /** ms that a run may wait for a child. */
  waitMs: number
}

export const DEFAULT_SETTINGS: PoolSettings = {
  prefix: 'svc',
  limits: DEFAULT_LIMITS,
  isolation: 'pooled',
  mostChildren: 8,
  reservedChildren: 4,
  mostPerReactor: 6,
  spares: 0,
  warmMs: 60_000,
  mostRuns: 500,
  mostWaiting: 1_000,
  mostWaitingOfCaller: 100,
  waitMs: DEFAULT_LIMITS.timeMs,
}

/** Of all children under way, and of those of one caller. */
export interface Load {
  total: number
  own: number
  /** Callers who have children or wait for one. */
  callers: number
}

/**
 * Whether a caller may have one more child under way. Whoever has none gets one, out of the reserve if need be; nobody
 * who has some gets the last, and only those below their share use the reserve.
 */
export function mayUseAnother(
  { total, own, callers }: Load,
  { mostChildren, reservedChildren }: PoolSettings,
): boolean {
  const most = mostChildren + reservedChildren
  if (own === 0) return total < most
  const share = Math.floor(mostChildren / Math.max(2, callers))
  return total + 1 < (own < share ? most : mostChildren)
}
