/** Runs units of work one after another, in rounds: those of a round share what follows them. */
import { CofferError } from '../../errors.js'
import { TimeSlice } from '../lsm/time-slice.js'

/** A unit of work, or what runs between two of them. */
export interface Task {
  run(): Promise<void>
  /** Receives what `run` throws. */
  refuse(error: unknown): void
}

export interface TaskQueueOptions {
  /** A round waits for everything that comes in the same turn of the event loop. */
  gathers: boolean
  /** Whether somebody waits for the end of the round. */
  isAwaited(): boolean
  end(): Promise<void>
  /** Called instead after tasks that nobody waits for. */
  pass(): void
}

export class TaskQueue {
  readonly #options: TaskQueueOptions
  readonly #tasks: Task[] = []
  readonly #timeSlice = new TimeSlice()
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(options: TaskQueueOptions) {
    this.#options = options
  }

  add(task: Task): void {
    if (this.#isClosed) {
      task.refuse(new CofferError('internal', 'The vault is closed already.'))
      return
    }
    this.#tasks.push(task)
    this.#running ??= this.#run()
  }

  /** Refuses every task from here on; resolves when those before have ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
  }

  async #run(): Promise<void> {
    const { gathers, isAwaited, pass, end } = this.#options
    await Promise.resolve()
    this.#timeSlice.begin()
    while (this.#tasks.length > 0) {
      await this.#runWaiting()
      if (!isAwaited()) {
        pass()
        if (this.#timeSlice.isOver) await this.#timeSlice.yieldToOthers()
        continue
      }
      if (gathers) {
        await this.#timeSlice.yieldToOthers()
        await this.#runWaiting()
      }
      await end()
      this.#timeSlice.begin()
    }
    this.#running = undefined
  }

  /**
   * Runs the tasks that wait now: those that come meanwhile must not delay the sync of the others. It stops after a slice,
   * because tasks that are answered together are answered in one go.
   */
  async #runWaiting(): Promise<void> {
    for (let left = this.#tasks.length; left > 0; left--) {
      const { run, refuse } = this.#tasks.shift()!
      try {
        await run()
      } catch (error) {
        refuse(error)
      }
      if (this.#timeSlice.isOver) return
    }
  }
}
