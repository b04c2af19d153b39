/**
 * `isOver` becomes true `afterMs` after `start`. The class uses a timer, because the wall clock may jump, and loading
 * `performance` takes 1 ms.
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
    this.#timer.unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.isOver = false
  }
}
