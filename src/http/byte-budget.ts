/**
 * Limits the bytes of bodies and responses in memory, over all connections and for each application. Requests that would
 * exceed the limits are refused before their data is in memory.
 */
import { CofferError } from '../errors.js'
import { RequestTurns } from './request-turns.js'

/** The bodies and responses of all requests in progress, in bytes. */
const MOST_BYTES = 96 * 1024 * 1024
/** The part of it that one application may use. */
const MOST_OF_ONE = 2 / 3
/** Requests up to this size have the same number of bytes in addition, which larger ones cannot use. */
const SMALL_BYTES = 64 * 1024
/** Bytes of a body that take as long as a request without one. */
const BYTES_OF_A_UNIT = 4 * 1024

export class ByteBudget {
  readonly #mostBytes: number
  readonly #byHolder = new Map<string, number>()
  #bytes = 0
  readonly turns = new RequestTurns()
  /** Requests with a chunked body that wait behind others of their connections. */
  chunked = 0

  /** `largestBody` in bytes: the limit is at least two of these. */
  constructor(largestBody = 0) {
    this.#mostBytes = Math.max(MOST_BYTES, 2 * largestBody)
  }

  /** Whether a request of `holder` with `held` bytes may grow to `wanted`. The only request in progress always may. */
  admits(holder: string, held: number, wanted: number): boolean {
    const others = this.#bytes - held
    if (wanted <= SMALL_BYTES) return others + wanted <= 2 * this.#mostBytes
    const own = (this.#byHolder.get(holder) ?? 0) - held
    return (
      (others === 0 || others + wanted <= this.#mostBytes) &&
      (own === 0 || own + wanted <= this.#mostBytes * MOST_OF_ONE)
    )
  }

  /** Adds `change`, which can be negative, to the bytes of `holder`. */
  add(holder: string, change: number): void {
    this.#bytes += change
    const own = (this.#byHolder.get(holder) ?? 0) + change
    if (own === 0) this.#byHolder.delete(holder)
    else this.#byHolder.set(holder, own)
  }
}

/** The bytes of one request: its body as it arrives, and its response once the size is known. */
export class ByteLease {
  readonly #budget: ByteBudget
  #holder = ''
  #body = 0
  #response = 0
  #isOver = false

  constructor(budget: ByteBudget) {
    this.#budget = budget
  }

  /** Sets the application. Contract: called before any bytes are counted. */
  belongsTo(holder: string): void {
    this.#holder = holder
  }

  /** Call when the body is complete; resolves when it may be parsed. */
  async arrive(): Promise<void> {
    const units = this.#body > SMALL_BYTES ? Number.POSITIVE_INFINITY : this.#body / BYTES_OF_A_UNIT
    await this.#budget.turns.take(units)
  }

  /** Counts received bytes of the body. @throws CofferError `unavailable` if they exceed the limits */
  take(bytes: number): void {
    this.#require(bytes)
    this.#hold(this.#body + bytes, this.#response)
  }

  /** Reserves bytes for the response, instead of an earlier reservation. @throws CofferError `unavailable` */
  reserve(bytes: number): void {
    this.#require(bytes - this.#response)
    this.#hold(this.#body, bytes)
  }

  /** Sets the actual size of the response, even if it exceeds the limits. */
  settle(bytes: number): void {
    this.#hold(this.#body, bytes)
  }

  /** Releases all bytes; later calls have no effect. */
  end(): void {
    this.#hold(0, 0)
    this.#isOver = true
  }

  #require(more: number): void {
    const held = this.#body + this.#response
    if (more <= 0 || this.#budget.admits(this.#holder, held, held + more)) return
    throw new CofferError('unavailable', 'This server is processing too much data. Try again in a moment.')
  }

  #hold(body: number, response: number): void {
    const change = body + response - this.#body - this.#response
    if (this.#isOver || change === 0) return
    this.#budget.add(this.#holder, change)
    this.#body = body
    this.#response = response
  }
}
