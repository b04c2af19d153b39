/** Shares the event loop among the requests of a process. */

/** Steps of about 10 ns after which other requests get their turn. */
const STEPS_IN_A_TURN = 1_000_000

/**
 * Long work counts its steps here. Once all of it together has used the steps of a turn, each waits for its next turn. So
 * the event loop is held for one turn, no matter how many requests are in progress.
 */
export class Turns {
  #left = STEPS_IN_A_TURN
  #last: Promise<void> = Promise.resolve()

  use(steps: number): void {
    this.#left -= steps
  }

  /** Whether {@link next} is due. A loop asks this first, because awaiting costs more than most expressions. */
  get isOver(): boolean {
    return this.#left < 0
  }

  /** Resolves in an iteration of the event loop in which no earlier caller continues. */
  next(): Promise<void> {
    this.#last = this.#last.then(async () => {
      await new Promise(setImmediate)
      this.#left = STEPS_IN_A_TURN
    })
    return this.#last
  }
}
