/**
 * A runtime for reactors that starts no processes. The test itself makes the calls of the reactor code and ends each
 * run.
 */
import { CofferError } from '../../src/errors.js'
import type { Invocation, ReactorOutcome, ReactorRun } from '../../src/framework/ports/reactors.js'
import type { App } from '../../src/vault/app.js'

export interface SteeredRun {
  readonly invocation: Invocation
  /** Makes a call to the client as the reactor code would. Returns 200, or the status of the call's error. */
  call(name: string, ...args: unknown[]): Promise<number>
  end(outcome?: ReactorOutcome): void
}

/** Replaces the runtime of the vault by a runtime that the test controls. */
export function steerRuns(app: App) {
  const started: SteeredRun[] = []
  const waiting: (() => void)[] = []
  let asked = 0
  const run = async (invocation: Invocation) => {
    asked += 1
    await invocation.mayStart?.()
    return new Promise<ReactorRun>((resolve) => {
      const end = (outcome: ReactorOutcome = { kind: 'result', raw: 'done' }) =>
        resolve({ outcome, console: [], durationMs: 1, memoryMiB: 1 })
      const call = (name: string, ...args: unknown[]) =>
        statusOf(invocation.client?.(name, args) ?? Promise.reject(new Error('There is no client.')))
      started.push({ invocation, call, end })
      for (const wake of waiting.splice(0)) wake()
    })
  }
  Object.assign(app, { reactors: async () => ({ run }) as never })
  return {
    /** Resolves when the next run starts. */
    next: async () => {
      while (started.length === 0) await new Promise<void>((resolve) => waiting.push(resolve))
      return started.shift()!
    },
    /** Returns the number of requested runs, and the number of started runs that {@link next} has not returned yet. */
    counts: () => ({ asked, started: started.length }),
  }
}

/** Returns 200, or the status of the error with which the work fails. */
export async function statusOf(work: Promise<unknown>): Promise<number> {
  try {
    await work
    return 200
  } catch (error) {
    if (error instanceof CofferError) return error.status
    throw error
  }
}
