/** Events and abort signals for reactor code: our own small classes instead of Node's. */

type Listener = ((event: Event) => void) | { handleEvent(event: Event): void }

/** Access to private members for this file only. */
let setTarget: (event: Event, target: EventTarget) => void
let abort: (signal: AbortSignal, reason: unknown) => void

export class Event {
  readonly #type: string
  readonly #isCancelable: boolean
  #target: EventTarget | null = null
  #isPrevented = false

  static {
    setTarget = (event, target) => {
      event.#target = target
    }
  }
  constructor(type: unknown, options: { cancelable?: boolean } = {}) {
    this.#type = String(type)
    this.#isCancelable = options?.cancelable === true
  }
  get type(): string {
    return this.#type
  }
  get cancelable(): boolean {
    return this.#isCancelable
  }
  get target(): EventTarget | null {
    return this.#target
  }
  get currentTarget(): EventTarget | null {
    return this.#target
  }
  get defaultPrevented(): boolean {
    return this.#isPrevented
  }
  preventDefault(): void {
    if (this.#isCancelable) this.#isPrevented = true
  }
  stopPropagation(): void {}
}

export class EventTarget {
  readonly #listeners = new Map<string, Map<Listener, boolean>>()

  addEventListener(type: unknown, listener: Listener | null, options?: boolean | { once?: boolean }): void {
    if (listener === null || listener === undefined) return
    const name = String(type)
    const listeners = this.#listeners.get(name) ?? new Map<Listener, boolean>()
    this.#listeners.set(name, listeners)
    if (!listeners.has(listener))
      listeners.set(listener, typeof options === 'object' && options?.once === true)
  }
  removeEventListener(type: unknown, listener: Listener | null): void {
    if (listener !== null) this.#listeners.get(String(type))?.delete(listener)
  }
  dispatchEvent(event: Event): boolean {
    setTarget(event, this)
    const listeners = this.#listeners.get(event.type) ?? new Map<Listener, boolean>()
    for (const [listener, isOnce] of [...listeners]) {
      if (isOnce) listeners.delete(listener)
      if (typeof listener === 'function') Reflect.apply(listener, this, [event])
      else listener.handleEvent(event)
    }
    return !event.defaultPrevented
  }
}

export class AbortSignal extends EventTarget {
  #reason: unknown
  #isAborted = false
  #onabort: ((event: Event) => void) | null = null

  static {
    abort = (signal, reason) => {
      if (signal.#isAborted) return
      signal.#isAborted = true
      signal.#reason = reason ?? createAbortError()
      const event = new Event('abort')
      signal.#onabort?.(event)
      signal.dispatchEvent(event)
    }
  }
  get aborted(): boolean {
    return this.#isAborted
  }
  get reason(): unknown {
    return this.#reason
  }
  get onabort(): ((event: Event) => void) | null {
    return this.#onabort
  }
  set onabort(listener: unknown) {
    this.#onabort = typeof listener === 'function' ? (listener as (event: Event) => void) : null
  }
  throwIfAborted(): void {
    if (this.#isAborted) throw this.#reason
  }
}

export class AbortController {
  readonly #signal = new AbortSignal()
  get signal(): AbortSignal {
    return this.#signal
  }
  abort(reason?: unknown): void {
    abort(this.#signal, reason)
  }
}

function createAbortError(): Error {
  const error = new Error('This operation was aborted')
  Object.defineProperty(error, 'name', { value: 'AbortError' })
  return error
}
