/**
 * Timers for one run. Code could reach all timers of the process through a timer object of Node, so it gets objects of
 * our own classes.
 */
import { clearTimeout, setTimeout } from 'node:timers'
import type { Restore } from './scope.js'
import { define, Hidden } from './shield.js'

/** Read here, before `stripForLockdown` removes `queueMicrotask`. */
const { queueMicrotask } = globalThis
const MAX_TIMERS = 10_000
const MAX_DELAY_MS = 2 ** 31 - 1

type Callback = (...args: unknown[]) => void

interface Timer {
  id: number
  isPending(): boolean
  restart(): void
  stop(): void
}

const timers = new Hidden<Timer>()

/**
 * The result of `setTimeout` and similar functions. The end of a run cancels all timers, so `ref` and `unref` do
 * nothing.
 */
export class Timeout {
  constructor(timer: unknown) {
    if (!isTimer(timer)) throw new TypeError('Illegal constructor')
    timers.set(this, timer)
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
  hasRef(): boolean {
    return timers.get(this).isPending()
  }
  refresh(): this {
    timers.get(this).restart()
    return this
  }
  close(): this {
    timers.get(this).stop()
    return this
  }
  [Symbol.toPrimitive](): number {
    return timers.get(this).id
  }
}
define(Timeout.prototype, Symbol.toStringTag, 'Timeout', false)

/**
 * The inner timers that this module has made. Reactor code can reach none of these timers, so it cannot call the
 * constructor of `Timeout`.
 */
const made = new WeakSet<object>()
const isTimer = (value: unknown): value is Timer => made.has(value as object)

export function createTimers(capture: () => Restore) {
  const pending = new Map<number, NodeJS.Timeout>()
  let last = 0
  let isOver = false

  function start(isRepeated: boolean, callback: Callback, delayMs: unknown, args: unknown[]): Timeout {
    if (typeof callback !== 'function') throw new TypeError('The callback of a timer must be a function')
    if (!isOver && pending.size >= MAX_TIMERS)
      throw new RangeError(`At most ${MAX_TIMERS} timers may be pending`)
    const id = ++last
    const given = Number(delayMs)
    const ms = given >= 1 && given <= MAX_DELAY_MS ? given : 1
    const restore = capture()
    const wait = () => {
      if (!isOver) pending.set(id, setTimeout(run, ms))
    }
    const run = () => {
      if (isRepeated) wait()
      else pending.delete(id)
      restore(() => callback(...args))
    }
    wait()
    const timer: Timer = {
      id,
      isPending: () => pending.has(id),
      restart: () => {
        if (!pending.has(id)) return
        stop(id)
        wait()
      },
      stop: () => stop(id),
    }
    made.add(timer)
    return new Timeout(timer)
  }
  function stop(id: number): void {
    clearTimeout(pending.get(id))
    pending.delete(id)
  }
  function clear(given: unknown): void {
    if (given instanceof Timeout) given.close()
    else if (typeof given === 'number' || typeof given === 'string') stop(Number(given))
  }

  return {
    globals: {
      setTimeout: (callback: Callback, ms?: unknown, ...args: unknown[]) => start(false, callback, ms, args),
      setInterval: (callback: Callback, ms?: unknown, ...args: unknown[]) => start(true, callback, ms, args),
      setImmediate: (callback: Callback, ...args: unknown[]) => start(false, callback, 0, args),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
      queueMicrotask: (callback: Callback) => {
        if (typeof callback !== 'function') throw new TypeError('A microtask must be a function')
        const restore = capture()
        queueMicrotask(() => void restore(() => callback()))
      },
    },
    end: () => {
      isOver = true
      for (const id of pending.keys()) stop(id)
    },
  }
}
