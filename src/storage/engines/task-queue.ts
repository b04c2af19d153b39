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

export function createTaskQueue({ gathers, isAwaited, end, pass }: TaskQueueOptions) {
  const tasks: Task[] = []
  const timeSlice = new TimeSlice()
  let running: Promise<void> | undefined
  let isClosed = false

  return { add, close }

  function add(task: Task): void {
    if (isClosed) {
      task.refuse(new CofferError('internal', 'The vault is closed already.'))
      return
    }
    tasks.push(task)
    running ??= run()
  }

  /** Refuses every task from here on; resolves when those before have ended. */
  async function close(): Promise<void> {
    isClosed = true
    await running
  }

  async function run(): Promise<void> {
    await Promise.resolve()
    timeSlice.begin()
    while (tasks.length > 0) {
      await runWaiting()
      if (!isAwaited()) {
        pass()
        if (timeSlice.isOver) await timeSlice.yieldToOthers()
        continue
      }
      if (gathers) {
        await timeSlice.yieldToOthers()
        await runWaiting()
      }
      await end()
      timeSlice.begin()
    }
    running = undefined
  }

  /**
   * Only what waits now: those who come meanwhile must not keep the others from their sync. And not for longer than a
   * slice: whoever is answered together is answered in one go.
   */
  async function runWaiting(): Promise<void> {
    for (let left = tasks.length; left > 0; left--) {
      const { run, refuse } = tasks.shift()!
      try {
        await run()
      } catch (error) {
        refuse(error)
      }
      if (timeSlice.isOver) return
    }
  }
}
