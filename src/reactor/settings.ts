import { omitUndefined } from '../domain/omit-undefined.js'
import { settingOf } from '../domain/settings.js'
import type { ReactorOptions } from '../framework/ports/reactors.js'

export type ReactorLimits = typeof DEFAULT_LIMITS

export const DEFAULT_LIMITS = {
  /** Wall clock time of a run, from the moment when a started child has received the work. */
  timeMs: 30_000,
  asyncTimeMs: 900_000,
  /** The limit for the JavaScript heap, and for the memory that a run adds to an idle child. */
  memoryMiB: 128,
  /** The JSON of `raw`, `tokenize` and `res` together. */
  resultBytes: 1024 * 1024,
  logBytes: 256 * 1024,
  calls: 1_000,
  callBytes: 16 * 1024 * 1024,
}

/** A child is started with these limits, which apply to all its runs. */
export interface GuestSize {
  memoryMiB: number
  /** When the runs of a child have taken this time in total, the child gets no further run. */
  busyMs: number
  longestMs: number
}

export function guestSizeOf(limits: ReactorLimits, isAsync: boolean): GuestSize {
  const { memoryMiB, timeMs, asyncTimeMs } = limits
  return { memoryMiB, busyMs: timeMs, longestMs: isAsync ? asyncTimeMs : timeMs }
}

const MIN_WAIT_MS = 10_000

export type PoolSettings = typeof DEFAULT_SETTINGS & Pick<ReactorOptions, 'time'>

export const DEFAULT_SETTINGS = {
  /** The name of the client in the request of the code, and the prefix of the API's header names. */
  prefix: 'svc',
  limits: DEFAULT_LIMITS,
  isolation: 'pooled' as 'pooled' | 'process',
  /** The maximum number of children. A caller who already uses a child does not get the last free child. */
  maxChildren: 8,
  /** More children, only for callers who use fewer children than their share. */
  reservedChildren: 4,
  /** The maximum number of children of one reactor, so that a reactor that hangs leaves children for other reactors. */
  maxPerReactor: 6,
  spares: 0,
  /** An idle child is ended after this time. */
  warmMs: 60_000,
  maxRuns: 500,
  maxWaiting: 1_000,
  maxWaitingOfCaller: 100,
  /** A run waits at most this time for a child. An asynchronous run may wait up to `limits.asyncTimeMs`. */
  waitMs: DEFAULT_LIMITS.timeMs,
}

export interface PoolClock {
  /** ms of a monotonic clock. */
  now(): number
  after(delayMs: number, work: () => void): () => void
}

export function readPoolSettings(
  values: Readonly<Record<string, unknown>>,
  { prefix, spares, time }: ReactorOptions,
): PoolSettings {
  const timeMs = settingOf(values, 'reactors.time_limit_ms')
  return {
    ...DEFAULT_SETTINGS,
    isolation: settingOf(values, 'reactors.isolation'),
    // A run must be able to wait for the longest possible run of another caller.
    waitMs: Math.max(timeMs, MIN_WAIT_MS),
    limits: {
      ...DEFAULT_LIMITS,
      timeMs,
      asyncTimeMs: settingOf(values, 'reactors.async_time_limit_ms'),
      memoryMiB: settingOf(values, 'reactors.memory_limit_mib'),
      resultBytes: settingOf(values, 'reactors.result_limit_bytes'),
    },
    ...omitUndefined({ prefix, spares, time }),
  }
}
