/** Reads the body of a request from a socket up to a limit, or discards an unwanted body. */
import type { IncomingMessage } from 'node:http'
import { validationError } from '../errors.js'
import type { Connection } from './connection.js'
import type { Share } from './load.js'

/** Bytes of an unwanted body that are discarded, so that the client can send it and then read the answer. */
const DRAIN_LIMIT_BYTES = 8 * 1024 * 1024

export type RequestBody = ReturnType<typeof createRequestBody>

/** The body of one request; it can be read once. `invite` sends `100 Continue` to a client that waits for it. */
export function createRequestBody(
  request: IncomingMessage,
  connection: Connection,
  share: Share,
  invite: (() => void) | undefined,
) {
  let isInvited = invite === undefined

  return { isHopeless, read, drain }

  /** Whether the rest of the body will not arrive. */
  function isHopeless(): boolean {
    return !isInvited || connection.isBroken
  }

  function read(limitBytes: number): Promise<Uint8Array | undefined> {
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) return Promise.resolve(undefined)
    if (!isInvited) invite?.()
    isInvited = true
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let length = 0
      let isDone = false
      const finish = (outcome: () => void) => {
        // Later events of this body must not affect the next request of the connection.
        if (isDone) return
        isDone = true
        connection.awaitBody(undefined)
        outcome()
      }
      request.on('data', (chunk: Buffer) => {
        if (isDone) return
        length += chunk.length
        chunks.push(chunk)
        if (length > limitBytes) finish(() => resolve(undefined))
        else count(chunk.length, (error) => finish(() => reject(error)))
      })
      request.once('end', () =>
        finish(() => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))),
      )
      const cutOff = 'The connection closed before the body was complete.'
      request.once('close', () => finish(() => reject(validationError(cutOff))))
      connection.awaitBody((error) => finish(() => reject(error)))
    })
  }

  function count(bytes: number, fail: (error: unknown) => void): void {
    try {
      share.take(bytes)
    } catch (error) {
      fail(error)
    }
  }

  /** Discards the rest up to a limit, and calls `done` at its end. */
  function drain(done: () => void): void {
    let left = DRAIN_LIMIT_BYTES
    connection.awaitBody(done)
    request.once('close', done)
    request.once('end', done)
    request.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) request.destroy()
    })
    request.resume()
  }
}
