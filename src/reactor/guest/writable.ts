/**
 * `WritableStream` and `TransformStream` for reactor code. The classes are our own, because code could reach other
 * objects of Node through Node's streams. A stream works only when the code calls it.
 */
import { AbortController, type AbortSignal } from './events.js'
import { type Any, define, Hidden } from './shield.js'
import { MAX_WAITING, methodOf, ReadableStream, type ReadableStreamDefaultController } from './streams.js'

type Work = (...given: unknown[]) => unknown
type Sink = { [name in 'start' | 'write' | 'close' | 'abort']?: Work | undefined }

interface Job {
  run: () => unknown
  resolve(): void
  reject(reason: unknown): void
}

/** An unhandled rejection of the promise does not end the run. */
function createDeferred() {
  let resolve!: () => void
  let reject!: (reason: unknown) => void
  const promise = new Promise<undefined>((done, failed) => {
    resolve = () => done(undefined)
    reject = failed
  })
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}

/** A stream, its controller and its writer share this state. */
class Drain {
  readonly #sink: Sink
  readonly #controller: WritableStreamDefaultController
  readonly #highWaterMark: number
  readonly #jobs: Job[] = []
  readonly abortion = new AbortController()
  readonly closed = createDeferred()
  #ready = createDeferred()
  #phase: 'starting' | 'writable' | 'closing' | 'closed' | 'errored' = 'starting'
  #reason: unknown
  #isRunning = true
  writer: WritableStreamDefaultWriter | undefined

  constructor(sink: Sink, highWaterMark: number, controller: WritableStreamDefaultController) {
    this.#sink = sink
    this.#controller = controller
    this.#highWaterMark = highWaterMark
    if (highWaterMark > 0) this.#ready.resolve()
  }

  get desiredSize(): number | null {
    if (this.#phase === 'errored') return null
    return this.#phase === 'closed' ? 0 : this.#highWaterMark - this.#jobs.length - (this.#isWriting ? 1 : 0)
  }

  get #isWriting(): boolean {
    return this.#isRunning && this.#phase !== 'starting'
  }

  get ready(): Promise<undefined> {
    return this.#ready.promise
  }

