/** The settings of the pool: the number of children, how they are shared between callers, and the limits of a run. */
import type { ReactorOptions } from '../framework/ports/reactors.js'
import { DEFAULT_LIMITS, type ReactorLimits } from './limits.js'

export interface PoolSettings {
  /** The property of the request that has the client; the same as the prefix of the API's headers. */
  prefix: string
  limits: ReactorLimits
  /** `process`: a new child for every run. */
  isolation: 'pooled' | 'process'
  /** Children at a time. A caller who uses one already does not get the last of them. */
  mostChildren: number
  /** Additional children, for callers who use fewer than their share. */
  reservedChildren: number
  /** Children at a time of one reactor, so that a reactor that hangs leaves children for others. */
  mostPerReactor: number
  /** Children without an assignment that are started in advance. */
  spares: number
  /** ms after which an idle child is ended. */
  warmMs: number
  /** Runs after which a child is ended. */
  mostRuns: number
  mostWaiting: number
  mostWaitingOfCaller: number
  /** Maximum time in ms that a run waits for a child. */
  waitMs: number
  /** The time that runs see; absent for the real time. */
  time?: ReactorOptions['time']
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

/** The numbers of busy children in total and of one caller. */
interface Load {
  total: number
  own: number
  /** The number of callers who use children or wait for one. */
  callers: number
}

/**
 * A caller without a child gets one, from the reserve if necessary. A caller with children never gets the last child, and
 * uses the reserve only below its share.
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
