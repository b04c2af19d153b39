/** Sends a large answer as fast as the client reads it, so that only one chunk is buffered. */
import type { ServerResponse } from 'node:http'

/** Answers up to this size are written in one call. */
export const CHUNK_BYTES = 64 * 1024

/**
 * Writes `stream` as fast as the client reads it, and leaves it when the client has disconnected. An error of the stream
 * closes the connection, so that the client sees that the answer is incomplete.
 */
export async function pourStream(response: ServerResponse, stream: AsyncIterable<Uint8Array>): Promise<void> {
  const source = stream[Symbol.asyncIterator]()
  const closed = new Promise<undefined>((resolve) => response.once('close', () => resolve(undefined)))
  while (!response.destroyed) {
    const next = await Promise.race([source.next(), closed]).catch(() => {
      response.destroy()
      return undefined
    })
    if (next === undefined || next.done === true) break
    const piece = next.value
    await Promise.race([new Promise<void>((resolve) => response.write(piece, () => resolve())), closed])
  }
  // Not awaited: a source that waits for its next piece ends when that comes, or never.
  if (response.destroyed) void source.return?.()?.catch(() => undefined)
  response.end()
}

/** Empties `pieces`, yielding to the event loop after each chunk, until all is written or the client is gone. */
export async function pour(response: ServerResponse, pieces: (string | Uint8Array)[]): Promise<void> {
  let giveUp = () => {}
  response.once('close', () => giveUp())
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
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
