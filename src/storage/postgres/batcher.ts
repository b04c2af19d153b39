/** Sends requests of several units of work to the store in one statement. */
import { Collision } from './attempt.js'
import { isUnavailable } from './pool.js'

interface Waiting<Ask, Answer> {
  ask: Ask
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** Statements under way. What is asked for meanwhile waits, and goes together. */
const AT_ONCE = 2
/** Asks in one statement. */
const MAX_BATCH = 64

export class Batcher<Ask, Answer> {
  readonly #send: (asks: readonly Ask[]) => Promise<readonly Answer[]>
  readonly #createFits: () => (next: Ask) => boolean
  readonly #waiting: Waiting<Ask, Answer>[] = []
  #running = 0

  /** `send` returns an answer for each. `createFits`: begins a batch, and returns what says if an ask may go with those before it. */
  constructor(
    send: (asks: readonly Ask[]) => Promise<readonly Answer[]>,
    createFits: () => (next: Ask) => boolean = () => () => true,
  ) {
    this.#send = send
    this.#createFits = createFits
  }

  ask(ask: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // Later requests of this turn of the event loop go along.
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
      // One that cannot be done must not fail the others.
      if (error instanceof Collision && batch.length > 1)
        await Promise.all(batch.map((each) => this.#sendBatch([each])))
      else
        for (const { reject } of isUnavailable(error) ? [...batch, ...this.#waiting.splice(0)] : batch)
          reject(error)
    }
  }
}
