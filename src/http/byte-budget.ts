/**
 * Limits the bytes that requests hold in memory, in total and for each application. Also limits the work that one
 * iteration of the event loop begins.
 */
import { CofferError } from '../errors.js'
import { MAX_PAGE_BYTES, type ResponseLimits } from '../framework/limits.js'

const MAX_BYTES = 96 * 1024 * 1024
const MAX_OF_ONE = 2 / 3
/**
 * Requests up to this size are admitted until all requests together hold twice the limit, so that large requests do not
 * block small requests.
 */
const SMALL_BYTES = 64 * 1024
/** The processing of a body of this size takes as long as a request without a body. */
const BYTES_OF_A_UNIT = 4 * 1024
/** One iteration of the event loop begins this number of requests of usual size: about 10 ms of work. */
const UNITS_IN_A_TURN = 50
/** New connections delay waiting requests by at most this number of iterations. */
const MAX_DEFERRALS = 64

export class ByteBudget {
  readonly #maxBytes: number
  readonly #byHolder = new Map<string, number>()
  #bytes = 0
  #unitsLeft = UNITS_IN_A_TURN
  /** Whether a connection was accepted since the last requests were begun or deferred. */
  #hasAccepted = false
  #deferrals = 0
  readonly #waiting: { units: number; begin(): void }[] = []

  /** `largestBody`: the maximum size of one body in bytes. The budget has at least twice this size. */
  constructor(largestBody = 0) {
    this.#maxBytes = Math.max(MAX_BYTES, 2 * largestBody)
  }

  /**
   * Returns whether a request of `holder`, which holds `held` bytes now, may hold `wanted` bytes. Returns true if no
   * other request is in progress.
   */
  admits(holder: string, held: number, wanted: number): boolean {
    const others = this.#bytes - held
    if (wanted <= SMALL_BYTES) return others + wanted <= 2 * this.#maxBytes
    const own = (this.#byHolder.get(holder) ?? 0) - held
    return (
      (others === 0 || others + wanted <= this.#maxBytes) &&
      (own === 0 || own + wanted <= this.#maxBytes * MAX_OF_ONE)
    )
  }

  add(holder: string, change: number): void {
    this.#bytes += change
    const own = (this.#byHolder.get(holder) ?? 0) + change
    if (own === 0) this.#byHolder.delete(holder)
    else this.#byHolder.set(holder, own)
  }

  /**
   * Call when a connection is accepted. The event loop accepts one connection in each iteration. If each iteration also
   * began requests, the last of many new clients would wait very long. Therefore requests wait while new connections
   * are accepted.
   */
  accept(): void {
    this.#hasAccepted = true
  }

  /** Returns undefined if the work may begin now, or a promise that resolves when the work may begin. */
  take(units = 1): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#unitsLeft > 0 && !this.#hasAccepted) {
      this.#unitsLeft -= units
      return undefined
    }
    return new Promise((begin) => {
      if (this.#waiting.push({ units, begin }) === 1) setImmediate(this.#continue)
    })
  }

  /** Begins many requests in one iteration of the event loop, so that their changes can share a sync to the disk. */
  readonly #continue = () => {
    if (this.#hasAccepted && this.#deferrals < MAX_DEFERRALS) {
      this.#hasAccepted = false
      this.#deferrals++
      setImmediate(this.#continue)
      return
    }
    this.#hasAccepted = false
    this.#deferrals = 0
    this.#unitsLeft = UNITS_IN_A_TURN
    while (this.#waiting.length > 0 && this.#unitsLeft > 0) {
      const { units, begin } = this.#waiting.shift()!
      this.#unitsLeft -= units
      begin()
    }
    if (this.#waiting.length > 0) setImmediate(this.#continue)
  }
}

export class ByteLease implements ResponseLimits {
  readonly maxBytes = MAX_PAGE_BYTES
  readonly isStrict = false
  readonly wantsEncoded = true
  readonly #budget: ByteBudget
  /** The id of the application. Set this id before any bytes are counted. */
  holder = ''
  #body = 0
  #response = 0
  #isOver = false

  constructor(budget: ByteBudget) {
    this.#budget = budget
  }

  /**
   * Call when the body is complete. Resolves when the body may be parsed. A small body does not wait, because it takes
   * less time than the rest of its request.
   */
  async arrive(): Promise<void> {
    if (this.#body <= BYTES_OF_A_UNIT) return
    await this.#budget.take(
      this.#body > SMALL_BYTES ? Number.POSITIVE_INFINITY : this.#body / BYTES_OF_A_UNIT,
    )
  }

  /** @throws CofferError `unavailable` if the bytes exceed the limits */
  take(bytes: number): void {
    this.#hold(this.#body + bytes, this.#response, true)
  }

  /** Reserves bytes for the response, and releases the previous reservation. @throws CofferError `unavailable` */
  reserve(bytes: number): void {
    this.#hold(this.#body, bytes, true)
  }

  settle(bytes: number): void {
    this.#hold(this.#body, bytes, false)
  }

  /** Releases all bytes. Later calls of other methods have no effect. */
  end(): void {
    this.#hold(0, 0, false)
    this.#isOver = true
  }

  #hold(body: number, response: number, isLimited: boolean): void {
    const held = this.#body + this.#response
    const change = body + response - held
    if (change === 0 || this.#isOver) return
    if (isLimited && change > 0 && !this.#budget.admits(this.holder, held, held + change))
      throw new CofferError('unavailable', 'This server is processing too much data. Try again in a moment.')
    this.#budget.add(this.holder, change)
    this.#body = body
    this.#response = response
  }
}
