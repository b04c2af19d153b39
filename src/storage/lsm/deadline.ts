/**
 * Shows whether a time has passed since `start`. The deadline uses a timer, because the wall clock may jump, and a
 * command would need 1 ms to load `performance`.
 */
export class Deadline {
  isOver = false
  readonly #afterMs: number
  #timer: NodeJS.Timeout | undefined

  constructor(afterMs: number) {
    this.#afterMs = afterMs
  }

  start(): void {
    this.stop()
    this.#timer = setTimeout(() => {
      this.isOver = true
    }, this.#afterMs)
    // The timer does not keep the process running until the deadline.
    this.#timer.unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.isOver = false
  }
}
