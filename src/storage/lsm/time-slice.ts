/** Lets the event loop turn after so much work, so that nobody waits long who needs none of it. It knows no work. */

/** What waits in the meantime waits no longer than this, and than the one piece of work that is under way. */
const SLICE_MS = 10

export class TimeSlice {
  #beganMs = performance.now()

  /** Whether it is time for others. */
  get isOver(): boolean {
    return performance.now() - this.#beganMs > SLICE_MS
  }

  begin(): void {
    this.#beganMs = performance.now()
  }

  /** Resolves once everybody who waited had a turn. */
  async yieldToOthers(): Promise<void> {
    await new Promise(setImmediate)
    this.begin()
  }
}
