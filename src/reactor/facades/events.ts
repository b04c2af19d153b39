/** The module `events`: the npm package `events`, with functions of newer versions of Node. */
import EventEmitter from 'events/events.js'
import { abortError } from './abort-error.js'

type Emitter = InstanceType<typeof EventEmitter>
type Listener = (...args: unknown[]) => void

/** At most this many events wait for the iterator of `on`. */
const MAX_WAITING = 10_000

function isTarget(emitter: unknown): emitter is EventTarget {
  return typeof (emitter as EventTarget | null)?.addEventListener === 'function'
}

function listen(emitter: Emitter | EventTarget, name: string, listener: Listener): () => void {
  if (isTarget(emitter)) {
    emitter.addEventListener(name, listener)
    return () => emitter.removeEventListener(name, listener)
  }
  emitter.on(name, listener)
  return () => void emitter.removeListener(name, listener)
}

function on(
  emitter: Emitter | EventTarget,
  name: string,
  { signal }: { signal?: AbortSignal } = {},
): AsyncIterableIterator<unknown[]> {
  const events: unknown[][] = []
  const waiting: { resolve(result: IteratorResult<unknown[]>): void; reject(error: unknown): void }[] = []
  let failure: { error: unknown } | undefined
  let isOver = false
  const stops: (() => void)[] = []
  const finish = () => {
    isOver = true
    for (const stop of stops.splice(0)) stop()
    for (const { resolve } of waiting.splice(0)) resolve({ value: undefined, done: true })
  }
  const fail = (error: unknown) => {
    const first = waiting.shift()
    if (first === undefined) failure = { error }
    else first.reject(error)
    finish()
  }
  const take: Listener = (...args) => {
    const first = waiting.shift()
    if (first !== undefined) first.resolve({ value: args, done: false })
    else if (events.length < MAX_WAITING) events.push(args)
    else fail(new RangeError(`At most ${MAX_WAITING} events may wait for an iterator`))
  }
  if (signal?.aborted) throw abortError(signal)
  stops.push(listen(emitter, name, take))
  if (name !== 'error' && !isTarget(emitter)) stops.push(listen(emitter, 'error', fail))
  if (signal !== undefined) stops.push(listen(signal, 'abort', () => fail(abortError(signal))))
  return {
    next: () =>
      new Promise((resolve, reject) => {
        const event = events.shift()
        if (event !== undefined) resolve({ value: event, done: false })
        else if (failure !== undefined) {
          const { error } = failure
          failure = undefined
          reject(error)
        } else if (isOver) resolve({ value: undefined, done: true })
        else waiting.push({ resolve, reject })
      }),
    return: async () => {
      finish()
      return { value: undefined, done: true }
    },
    throw: async (error) => {
      fail(error)
      return { value: undefined, done: true }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

export default Object.assign(EventEmitter, {
  on,
  errorMonitor: Symbol('events.errorMonitor'),
  captureRejectionSymbol: Symbol.for('nodejs.rejection'),
  getEventListeners: (emitter: Emitter, name: string) => emitter.listeners(name),
  getMaxListeners: (emitter: Emitter) => emitter.getMaxListeners(),
  setMaxListeners: (count: number, ...emitters: Emitter[]) => {
    for (const each of emitters) each.setMaxListeners?.(count)
  },
})
