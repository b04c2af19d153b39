import type { IncomingMessage } from 'node:http'
import { ByteCollector } from '../../domain/proxy/collect-bytes.js'
import { type CofferError, validationError } from '../../errors.js'
import type { ByteLease } from '../byte-budget.js'
import { bodyTooLarge } from '../input.js'

/**
 * Many clients read the answer only after they have sent the body. Therefore at most this much of an unwanted body is
 * read and discarded.
 */
const DRAIN_LIMIT_BYTES = 8 * 1024 * 1024

export class RequestBody {
  readonly #message: IncomingMessage
  readonly #lease: ByteLease
  #sendContinue: (() => void) | undefined
  #fault: CofferError | undefined

  constructor(message: IncomingMessage, lease: ByteLease, sendContinue: (() => void) | undefined) {
    this.#message = message
    this.#lease = lease
    this.#sendContinue = sendContinue
  }

  get isComplete(): boolean {
    return this.#message.complete
  }

  get isArriving(): boolean {
    return !this.isComplete && this.#sendContinue === undefined && this.#fault === undefined
  }

  fail(error: CofferError): boolean {
    if (this.isComplete) return false
    this.#fault = error
    this.#message.emit('fault', error)
    return true
  }

  /**
   * Resolves with undefined if the body is longer than `limitBytes`. Call at most once.
   * @throws CofferError `unavailable` if requests in progress use too much memory, `validation` if the connection
   * closes, or the error that `fail` was given
   */
  read(limitBytes: number): Promise<Uint8Array | undefined> {
    const message = this.#message
    if (Number(message.headers['content-length'] ?? 0) > limitBytes) return Promise.resolve(undefined)
    this.#sendContinue?.()
    this.#sendContinue = undefined
    return new Promise((resolve, reject) => {
      const bytes = new ByteCollector()
      const read = (chunk: Buffer) => {
        try {
          if (bytes.length + chunk.length <= limitBytes) {
            this.#lease.take(chunk.length)
            bytes.add(chunk)
            return
          }
          resolve(undefined)
        } catch (error) {
          reject(error)
        }
        message.off('data', read)
      }
      message.on('data', read)
      message.once('end', () => resolve(bytes.join()))
      message.once('close', () => {
        // Every body ends with the event `close`. The error is created only if the body is incomplete, because an error
        // for each request would cost a tenth of a POST.
        if (message.readableEnded) return
        reject(connectionClosed())
      })
      message.once('fault', reject)
      if (this.#fault !== undefined) reject(this.#fault)
    })
  }

  /**
   * While the caller takes no piece, only the buffer of the message is filled from the connection.
   * @throws CofferError `too_large`, and the errors of `read`
   */
  async *stream(limitBytes: number): AsyncGenerator<Uint8Array> {
    const message = this.#message
    if (Number(message.headers['content-length'] ?? 0) > limitBytes) throw bodyTooLarge(limitBytes)
    this.#sendContinue?.()
    this.#sendContinue = undefined
    let wake = () => {}
    const look = () => wake()
    const events = ['readable', 'end', 'close', 'error', 'fault']
    for (const event of events) message.on(event, look)
    let bytes = 0
    try {
      for (;;) {
        if (this.#fault !== undefined) throw this.#fault
        // `read` returns all bytes that have arrived, so that tiny chunks of a body are joined.
        const piece = message.read() as Buffer | null
        if (piece === null && message.readableEnded) return
        if (piece === null && message.destroyed) throw connectionClosed()
        if (piece === null) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
          continue
        }
        bytes += piece.length
        if (bytes > limitBytes) throw bodyTooLarge(limitBytes)
        yield piece
      }
    } finally {
      for (const event of events) message.off(event, look)
    }
  }

  drain(done: () => void): void {
    const message = this.#message
    for (const event of ['fault', 'close', 'end']) message.once(event, done)
    let left = DRAIN_LIMIT_BYTES
    message.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) message.destroy()
    })
    message.resume()
  }
}

function connectionClosed(): CofferError {
  return validationError('The connection closed before the body was complete.')
}
