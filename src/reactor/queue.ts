/** A fair queue: each caller has its own queue, callers are served in turn, and the waiting time is limited. */
import { CofferError, type ErrorCode } from '../errors.js'
import type { PoolClock } from './clock.js'
import type { PoolSettings } from './pool-settings.js'

export interface QueuedRun {
  /** The caller, including the tenant. */
  caller: string
  reject(error: unknown): void
}

interface Entry<W> {
  work: W
  cancelTimer(): void
}

export function createFairQueue<W extends QueuedRun>(clock: PoolClock) {
  /** By caller, in the order in which they are served; none is empty. */
  const queues = new Map<string, Entry<W>[]>()
  let size = 0

  return { callers: () => queues.keys(), add, take, clear }

  /** @throws CofferError `rate_limited` if too many of the caller wait, `unavailable` if too many wait in total */
  function add(
    work: W,
    settings: Pick<PoolSettings, 'mostWaiting' | 'mostWaitingOfCaller' | 'waitMs'>,
    isBusyFor: (caller: string) => boolean,
  ): void {
    const { caller } = work
    const queue = queues.get(caller) ?? []
    const { mostWaiting, mostWaitingOfCaller, waitMs } = settings
    if (queue.length >= mostWaitingOfCaller) throw tooMany(waitMs)
    if (size >= mostWaiting) throw busy(waitMs)
    const entry: Entry<W> = {
      work,
      cancelTimer: clock.after(waitMs, () => {
        remove(caller, entry)
        work.reject(isBusyFor(caller) ? tooMany(waitMs) : busy(waitMs))
      }),
    }
    queue.push(entry)
    queues.set(caller, queue)
    size += 1
  }

  /** Removes the next run that `accept` takes: callers in turn, the oldest run first. Calls `mayHave` once per caller. */
  function take<T>(
    mayHave: (caller: string) => boolean,
    accept: (work: W) => T | undefined,
  ): [W, T] | undefined {
    for (const [caller, queue] of queues) {
      if (!mayHave(caller)) continue
      for (const entry of [...queue]) {
        const accepted = offer(caller, entry, accept)
        if (accepted === undefined) continue
        remove(caller, entry)
        // Moves the served caller to the end.
        if (queues.delete(caller)) queues.set(caller, queue)
        return [entry.work, accepted]
      }
    }
    return undefined
  }

  function clear(error: CofferError): void {
    for (const [caller, queue] of [...queues])
      for (const entry of [...queue]) {
        remove(caller, entry)
        entry.work.reject(error)
      }
  }

  /** A run for which `accept` throws is rejected and removed. */
  function offer<T>(caller: string, entry: Entry<W>, accept: (work: W) => T | undefined): T | undefined {
    try {
      return accept(entry.work)
    } catch (error) {
      remove(caller, entry)
      entry.work.reject(error)
      return undefined
    }
  }

  function remove(caller: string, entry: Entry<W>): void {
    const queue = queues.get(caller) ?? []
    queue.splice(queue.indexOf(entry), 1)
    if (queue.length === 0) queues.delete(caller)
    entry.cancelTimer()
    size -= 1
  }
}

function tooMany(waitMs: number): CofferError {
  return overloaded('rate_limited', 'This caller has requested too many runs of reactors at once.', waitMs)
}

function busy(waitMs: number): CofferError {
  return overloaded('unavailable', 'All reactors are busy.', waitMs)
}

function overloaded(code: ErrorCode, what: string, waitMs: number): CofferError {
  const retryAfterSeconds = Math.ceil(waitMs / 1000)
  return new CofferError(code, `${what} Try again in ${retryAfterSeconds} s.`, { retryAfterSeconds })
}
