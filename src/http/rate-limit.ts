import { BoundedMap } from '../bounded-map.js'
import { usage } from '../errors.js'

export interface Rate {
  count: number
  periodMs: number
}

export type RateLimit = ReturnType<typeof createRateLimit>

const UNITS_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000 }
/**
 * At this number of buckets, the least recently used bucket is dropped, and its caller starts with a full bucket again.
 */
const MAX_BUCKETS = 10_000

export function parseRate(text: string): Rate {
  const [, digits = '', unit = ''] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? []
  if (digits === '') throw usage('--rate-limit takes a number for a second, minute or hour: 100/s.')
  return { count: Number(digits), periodMs: UNITS_MS[unit]! }
}

/** One token bucket of size `count` for each caller, refilled evenly. `clock` is in ms. */
export function createRateLimit({ count, periodMs }: Rate, clock: () => number) {
  const buckets = new BoundedMap<string, { left: number; at: number }>(MAX_BUCKETS)
  const leftOf = (who: string, now: number) => {
    const known = buckets.get(who)
    return known === undefined ? count : Math.min(count, known.left + ((now - known.at) * count) / periodMs)
  }
  const waitFor = (left: number) =>
    left >= 1 ? 0 : Math.max(1, Math.ceil(((1 - left) * periodMs) / count / 1000))
  return {
    /** Returns whole seconds until the next request of `who` is allowed, or 0 if it is allowed now. */
    wait: (who: string): number => waitFor(leftOf(who, clock())),
    /** Like `wait`, but also counts the request if it is allowed now. */
    take(who: string): number {
      const now = clock()
      const left = leftOf(who, now)
      buckets.set(who, { left: left >= 1 ? left - 1 : left, at: now })
      return waitFor(left)
    },
  }
}
