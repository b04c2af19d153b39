/** The numbers that the next row gets. */

import type { Times } from '../time.js'
import type { LogChain } from './log-chain.js'

export interface Counters extends Times {
  seq: number
  logSeq: number
  rev: number
  /** By tenant. */
  chains: Map<number, LogChain>
}

export function createCounters(): Counters {
  return { seq: 1, logSeq: 1, rev: 1, time: 0, last: 0, since: 0, until: 0, chains: new Map() }
}

export function copyCounters(counters: Counters): Counters {
  return { ...counters, chains: new Map(counters.chains) }
}
