/** Spreads the work of requests that come at once over iterations of the event loop, so that it is never held for long. */

/** The work that one iteration begins, in requests of usual size: about 10 ms. */
const UNITS_IN_A_TURN = 50

export class RequestTurns {
  #left = UNITS_IN_A_TURN
  /** In the order in which they continue, one in an iteration. */
  readonly #waiting: (() => void)[] = []

  /** undefined if work of this size may begin now, or else a promise that resolves in a later iteration. */
  take(units = 1): Promise<void> | undefined {
    this.#left -= units
    if (this.#left >= 0) return undefined
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(this.#continue)
    })
  }

  readonly #continue = () => {
    this.#waiting.shift()!()
    if (this.#waiting.length > 0) setImmediate(this.#continue)
    else this.#left = UNITS_IN_A_TURN
  }
}
