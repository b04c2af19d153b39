/** The numbers that the next row gets. */
import type { Times } from '../time.js'

export interface Counters extends Times {
  seq: number
  rev: number
}

export function createCounters(): Counters {
  return { seq: 1, rev: 1, time: 0, last: 0, since: 0, until: 0 }
}
