import { setTimeout } from 'node:timers/promises'

/** Resolves after `ms`, or when `signal` is aborted. Does not keep the process running if `ref` is false. */
export function pause(ms: number, signal: AbortSignal, { ref = true } = {}): Promise<unknown> {
  return setTimeout(ms, undefined, { signal, ref }).catch(() => undefined)
}
