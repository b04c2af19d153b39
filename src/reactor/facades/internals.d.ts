/**
 * The objects that a facade may use in addition to the globals and modules of the code. Each run has its own object,
 * the `Internals` of `guest/modules.ts`. Reactor code cannot require this module.
 */
declare module 'coffer:internals' {
  type Work = (...args: unknown[]) => unknown

  export const util: Record<string, unknown>
  export const fetch: typeof globalThis.fetch
  /** `functions`: the functions of `node:zlib` that return all bytes at once. */
  export const zlib: {
    functions: Record<string, (bytes: unknown, options?: unknown) => Buffer>
    readConstants(): Record<string, number>
  }
  /** The values that the current callback inherits from the callback that scheduled it. */
  export const scope: {
    get(key: object): unknown
    /** Runs `work` with another value of `key`. */
    run(key: object, value: unknown, work: () => unknown): unknown
    /** Changes the value of `key` for the rest of the current callback, and for all callbacks that it schedules. */
    enter(key: object, value: unknown): void
    /** Saves the current values. The returned function calls `work` with the saved values. */
    capture(): (work: () => unknown) => unknown
  }
}

/** The packages whose code is a part of a facade. The files of these packages have no types. */
declare module 'events/events.js' {
  const EventEmitter: typeof import('node:events').EventEmitter
  export default EventEmitter
}

declare module 'readable-stream/lib/stream.js' {
  const stream: typeof import('node:stream')
  export default stream
}