  /** @throws what `start` of the sink throws */
  start(): void {
    const started = this.#sink.start?.(this.#controller)
    Promise.resolve(started).then(
      () => {
        if (this.#phase === 'starting') this.#phase = 'writable'
        this.#isRunning = false
        this.#next()
      },
      (reason) => this.fail(reason),
    )
  }

  write(chunk: unknown): Promise<undefined> {
    return this.#add(() => this.#sink.write?.(chunk, this.#controller))
  }

  async close(): Promise<undefined> {
    const closed = this.#add(() => this.#sink.close?.())
    if (this.#phase !== 'errored') this.#phase = 'closing'
    await closed
    this.#phase = 'closed'
    this.closed.resolve()
    return undefined
  }

  #add(run: () => unknown): Promise<undefined> {
    if (this.#phase === 'errored') return Promise.reject(this.#reason)
    if (this.#phase === 'closing' || this.#phase === 'closed')
      return Promise.reject(new TypeError('The stream is closed'))
    if (this.#jobs.length >= MAX_WAITING)
      return Promise.reject(new RangeError(`At most ${MAX_WAITING} chunks may wait in a stream`))
    const { promise, resolve, reject } = createDeferred()
    this.#jobs.push({ run, resolve, reject })
    this.#next()
    if ((this.desiredSize ?? 0) <= 0) this.#ready = createDeferred()
    return promise
  }

  #next(): void {
    const [job] = this.#jobs
    if (this.#isRunning || job === undefined) return
    this.#isRunning = true
    this.#jobs.shift()
    Promise.resolve()
      .then(() => job.run())
      .then(
        () => {
          this.#isRunning = false
          job.resolve()
          if ((this.desiredSize ?? 0) > 0) this.#ready.resolve()
          this.#next()
        },
        (reason) => {
          job.reject(reason)
          this.fail(reason)
        },
      )
  }

  fail(reason: unknown): void {
    if (this.#phase === 'closed' || this.#phase === 'errored') return
    this.#phase = 'errored'
    this.#reason = reason
    for (const job of this.#jobs.splice(0)) job.reject(reason)
    this.#ready.reject(reason)
    this.closed.reject(reason)
  }

  async abort(reason: unknown): Promise<undefined> {
    if (this.#phase === 'closed' || this.#phase === 'errored') return undefined
    this.abortion.abort(reason)
    this.fail(reason)
    await this.#sink.abort?.(reason)
    return undefined
  }
}

const drains = new Hidden<Drain>()

/** Only code with this key can create a controller. Reactor code cannot reach the key. */
const KEY = {}

export class WritableStreamDefaultController {
  constructor(key: unknown) {
    if (key !== KEY) throw new TypeError('Illegal constructor')
  }
  get signal(): AbortSignal {
    return drains.get(this).abortion.signal
  }
  error(reason?: unknown): void {
    drains.get(this).fail(reason)
  }
}

/** `drain`: undefined after the writer has released the stream. */
const writers = new Hidden<{ drain: Drain | undefined }>()

function drainOf(writer: object): Drain {
  const { drain } = writers.get(writer)
  if (drain === undefined) throw new TypeError('The writer was released')
  return drain
}

export class WritableStreamDefaultWriter {
  constructor(stream: object) {
    const drain = drains.get(stream)
    if (!(stream instanceof WritableStream)) throw new TypeError('The argument must be a WritableStream')
    if (drain.writer !== undefined) throw new TypeError('The stream is locked to a writer')
    drain.writer = this
    writers.set(this, { drain })
  }
  get closed(): Promise<undefined> {
    return drainOf(this).closed.promise
  }
  get ready(): Promise<undefined> {
    return drainOf(this).ready
  }
  get desiredSize(): number | null {
    return drainOf(this).desiredSize
  }
  async write(chunk?: unknown): Promise<undefined> {
    return drainOf(this).write(chunk)
  }
  async close(): Promise<undefined> {
    return drainOf(this).close()
  }
  async abort(reason?: unknown): Promise<undefined> {
    return drainOf(this).abort(reason)
  }
  releaseLock(): void {
    const writing = writers.get(this)
    if (writing.drain !== undefined) writing.drain.writer = undefined
    writing.drain = undefined
  }
}

type Strategy = { highWaterMark?: unknown } | null | undefined

function highWaterMarkOf(strategy: Strategy, usual: number): number {
  const highWaterMark = Number(strategy?.highWaterMark ?? usual)
  if (highWaterMark >= 0) return highWaterMark
  throw new RangeError('highWaterMark must be a number that is not negative')
}

export class WritableStream {
  constructor(sink?: unknown, strategy?: Strategy) {
    const highWaterMark = highWaterMarkOf(strategy, 1)
    const members = ['start', 'write', 'close', 'abort'].map((name) => [name, methodOf(sink, name)])
    const controller = new WritableStreamDefaultController(KEY)
    const drain = new Drain(Object.fromEntries(members), highWaterMark, controller)
    drains.set(this, drain)
    drains.set(controller, drain)
    drain.start()
  }
  get locked(): boolean {
    return drains.get(this).writer !== undefined
  }
  getWriter(): WritableStreamDefaultWriter {
    return new WritableStreamDefaultWriter(this)
  }
  async abort(reason?: unknown): Promise<undefined> {
    return unlocked(this).abort(reason)
  }
  async close(): Promise<undefined> {
    return unlocked(this).close()
  }
}

/** @throws TypeError if the stream is locked */
function unlocked(stream: WritableStream): Drain {
  const drain = drains.get(stream)
  if (drain.writer !== undefined) throw new TypeError('The stream is locked to a writer')
  return drain
}

/** A transform stream and its controller share this state. */
interface Passage {
  output: ReadableStreamDefaultController
  stop(reason: unknown): void
}

const passages = new Hidden<Passage>()

export class TransformStreamDefaultController {
  constructor(key: unknown) {
    if (key !== KEY) throw new TypeError('Illegal constructor')
  }
  get desiredSize(): number | null {
    return passages.get(this).output.desiredSize
  }
  enqueue(chunk?: unknown): void {
    passages.get(this).output.enqueue(chunk)
  }
  error(reason?: unknown): void {
    const { output, stop } = passages.get(this)
    output.error(reason)
    stop(reason)
  }
  terminate(): void {
    const { output, stop } = passages.get(this)
    output.close()
    stop(new TypeError('The stream was terminated'))
  }
}

const sides = new Hidden<{ readable: ReadableStream; writable: WritableStream }>()

export class TransformStream {
  constructor(transformer?: unknown, writableStrategy?: Strategy, readableStrategy?: Strategy) {
    const [start, transform, flush] = ['start', 'transform', 'flush'].map((name) =>
      methodOf(transformer, name),
    )
    const controller = new TransformStreamDefaultController(KEY)
    let output: ReadableStreamDefaultController
    // A chunk is transformed when somebody reads, or when the readable side has room.
    let room = createDeferred()
    const readable = new ReadableStream(
      {
        start: (given: ReadableStreamDefaultController) => {
          output = given
        },
        pull: () => room.resolve(),
        cancel: (reason: unknown) => {
          room.resolve()
          stop(reason)
        },
      },
      { highWaterMark: highWaterMarkOf(readableStrategy, 0) },
    )
    const guarded = async (work: () => unknown) => {
      try {
        await work()
      } catch (reason) {
        output.error(reason)
        throw reason
      }
    }
    const writable = new WritableStream(
      {
        start: () => guarded(() => start?.(controller)),
        write: async (chunk: unknown) => {
          if ((output.desiredSize ?? 0) <= 0) {
            await room.promise
            room = createDeferred()
          }
          await guarded(() =>
            transform === undefined ? output.enqueue(chunk) : transform(chunk, controller),
          )
        },
        close: () =>
          guarded(async () => {
            await flush?.(controller)
            closeIfOpen(output)
          }),
        abort: (reason: unknown) => output.error(reason),
      },
      { highWaterMark: highWaterMarkOf(writableStrategy, 1) },
    )
    const stop = (reason: unknown) => drains.get(writable).fail(reason)
    passages.set(controller, { output: output!, stop })
    sides.set(this, { readable, writable })
  }
  get readable(): ReadableStream {
    return sides.get(this).readable
  }
  get writable(): WritableStream {
    return sides.get(this).writable
  }
}

/** After `terminate`, the readable side is already closed. */
function closeIfOpen(output: ReadableStreamDefaultController): void {
  try {
    output.close()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
  }
}

interface PipeOptions {
  preventClose?: unknown
  preventAbort?: unknown
  preventCancel?: unknown
  signal?: Any
}

async function pipe(source: ReadableStream, target: Any, options: PipeOptions = {}): Promise<undefined> {
  const { preventClose, preventAbort, preventCancel, signal } = options
  const reader = source.getReader()
  const writer = new WritableStreamDefaultWriter(target)
  let isSourceBroken = false
  try {
    for (;;) {
      if (signal?.aborted) throw signal.reason
      await writer.ready
      const { value, done } = await reader.read().catch((reason) => {
        isSourceBroken = true
        throw reason
      })
      if (done) break
      await writer.write(value)
    }
    if (!preventClose) await writer.close()
    return undefined
  } catch (reason) {
    if (!isSourceBroken && !preventCancel) await reader.cancel(reason).catch(() => undefined)
    if (!preventAbort) await writer.abort(reason).catch(() => undefined)
    throw reason
  } finally {
    reader.releaseLock()
    writer.releaseLock()
  }
}

/** No global of reactor code contains these classes. Code gets only objects, for example from `getWriter`. */
export const HIDDEN_WRITABLE_CLASSES: readonly object[] = [
  WritableStreamDefaultWriter,
  WritableStreamDefaultController,
  TransformStreamDefaultController,
]

const PIPES = {
  async pipeTo(this: ReadableStream, target: Any, options?: PipeOptions): Promise<undefined> {
    return pipe(this, target, options)
  },
  pipeThrough(this: ReadableStream, { readable, writable }: Any, options?: PipeOptions): ReadableStream {
    // The readable side reports the error.
    pipe(this, writable, options).catch(() => undefined)
    return readable
  },
}
// Defined here, because streams.ts does not import writable streams.
for (const [name, method] of Object.entries(PIPES)) define(ReadableStream.prototype, name, method, false)

for (const [Class, name] of [
  [WritableStream, 'WritableStream'],
  [WritableStreamDefaultWriter, 'WritableStreamDefaultWriter'],
  [WritableStreamDefaultController, 'WritableStreamDefaultController'],
  [TransformStream, 'TransformStream'],
  [TransformStreamDefaultController, 'TransformStreamDefaultController'],
] as const)
  define(Class.prototype, Symbol.toStringTag, name, false)
