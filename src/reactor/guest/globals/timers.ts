/** Timers for one run. Timer ids are numbers, because Node's timer objects link to all other timers of the process. */
import { clearTimeout, setTimeout } from 'node:timers'

/** Captured before `stripGlobal` removes it. */
const { queueMicrotask } = globalThis
const MOST_TIMERS = 10_000

type Callback = (...args: unknown[]) => void

export function createTimers() {
  const pending = new Map<number, NodeJS.Timeout>()
  let last = 0
  let isOver = false

  function start(callback: Callback, delayMs: unknown, args: unknown[], isRepeated: boolean): number {
    if (typeof callback !== 'function') throw new TypeError('The callback of a timer must be a function')
    if (isOver) return 0
    if (pending.size >= MOST_TIMERS) throw new RangeError(`At most ${MOST_TIMERS} timers may be pending`)
    const id = ++last
    const run = () => {
      if (isRepeated) pending.set(id, setTimeout(run, toDelay(delayMs)))
      else pending.delete(id)
      callback(...args)
    }
    pending.set(id, setTimeout(run, toDelay(delayMs)))
    return id
  }
  function stop(id: unknown): void {
    if (typeof id !== 'number') return
    clearTimeout(pending.get(id))
    pending.delete(id)
  }

  return {
    globals: {
      setTimeout: (callback: Callback, delayMs?: unknown, ...args: unknown[]) =>
        start(callback, delayMs, args, false),
      setInterval: (callback: Callback, delayMs?: unknown, ...args: unknown[]) =>
        start(callback, delayMs, args, true),
      setImmediate: (callback: Callback, ...args: unknown[]) => start(callback, 0, args, false),
      clearTimeout: (id: unknown) => stop(id),
      clearInterval: (id: unknown) => stop(id),
      clearImmediate: (id: unknown) => stop(id),
      queueMicrotask: (callback: Callback) => {
        if (typeof callback !== 'function') throw new TypeError('A microtask must be a function')
        queueMicrotask(() => callback())
      },
    },
    /** Cancels all timers; later timers are not started. */
    end: () => {
      isOver = true
      for (const timer of pending.values()) clearTimeout(timer)
      pending.clear()
    },
  }
}

/** Milliseconds as in Node: an invalid delay counts as 1. */
function toDelay(value: unknown): number {
  const delayMs = Number(value)
  return delayMs >= 1 && delayMs <= 2 ** 31 - 1 ? delayMs : 1
}
