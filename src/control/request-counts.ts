/** Counts requests for metrics. The number of time series is limited, whatever clients send. */
import type { AccessEntry } from '../http/access-log.js'

/** Upper bounds of the latency buckets, s. */
export const BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10] as const
/** Reactor code can answer with any status. Further statuses of an operation are counted together as `other`. */
const MAX_STATUSES = 20
/** Requests that match no operation: pages, unknown paths, bytes that are not HTTP. */
const NO_OPERATION = 'none'

interface Counts {
  readonly statuses: Map<number, number>
  others: number
  /** Requests in each bucket of {@link BUCKETS_S}. The last number counts slower requests. */
  readonly buckets: number[]
  sumMs: number
}

export class RequestCounts {
  readonly #byOperation = new Map<string, Counts>()

  readonly add = ({ operation = NO_OPERATION, status, ms }: AccessEntry): void => {
    let counts = this.#byOperation.get(operation)
    if (counts === undefined) {
      counts = { statuses: new Map(), others: 0, buckets: new Array(BUCKETS_S.length + 1).fill(0), sumMs: 0 }
      this.#byOperation.set(operation, counts)
    }
    const { statuses, buckets } = counts
    const known = statuses.get(status)
    if (known !== undefined || statuses.size < MAX_STATUSES) statuses.set(status, (known ?? 0) + 1)
    else counts.others++
    let at = 0
    while (at < BUCKETS_S.length && ms > BUCKETS_S[at]! * 1000) at++
    buckets[at]!++
    counts.sumMs += ms
  }

  list(): [operation: string, counts: Readonly<Counts>][] {
    return [...this.#byOperation].sort(([one], [other]) => (one < other ? -1 : 1))
  }
}
