import type { ReactorOptions } from '../framework/ports/reactors.js'

/** The limits of a run. The host enforces all of them. */
export interface ReactorLimits {
  /** Wall clock time from when a started child receives the work. */
  timeMs: number
  /** Limits the JavaScript heap, and the memory that a run adds to that of an idle child. */
  memoryMiB: number
  /** The JSON of `raw`, `tokenize` and `res` together. */
  resultBytes: number
  logBytes: number
  calls: number
  callBytes: number
}

export const DEFAULT_LIMITS: ReactorLimits = {
  timeMs: 10_000,
  memoryMiB: 128,
  resultBytes: 1024 * 1024,
  logBytes: 256 * 1024,
  calls: 1_000,
  callBytes: 16 * 1024 * 1024,
}

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
  spares: number
  /** ms after which an idle child is ended. */
  warmMs: number
  mostRuns: number
  mostWaiting: number
  mostWaitingOfCaller: number
  /** Maximum time in ms that a run waits for a child. */
  waitMs: number
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

/** The clock and timers of the pool. Tests pass their own. */
export interface PoolClock {
  /** ms of a monotonic clock. */
  now(): number
  /** Calls `work` after `delayMs`; the result cancels it. */
  after(delayMs: number, work: () => void): () => void
}
