/** Reads the body of a request from a socket up to a limit, or discards an unwanted body. */
import type { IncomingMessage } from 'node:http'
import { type CofferError, validationError } from '../errors.js'
import type { Connection } from './connection.js'
import type { Share } from './load.js'

/** Bytes of an unwanted body that are discarded, so that the client can send it and then read the answer. */
const DRAIN_LIMIT_BYTES = 8 * 1024 * 1024

/** The body of one request; it can be read once. */
export class RequestBody {
  readonly #request: IncomingMessage
  readonly #connection: Connection
  readonly #share: Share
  /** Sends `100 Continue` to a client that waits for it. */
  #invite: (() => void) | undefined

  constructor(
    request: IncomingMessage,
    connection: Connection,
    share: Share,
    invite: (() => void) | undefined,
  ) {
    this.#request = request
    this.#connection = connection
    this.#share = share
    this.#invite = invite
  }

  /** Whether the rest of the body will not arrive. */
  get isHopeless(): boolean {
    return this.#invite !== undefined || this.#connection.isBroken
  }

  read(limitBytes: number): Promise<Uint8Array | undefined> {
    const request = this.#request
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) return Promise.resolve(undefined)
    this.#invite?.()
    this.#invite = undefined
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let length = 0
      let isDone = false
      const finish = (outcome: () => void) => {
        // Later events of this body must not affect the next request of the connection.
        if (isDone) return
        isDone = true
        request.removeAllListeners('data')
        this.#connection.awaitBody(undefined)
        outcome()
      }
      request.on('data', (chunk: Buffer) => {
        length += chunk.length
        chunks.push(chunk)
        if (length > limitBytes) finish(() => resolve(undefined))
        else this.#count(chunk.length, (error) => finish(() => reject(error)))
      })
      request.once('end', () =>
        finish(() => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))),
      )
      request.once('close', () => finish(() => reject(cutOff())))
      this.#connection.awaitBody((error) => finish(() => reject(error)))
    })
  }

  #count(bytes: number, fail: (error: unknown) => void): void {
    try {
      this.#share.take(bytes)
    } catch (error) {
      fail(error)
    }
  }

  /** Discards the rest up to a limit, and calls `done` at its end. */
  drain(done: () => void): void {
    const request = this.#request
    let left = DRAIN_LIMIT_BYTES
    this.#connection.awaitBody(done)
    request.once('close', done)
    request.once('end', done)
    request.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) request.destroy()
    })
    request.resume()
  }
}

function cutOff(): CofferError {
  return validationError('The connection closed before the body was complete.')
}
