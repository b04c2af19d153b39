/** Runs units of work one after another, in rounds: the units of a round share one commit. */
import { CofferError } from '../../errors.js'
import { TimeSlice } from '../lsm/time-slice.js'

/** A unit of work, or work between two of them. */
interface Task {
  run(): Promise<void>
  /** Receives what `run` throws. */
  refuse(error: unknown): void
}

interface TaskQueueOptions {
  /** A round waits for everything that comes in the same turn of the event loop. */
  gathers: boolean
  /** Whether somebody waits for the end of the round. */
  isAwaited(): boolean
  end(): Promise<void>
  /** Called instead of `end` when nobody waits. */
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

  /** Refuses further tasks; resolves when those before have ended. */
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
   * Runs the tasks that wait now: later ones must not delay the sync of these. Stops after a slice, because a round
   * answers all its tasks in one turn of the event loop.
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
