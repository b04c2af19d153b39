/** The clock and timers of the pool. Tests pass their own. */

export interface PoolClock {
  /** ms of a monotonic clock. */
  now(): number
  /** Calls `work` after `delayMs`; the result cancels it. */
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
