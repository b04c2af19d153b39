/** Runs units of work one after another, in rounds. The units of a round share one commit. */
import { CofferError } from '../../errors.js'
import type { Awaitable } from '../engine.js'

interface Task {
  run(): Awaitable<void>
  refuse(error: unknown): void
}

interface Rounds {
  isAwaited(): boolean
  end(): Promise<void>
  /** Called instead of `end` if no unit of work waits for the end of the round. */
  pass(): void
}

/** The length of a slice, in ms. After each slice, the event loop handles its other events. */
const SLICE_MS = 10

export class TaskQueue {
  readonly #rounds: Rounds | undefined
  readonly #tasks: Task[] = []
  /**
   * The wall clock when this slice began. The wall clock is used, because loading `performance` takes 1 ms.
   */
  #beganMs = 0
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(rounds?: Rounds) {
    this.#rounds = rounds
  }

  add(task: Task): void {
    if (this.#isClosed) {
      task.refuse(new CofferError('internal', 'The vault is closed already.'))
      return
    }
    this.#tasks.push(task)
    this.#running ??= this.#run()
  }

  run<T>(work: () => Awaitable<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.add({ run: async () => resolve(await work()), refuse: reject })
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
  }

  async #run(): Promise<void> {
    const rounds = this.#rounds
    await Promise.resolve()
    this.#beganMs = Date.now()
    while (this.#tasks.length > 0) {
      await this.#runWaiting()
      if (!rounds?.isAwaited()) {
        rounds?.pass()
        if (this.#isSliceOver) await this.#yieldToOthers()
        continue
      }
      // Waits for units that are requested in this turn of the event loop, so that these units share the commit.
      await this.#yieldToOthers()
      await this.#runWaiting()
      await rounds.end()
      this.#beganMs = Date.now()
    }
    this.#running = undefined
  }

  /**
   * Runs the tasks that wait now, for at most a slice. Tasks that are added during this slice wait, because they would
   * delay the sync.
   */
  async #runWaiting(): Promise<void> {
    for (let left = this.#tasks.length; left > 0; left--) {
      const { run, refuse } = this.#tasks.shift()!
      try {
        const running = run()
        if (running !== undefined) await running
      } catch (error) {
        refuse(error)
      }
      if (this.#isSliceOver) return
    }
  }

  /** The slice also ends if the clock jumps, in either direction. */
  get #isSliceOver(): boolean {
    return Math.abs(Date.now() - this.#beganMs) > SLICE_MS
  }

  async #yieldToOthers(): Promise<void> {
    await new Promise(setImmediate)
    this.#beganMs = Date.now()
  }
}
