/** How many children there may be, for whom, and for how long; and what one invocation may use. */
import { DEFAULT_LIMITS, type ReactorLimits } from './limits.js'

export interface PoolSettings {
  /** The name under which the code finds its client, and which the header of the API has. */
  prefix: string
  limits: ReactorLimits
  /** `process`: a child of its own for every invocation. */
  isolation: 'pooled' | 'process'
  /** Children at a time. */
  mostChildren: number
  /** Children at a time that one reactor may have, so that one that hangs leaves room for others. */
  mostPerReactor: number
  /** Blank children started ahead of need. */
  spares: number
  /** ms that an idle child stays warm. */
  warmMs: number
  /** Runs of one child. */
  mostRuns: number
}

export const DEFAULT_SETTINGS: PoolSettings = {
  prefix: 'svc',
  limits: DEFAULT_LIMITS,
  isolation: 'pooled',
  mostChildren: 8,
  mostPerReactor: 6,
  spares: 0,
  warmMs: 60_000,
  mostRuns: 500,
}
