/** Events and abort signals for reactor code: small classes of our own, whose instances belong to one invocation. */

type Listener = ((event: Event) => void) | { handleEvent(event: Event): void }

export class Event {
  readonly type: string
  readonly cancelable: boolean
  target: unknown = null
  #isPrevented = false

  constructor(type: unknown, options: { cancelable?: boolean } = {}) {
    this.type = String(type)
    this.cancelable = options?.cancelable === true
  }
  get currentTarget(): unknown {
    return this.target
  }
  get defaultPrevented(): boolean {
    return this.#isPrevented
  }
  preventDefault(): void {
    if (this.cancelable) this.#isPrevented = true
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
    event.target = this
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
  onabort: ((event: Event) => void) | null = null

  get aborted(): boolean {
    return this.#isAborted
  }
  get reason(): unknown {
    return this.#reason
  }
  throwIfAborted(): void {
    if (this.#isAborted) throw this.#reason
  }
  /** The controller's way in; harmless in other hands, which could abort through it just as well. */
  static end(signal: AbortSignal, reason: unknown): void {
    if (signal.#isAborted) return
    signal.#isAborted = true
    signal.#reason = reason ?? createAbortError()
    const event = new Event('abort')
    signal.onabort?.(event)
    signal.dispatchEvent(event)
  }
}

export class AbortController {
  readonly signal = new AbortSignal()
  abort(reason?: unknown): void {
    AbortSignal.end(this.signal, reason)
  }
}

function createAbortError(): Error {
  const error = new Error('This operation was aborted')
  Object.defineProperty(error, 'name', { value: 'AbortError' })
  return error
}
