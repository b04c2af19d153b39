/** What one invocation may use. Every limit is counted by the host; the guest is trusted with none of them. */

export interface ReactorLimits {
  /** Wall clock, from the moment a started child gets the work. */
  timeMs: number
  /** Of the JavaScript heap, and of what a run may add to the memory of an idle child. */
  memoryMiB: number
  /** JSON text of `raw` and `tokenize` together. */
  resultBytes: number
  /** All console lines of one invocation. */
  logBytes: number
  /** Calls of the client and of `fetch`, together. */
  calls: number
  /** JSON text of the arguments of all those calls. */
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

/** Calls of one invocation that the host works on at a time; the others wait. With 4 MiB an answer, 16 MiB a run. */
export const CALLS_AT_ONCE = 4

/** A frame from a guest may hold no more than the largest thing it may say, and an envelope. */
export function mostFrameBytes(limits: ReactorLimits): number {
  // Text within JSON text: a control character takes seven bytes instead of one, plain text hardly more than itself.
  return 2 * Math.max(limits.resultBytes, 1024 * 1024) + 64 * 1024
}
