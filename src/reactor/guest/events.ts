/**
 * Events and abort signals for reactor code. The classes are our own, because code could reach other objects of Node
 * through Node's classes.
 */
import { DOMException } from './exceptions.js'
import { Hidden } from './shield.js'

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
  static abort(reason?: unknown): AbortSignal {
    const controller = new AbortController()
    controller.abort(reason)
    return controller.signal
  }
  static any(list: Iterable<AbortSignal>): AbortSignal {
    const controller = new AbortController()
    for (const each of list) {
      const follow = () => controller.abort(signals.get(each).reason)
      if (signals.get(each).aborted) follow()
      else each.addEventListener('abort', follow, { once: true })
    }
    return controller.signal
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
    const given = reason === undefined ? new DOMException('This operation was aborted', 'AbortError') : reason
    Object.assign(state, { aborted: true, reason: given })
    this.#signal.dispatchEvent(new Event('abort'))
  }
}
