/** The limits of a run. The host enforces all of them. */

export interface ReactorLimits {
  /** Wall clock time from when a started child receives the work. */
  timeMs: number
  /** Limits the JavaScript heap, and the memory that a run adds to that of an idle child. */
  memoryMiB: number
  /** The JSON of `raw`, `tokenize` and `res` together. */
  resultBytes: number
  /** All console lines of a run. */
  logBytes: number
  /** Calls of the client and of `fetch`, together. */
  calls: number
  /** The JSON of the arguments of all these calls. */
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

/** Calls of a run that the host processes at a time. With answers of 4 MiB this bounds a run to 16 MiB of answers. */
export const CALLS_AT_ONCE = 4

/** The maximum size of a frame from a guest: the largest permitted message and its envelope. */
export function mostFrameBytes(limits: ReactorLimits): number {
  // JSON inside JSON: a control character takes seven bytes instead of one, other text about its own size.
  return 2 * Math.max(limits.resultBytes, 1024 * 1024) + 64 * 1024
}
