/** Limits how long work runs before the event loop gets a turn. */

const SLICE_MS = 10

/** Uses the wall clock, because loading `performance` costs a command 1 ms; a jump of the clock ends the slice. */
export class TimeSlice {
  #beganMs = Date.now()

  /** Whether other work should get a turn. */
  get isOver(): boolean {
    return Math.abs(Date.now() - this.#beganMs) > SLICE_MS
  }

  begin(): void {
    this.#beganMs = Date.now()
  }

  /** Resolves after one turn of the event loop. */
  async yieldToOthers(): Promise<void> {
    await new Promise(setImmediate)
    this.begin()
  }
}
