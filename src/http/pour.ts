/** Sends a large answer as fast as the client reads it, so that only one chunk is buffered. */
import type { ServerResponse } from 'node:http'

/** Answers up to this size are written in one call. */
export const CHUNK_BYTES = 64 * 1024

/**
 * Writes `first` and then `more`, which it empties, and yields to the event loop after each chunk. Resolves when all data
 * is written or the client has disconnected.
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
