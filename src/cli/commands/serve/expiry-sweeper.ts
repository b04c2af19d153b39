import { pause } from '../../../client/pause.js'
import type { App } from '../../../vault/app.js'

const SWEEP_MS = 30_000

/** Sweeps and delivers mail every 30 s until `signal`. A failed sweep is reported and repeated. */
export async function sweepRegularly(
  app: Pick<App, 'sweep' | 'mail'>,
  signal: AbortSignal,
  report: (error: unknown) => void,
  wait: (signal: AbortSignal) => Promise<unknown> = (during) => pause(SWEEP_MS, during, { ref: false }),
): Promise<void> {
  while (!signal.aborted) {
    const swept = await app.sweep().catch((error: unknown) => {
      report(error)
      return 0
    })
    await app.mail.resume().catch(report)
    // A sweep is limited, so the next one follows immediately while there is something to purge.
    if (swept === 0) await wait(signal)
  }
}
