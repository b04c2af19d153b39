/**
 * Facades may use these objects in addition to the globals and modules of the code. Each run has a separate object, the
 * `Internals` of `guest/modules.ts`. Reactor code cannot require this module.
 */
declare module 'coffer:internals' {
  type Work = (...args: unknown[]) => unknown

  export const util: Record<string, unknown>
  export const fetch: typeof globalThis.fetch
  /** `functions`: functions of `node:zlib` that return all bytes at once. */
  export const zlib: {
    functions: Record<string, (bytes: unknown, options?: unknown) => Buffer>
    readConstants(): Record<string, number>
  }
  /** Values that a callback inherits from the callback that scheduled it. */
  export const scope: {
    get(key: object): unknown
    run(key: object, value: unknown, work: () => unknown): unknown
    /** Changes the value of `key` in the rest of the current callback, and in all callbacks that the rest schedules. */
    enter(key: object, value: unknown): void
    /** The returned function calls `work` with the values that were current when `capture` was called. */
    capture(): (work: () => unknown) => unknown
  }
}

/** The code of these untyped packages is a part of facades. */
declare module 'events/events.js' {
  const EventEmitter: typeof import('node:events').EventEmitter
  export default EventEmitter
}

declare module 'readable-stream/lib/stream.js' {
  const stream: typeof import('node:stream')
  export default stream
}
