import { omitUndefined } from '../domain/omit-undefined.js'
import { settingOf } from '../domain/settings.js'
import type { ReactorOptions } from '../framework/ports/reactors.js'

export type ReactorLimits = typeof DEFAULT_LIMITS

export const DEFAULT_LIMITS = {
  /** Wall clock time since a started child received the work. */
  timeMs: 30_000,
  /** {@link DEFAULT_LIMITS.timeMs} of asynchronous runs. */
  asyncTimeMs: 900_000,
  /** Limits the JavaScript heap, and the memory that a run adds to an idle child's. */
  memoryMiB: 128,
  /** The JSON of `raw`, `tokenize` and `res` together. */
  resultBytes: 1024 * 1024,
  logBytes: 256 * 1024,
  calls: 1_000,
  callBytes: 16 * 1024 * 1024,
}

/** What a child is started with. All its runs have these limits. */
export interface GuestSize {
  /** The limit of the JavaScript heap. */
  memoryMiB: number
  /** The time of all its runs together after which it gets no further run. */
  busyMs: number
  /** The limit of one run. */
  longestMs: number
}

export function guestSizeOf(limits: ReactorLimits, isAsync: boolean): GuestSize {
  const { memoryMiB, timeMs, asyncTimeMs } = limits
  return { memoryMiB, busyMs: timeMs, longestMs: isAsync ? asyncTimeMs : timeMs }
}

const MIN_WAIT_MS = 10_000

export type PoolSettings = typeof DEFAULT_SETTINGS & Pick<ReactorOptions, 'time'>

export const DEFAULT_SETTINGS = {
  /** The name of the client in the request. It is also the prefix of the API's headers. */
  prefix: 'svc',
  limits: DEFAULT_LIMITS,
  isolation: 'pooled' as 'pooled' | 'process',
  /** Children at a time. The last free child is not for a caller who already uses one. */
  maxChildren: 8,
  /** Additional children, for callers who use fewer than their share. */
  reservedChildren: 4,
  /** Children at a time of one reactor, so that a hanging reactor leaves children for others. */
  maxPerReactor: 6,
  spares: 0,
  /** An idle child is ended after this time. */
  warmMs: 60_000,
  maxRuns: 500,
  maxWaiting: 1_000,
  maxWaitingOfCaller: 100,
  /** Maximum ms that a run waits for a child. An asynchronous run waits for its own time limit if that is longer. */
  waitMs: DEFAULT_LIMITS.timeMs,
}

export interface PoolClock {
  /** ms of a monotonic clock. */
  now(): number
  /** Calls `work` after `delayMs`. The returned function cancels the call. */
  after(delayMs: number, work: () => void): () => void
}

/** `values`: the stored settings of the vault. */
export function readPoolSettings(
  values: Readonly<Record<string, unknown>>,
  { prefix, spares, time }: ReactorOptions,
): PoolSettings {
  const timeMs = settingOf(values, 'reactors.time_limit_ms')
  return {
    ...DEFAULT_SETTINGS,
    isolation: settingOf(values, 'reactors.isolation'),
    // A run must be able to wait for another run of maximum duration.
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
