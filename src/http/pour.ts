/** Sends an answer no faster than it is taken, so that what waits in memory is one chunk of it. It knows no answer. */
import type { ServerResponse } from 'node:http'

/** An answer that is no larger is written at once, and not waited for. */
export const CHUNK_BYTES = 64 * 1024

/**
 * Writes `first` and `more`, which it empties, and lets others have a turn after each chunk; resolves when all of it was
 * taken, or the client is gone.
 */
export async function pour(response: ServerResponse, first: string, more: string[]): Promise<void> {
  let giveUp = () => {}
  response.once('close', () => giveUp())
  for (let piece: string | undefined = first; piece !== undefined; piece = more.shift()) {
    const whole = Buffer.from(piece)
    for (let at = 0; at < whole.length; at += CHUNK_BYTES) {
      if (response.destroyed) return
      await new Promise<void>((resolve) => {
        giveUp = resolve
        response.write(whole.subarray(at, at + CHUNK_BYTES), () => setImmediate(resolve))
      })
    }
  }
}
