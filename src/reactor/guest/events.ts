/** Events, abort signals and timers for reactor code: our own classes, because Node's classes link to other Node objects. */
import { clearTimeout, setTimeout } from 'node:timers'
import { define, Hidden } from './shield.js'

type Listener = ((event: Event) => void) | { handleEvent(event: Event): void }

type Target = EventTarget | null
type State = { type: string; cancelable: boolean; target: Target; currentTarget: Target }
const events = new Hidden<State & { defaultPrevented: boolean }>()

export class Event {
  constructor(type: unknown, options?: { cancelable?: boolean }) {
    const state = { target: null, currentTarget: null, defaultPrevented: false }
    events.set(this, { type: String(type), cancelable: options?.cancelable === true, ...state })
  }
  preventDefault(): void {
    const state = events.get(this)
    state.defaultPrevented ||= state.cancelable
  }
  stopPropagation(): void {}
}
events.addMembers(Event, { reads: 'type cancelable target currentTarget defaultPrevented' })

export class EventTarget {
  readonly #listeners = new Map<string, Map<Listener, boolean>>()

  addEventListener(type: unknown, listener?: Listener | null, options?: boolean | { once?: boolean }): void {
    if (listener === null || listener === undefined) return
    const name = String(type)
    const listeners = this.#listeners.get(name) ?? new Map<Listener, boolean>()
    this.#listeners.set(name, listeners)
    if (!listeners.has(listener)) listeners.set(listener, (options as { once?: unknown })?.once === true)
  }
  removeEventListener(type: unknown, listener: Listener): void {
    this.#listeners.get(String(type))?.delete(listener)
  }
  dispatchEvent(event: Event): boolean {
    const state = Object.assign(events.get(event), { target: this, currentTarget: this })
    const listeners = this.#listeners.get(state.type) ?? new Map<Listener, boolean>()
    for (const [listener, isOnce] of [...listeners]) {
      if (isOnce) listeners.delete(listener)
      if (typeof listener === 'function') Reflect.apply(listener, this, [event])
      else listener.handleEvent(event)
    }
    return !state.defaultPrevented
  }
}

const signals = new Hidden<{ aborted: boolean; reason: unknown }>()

export class AbortSignal extends EventTarget {
  #onabort: ((event: Event) => void) | null = null

  constructor() {
    super()
    signals.set(this, { aborted: false, reason: undefined })
    this.addEventListener('abort', (event) => this.#onabort?.(event))
  }
  get onabort(): ((event: Event) => void) | null {
    return this.#onabort
  }
  set onabort(listener: unknown) {
    this.#onabort = typeof listener === 'function' ? (listener as (event: Event) => void) : null
  }
  throwIfAborted(): void {
    const { aborted, reason } = signals.get(this)
    if (aborted) throw reason
  }
}
signals.addMembers(AbortSignal, { reads: 'aborted reason' })

export class AbortController {
  readonly #signal = new AbortSignal()

  get signal(): AbortSignal {
    return this.#signal
  }
  abort(reason?: unknown): void {
    const state = signals.get(this.#signal)
    if (state.aborted) return
    const usual = new Error('This operation was aborted')
    define(usual, 'name', 'AbortError', false)
    Object.assign(state, { aborted: true, reason: reason === undefined ? usual : reason })
    this.#signal.dispatchEvent(new Event('abort'))
  }
}

/** Captured before `stripGlobal` removes it. */
const { queueMicrotask } = globalThis
const MAX_TIMERS = 10_000

type Callback = (...args: unknown[]) => void

/** Timers for one run. Ids are numbers, because Node's timer objects link to all other timers of the process. */
export function createTimers() {
  const pending = new Map<number, NodeJS.Timeout>()
  let last = 0
  let isOver = false

  function start(isRepeated: boolean, callback: Callback, delayMs: unknown, args: unknown[]): number {
    if (typeof callback !== 'function') throw new TypeError('The callback of a timer must be a function')
    if (isOver) return 0
    if (pending.size >= MAX_TIMERS) throw new RangeError(`At most ${MAX_TIMERS} timers may be pending`)
    const id = ++last
    const ms = Number(delayMs)
    const wait = () => pending.set(id, setTimeout(run, ms >= 1 && ms <= 2 ** 31 - 1 ? ms : 1))
    const run = () => {
      if (isRepeated) wait()
      else pending.delete(id)
      callback(...args)
    }
    wait()
    return id
  }
  function stop(id: unknown): void {
    if (typeof id !== 'number') return
    clearTimeout(pending.get(id))
    pending.delete(id)
  }

  return {
    globals: {
      setTimeout: (callback: Callback, ms?: unknown, ...args: unknown[]) => start(false, callback, ms, args),
      setInterval: (callback: Callback, ms?: unknown, ...args: unknown[]) => start(true, callback, ms, args),
      setImmediate: (callback: Callback, ...args: unknown[]) => start(false, callback, 0, args),
      clearTimeout: (id: unknown) => stop(id),
      clearInterval: (id: unknown) => stop(id),
      clearImmediate: (id: unknown) => stop(id),
      queueMicrotask: (callback: Callback) => {
        if (typeof callback !== 'function') throw new TypeError('A microtask must be a function')
        queueMicrotask(() => callback())
      },
    },
    end: () => {
      isOver = true
      for (const id of pending.keys()) stop(id)
    },
  }
}
