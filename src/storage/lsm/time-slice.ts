/** Limits how long work runs before the event loop gets a turn. */

const SLICE_MS = 10

export class TimeSlice {
  #beganMs = performance.now()

  /** Whether other work should get a turn. */
  get isOver(): boolean {
    return performance.now() - this.#beganMs > SLICE_MS
  }

  begin(): void {
    this.#beganMs = performance.now()
  }

  /** Resolves after one turn of the event loop. */
  async yieldToOthers(): Promise<void> {
    await new Promise(setImmediate)
    this.begin()
  }
}
