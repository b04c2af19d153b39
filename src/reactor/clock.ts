/** Time as the pool uses it: a reading, and work put off. Tests pass one that they turn by hand. */
import { performance } from 'node:perf_hooks'

export interface PoolClock {
  /** ms of a clock that never goes back. */
  now(): number
  /** Does `work` after `delayMs`; the result calls it off. */
  after(delayMs: number, work: () => void): () => void
}

export function createPoolClock(): PoolClock {
  return {
    now: () => performance.now(),
    after: (delayMs, work) => {
      const timer = setTimeout(work, delayMs)
      return () => clearTimeout(timer)
    },
  }
}
