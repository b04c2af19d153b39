/** Taking expired tokens off the disk while a server runs. What expired is gone from every read before that already. */
import { setTimeout } from 'node:timers/promises'
import type { App } from '../../../vault/app.js'

const SWEEP_MS = 30_000

/**
 * Sweeps now, until nothing is left, and again every 30 s until `signal`; resolves once the last sweep is over. One that fails is told and
 * tried again. `wait` is the time in between.
 */
export async function sweepRegularly(
  app: Pick<App, 'sweep'>,
  signal: AbortSignal,
  report: (error: unknown) => void,
  wait: (signal: AbortSignal) => Promise<unknown> = waitForNext,
): Promise<void> {
  while (!signal.aborted) {
    const swept = await app.sweep().catch((error: unknown) => {
      report(error)
      return 0
    })
    // Where there is more than one sweep takes, the next one follows at once.
    if (swept === 0) await wait(signal)
  }
}

function waitForNext(signal: AbortSignal): Promise<unknown> {
  // Rejects when the signal comes, which is the end of waiting and no failure.
  return setTimeout(SWEEP_MS, undefined, { signal, ref: false }).catch(() => undefined)
}
