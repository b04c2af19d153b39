/**
 * Bytes that requests and answers under way hold, over all connections, and who holds them: more than a server can keep
 * in memory is refused before it is there. It knows neither sockets nor what is asked.
 */
import { CofferError } from '../errors.js'

/** Bodies and answers of all requests under way, in bytes. */
const MOST_BYTES = 96 * 1024 * 1024
/** The part of it that one application may hold. */
const MOST_OF_ONE = 2 / 3
/** A request that holds no more than this has as much room again, which the larger ones cannot take from it. */
const SMALL_BYTES = 64 * 1024

/** All that is under way. */
export class Load {
  readonly #mostBytes: number
  readonly #byHolder = new Map<string, number>()
  #bytes = 0
  #lastTurn: Promise<unknown> = Promise.resolve()

  /** `largestBody`: in bytes; there is room for two of them. */
  constructor(largestBody = 0) {
    this.#mostBytes = Math.max(MOST_BYTES, 2 * largestBody)
  }

  /** Whether somebody who holds `held` bytes may hold `wanted`. Who is alone always may. */
  admits(holder: string, held: number, wanted: number): boolean {
    const others = this.#bytes - held
    if (wanted <= SMALL_BYTES) return others + wanted <= 2 * this.#mostBytes
    const own = (this.#byHolder.get(holder) ?? 0) - held
    return (
      (others === 0 || others + wanted <= this.#mostBytes) &&
      (own === 0 || own + wanted <= this.#mostBytes * MOST_OF_ONE)
    )
  }

  /** Resolves when everybody else had a turn since the one before: what takes long is begun one by one. */
  async turn(): Promise<void> {
    this.#lastTurn = this.#lastTurn.then(() => new Promise(setImmediate))
    await this.#lastTurn
  }

  /** Notes that `holder` holds so many bytes more, or fewer. */
  note(holder: string, change: number): void {
    this.#bytes += change
    const own = (this.#byHolder.get(holder) ?? 0) + change
    if (own === 0) this.#byHolder.delete(holder)
    else this.#byHolder.set(holder, own)
  }
}

/** What one request holds: of its body as it comes, and of its answer from the moment that its size is known. */
export class Share {
  readonly #load: Load
  #holder = ''
  #body = 0
  #answer = 0
  #isOver = false

  constructor(load: Load) {
    this.#load = load
  }

  /** Says whose request it is. Contract: before anything is held. */
  belongsTo(holder: string): void {
    this.#holder = holder
  }

  /** The body is there; resolves when it may be worked on. */
  async arrive(): Promise<void> {
    if (this.#body > SMALL_BYTES) await this.#load.turn()
  }

  /** So many bytes of the body have come. @throws CofferError `unavailable` where there is no room for them */
  take(bytes: number): void {
    this.#require(bytes)
    this.#hold(this.#body + bytes, this.#answer)
  }

  /** Makes room for an answer, in the place of what was said of it before. @throws CofferError `unavailable` */
  reserve(bytes: number): void {
    this.#require(bytes - this.#answer)
    this.#hold(this.#body, bytes)
  }

  /** The answer has so many bytes, whether there is room or not. */
  settle(bytes: number): void {
    this.#hold(this.#body, bytes)
  }

  /** Nothing is held any more, nor will be. */
  end(): void {
    this.#hold(0, 0)
    this.#isOver = true
  }

  #require(more: number): void {
    const held = this.#body + this.#answer
    if (more <= 0 || this.#load.admits(this.#holder, held, held + more)) return
    throw new CofferError('unavailable', 'Too much is under way on this server. Try again in a moment.')
  }

  #hold(body: number, answer: number): void {
    if (this.#isOver) return
    this.#load.note(this.#holder, body + answer - this.#body - this.#answer)
    this.#body = body
    this.#answer = answer
  }
}
