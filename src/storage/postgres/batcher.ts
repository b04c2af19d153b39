import { Collision } from './attempt.js'
import { isUnavailable } from './pool.js'

interface Waiting<Ask, Answer> {
  ask: Ask
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** At most this many statements are in progress. Further requests wait, and the next statement sends them together. */
const AT_ONCE = 2
const MAX_BATCH = 64

export class Batcher<Ask, Answer> {
  readonly #send: (asks: readonly Ask[]) => Promise<readonly Answer[]>
  readonly #createFits: () => (next: Ask) => boolean
  readonly #waiting: Waiting<Ask, Answer>[] = []
  #running = 0

  /**
   * `send` returns one answer for each request. `createFits` is called for each new batch. The returned function
   * decides whether the next request may join the batch.
   */
  constructor(
    send: (asks: readonly Ask[]) => Promise<readonly Answer[]>,
    createFits: () => (next: Ask) => boolean = () => () => true,
  ) {
    this.#send = send
    this.#createFits = createFits
  }

  ask(ask: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // Waits for the end of this turn of the event loop, so that other requests of the turn join the statement.
      if (this.#waiting.push({ ask, resolve, reject }) === 1) setImmediate(() => this.#sendWaiting())
    })
  }

  #sendWaiting(): void {
    while (this.#running < AT_ONCE && this.#waiting.length > 0) {
      const fits = this.#createFits()
      const end = this.#waiting.findIndex(({ ask }, at) => at === MAX_BATCH || !fits(ask))
      this.#running++
      void this.#sendBatch(this.#waiting.splice(0, end < 0 ? MAX_BATCH : end)).then(() => {
        this.#running--
        this.#sendWaiting()
      })
    }
  }

  async #sendBatch(batch: readonly Waiting<Ask, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(batch.map(({ ask }) => ask))
      for (const [at, { resolve }] of batch.entries()) resolve(answers[at]!)
    } catch (error) {
      if (error instanceof Collision && batch.length > 1) {
        // A refused request must not fail the other requests, so each request is sent alone.
        await Promise.all(batch.map((each) => this.#sendBatch([each])))
        return
      }
      // If the store does not answer, the waiting requests would fail too, so they are rejected now.
      const failed = isUnavailable(error) ? [...batch, ...this.#waiting.splice(0)] : batch
      for (const { reject } of failed) reject(error)
    }
  }
}
