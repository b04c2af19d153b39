import { missing } from './errors.js'

const TYPES = ['ready', 'change', 'focus', 'blur', 'keydown'] as const
export type EventType = (typeof TYPES)[number]

export type Listener = (event: never) => void

export class Listeners {
  readonly #all = new Map<EventType, Set<{ listener: Listener }>>()
  #isReady = false

  /**
   * Also calls a listener for `ready` that is added after the event.
   * @throws MissingError for an unknown type of event
   */
  add(type: string, listener: Listener): { unsubscribe(): void } {
    const known = TYPES.find((each) => each === type)
    if (known === undefined) throw missing(`the event ${type}`)
    const entry = { listener }
    const entries = this.#all.get(known) ?? new Set()
    this.#all.set(known, entries.add(entry))
    if (known === 'ready' && this.#isReady)
      queueMicrotask(() => {
        if (entries.has(entry)) listener({ type: 'ready' } as never)
      })
    return { unsubscribe: () => entries.delete(entry) }
  }

  emit(type: EventType, detail: object = {}): void {
    if (type === 'ready') this.#isReady = true
    const event = { type, ...detail } as never
    for (const { listener } of [...(this.#all.get(type) ?? [])]) listener(event)
  }

  /** A field calls this method when it is no longer in the page. */
  reset(): void {
    this.#isReady = false
  }
}
