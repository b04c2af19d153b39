import { omitUndefined } from '../domain/omit-undefined.js'
import { settingOf } from '../domain/settings.js'
import type { ReactorOptions } from '../framework/ports/reactors.js'

export type ReactorLimits = typeof DEFAULT_LIMITS

export const DEFAULT_LIMITS = {
  /** The time limit of a run, in ms of wall clock time. The time begins when a started child has received the work. */
  timeMs: 30_000,
  /** Like {@link DEFAULT_LIMITS.timeMs}, for asynchronous runs. */
  asyncTimeMs: 900_000,
  /** The limit for the JavaScript heap. The memory that a run adds to an idle child has this limit too. */
  memoryMiB: 128,
  /** The limit for the JSON of `raw`, `tokenize` and `res` together. */
  resultBytes: 1024 * 1024,
  logBytes: 256 * 1024,
  calls: 1_000,
  callBytes: 16 * 1024 * 1024,
}

/** The limits with which a child is started. These limits apply to all runs of the child. */
export interface GuestSize {
  /** The limit of the JavaScript heap. */
  memoryMiB: number
  /** In ms. When all runs of a child together have taken this time, the child gets no further run. */
  busyMs: number
  /** In ms: the limit of one run. */
  longestMs: number
}

export function guestSizeOf(limits: ReactorLimits, isAsync: boolean): GuestSize {
  const { memoryMiB, timeMs, asyncTimeMs } = limits
  return { memoryMiB, busyMs: timeMs, longestMs: isAsync ? asyncTimeMs : timeMs }
}

const MIN_WAIT_MS = 10_000

export type PoolSettings = typeof DEFAULT_SETTINGS & Pick<ReactorOptions, 'time'>

export const DEFAULT_SETTINGS = {
  /** The name of the client in the request. This name is also the prefix of the API's headers. */
  prefix: 'svc',
  limits: DEFAULT_LIMITS,
  isolation: 'pooled' as 'pooled' | 'process',
  /** The number of children at a time. A caller who already uses a child does not get the last free child. */
  maxChildren: 8,
  /**
   * The number of additional children. Only callers who use fewer children than their share get the additional
   * children.
   */
  reservedChildren: 4,
  /**
   * The number of children of one reactor at a time. A reactor that hangs thus leaves children for other reactors.
   */
  maxPerReactor: 6,
  spares: 0,
  /** An idle child is ended after this time. */
  warmMs: 60_000,
  maxRuns: 500,
  maxWaiting: 1_000,
  maxWaitingOfCaller: 100,
  /**
   * Maximum ms that a run waits for a child. For an asynchronous run, the maximum is the time limit of asynchronous
   * runs if that limit is longer.
   */
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
    // A run must be able to wait until another run has used its maximum time.
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
