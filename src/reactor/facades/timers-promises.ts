import { abortError } from './abort-error.js'

interface Options {
  signal?: AbortSignal
}

/** `signal` cancels the timer. `start` returns the function that cancels it. */
function wait<T>(value: T, { signal }: Options = {}, start: (done: () => void) => () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) throw abortError(signal)
    const stop = start(() => {
      signal?.removeEventListener('abort', abort)
      resolve(value)
    })
    const abort = () => {
      stop()
      reject(abortError(signal!))
    }
    signal?.addEventListener('abort', abort, { once: true })
  })
}

const later = <T>(ms?: number, value?: T, options?: Options) =>
  wait(value, options, (done) => {
    const timer = setTimeout(done, ms)
    return () => clearTimeout(timer)
  })

const soon = <T>(value?: T, options?: Options) =>
  wait(value, options, (done) => {
    const timer = setImmediate(done)
    return () => clearImmediate(timer)
  })

async function* repeat<T>(ms?: number, value?: T, options?: Options): AsyncGenerator<T | undefined> {
  for (;;) yield later(ms, value, options)
}

export default {
  setTimeout: later,
  setImmediate: soon,
  setInterval: repeat,
  scheduler: {
    wait: (ms?: number, options?: Options) => later(ms, undefined, options),
    yield: () => soon(),
  },
}
