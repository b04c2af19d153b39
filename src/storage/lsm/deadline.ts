/**
 * Tells whether a time has passed since it was started. Uses a timer, because the wall clock may jump, and loading
 * `performance` costs a command 1 ms.
 */
export class Deadline {
  isOver = false
  readonly #afterMs: number
  #timer: NodeJS.Timeout | undefined

  constructor(afterMs: number) {
    this.#afterMs = afterMs
  }

  /** Starts it, anew if it runs. */
  start(): void {
    this.stop()
    this.#timer = setTimeout(() => {
      this.isOver = true
    }, this.#afterMs)
    // The process may end before.
    this.#timer.unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.isOver = false
  }
}
