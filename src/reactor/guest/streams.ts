/**
 * `ReadableStream` for reactor code. The classes are our own, because code could reach other objects of Node through
 * Node's streams. A stream works only when the code calls it, so no work of a stream continues after a run.
 */
import { type Any, define, Hidden, viewMemory } from './shield.js'

/** At most this many chunks wait in a stream, and at most this many reads wait for a chunk. */
export const MAX_WAITING = 10_000
const CHUNK_BYTES = 64 * 1024
/** The limit of bytes for a stream that is read as a whole. */
const MAX_BYTES = 16 * 1024 * 1024

type Result = { value: unknown; done: boolean }

interface Waiting {
  resolve(result: Result): void
  reject(reason: unknown): void
}

type Source = { [name in 'start' | 'pull' | 'cancel']?: (given: unknown) => unknown }

/** A stream, its controller and its reader share this state. */
class Flow {
  readonly #source: Source
  readonly #controller: ReadableStreamDefaultController
  readonly #highWaterMark: number
  readonly #chunks: unknown[] = []
  readonly #reads: Waiting[] = []
  readonly #endListeners: (() => void)[] = []
  #phase: 'readable' | 'closing' | 'closed' | 'errored' = 'readable'
  #reason: unknown
  #hasStarted = false
  #isPulling = false
  #mustPullAgain = false
  isDisturbed = false
  reader: ReadableStreamDefaultReader | undefined

  constructor(source: Source, highWaterMark: number, controller: ReadableStreamDefaultController) {
    this.#source = source
    this.#controller = controller
    this.#highWaterMark = highWaterMark
  }

  get desiredSize(): number | null {
    if (this.#phase === 'errored') return null
    return this.#phase === 'closed' ? 0 : this.#highWaterMark - this.#chunks.length
  }

  /** @throws what `start` of the source throws */
  start(): void {
    const { start } = this.#source
    const started = start === undefined ? undefined : Reflect.apply(start, this.#source, [this.#controller])
    Promise.resolve(started).then(
      () => {
        this.#hasStarted = true
        this.#pull()
      },
      (reason) => this.fail(reason),
    )
  }

  /** @throws TypeError if the stream accepts no more chunks, or RangeError if too many chunks wait */
  enqueue(chunk: unknown): void {
    if (this.#phase !== 'readable') throw new TypeError('The stream takes no more chunks')
    const read = this.#reads.shift()
    if (read !== undefined) read.resolve({ value: chunk, done: false })
    else if (this.#chunks.length >= MAX_WAITING)
      throw new RangeError(`At most ${MAX_WAITING} chunks may wait in a stream`)
    else this.#chunks.push(chunk)
    this.#pull()
  }

  /** Ends the stream after the waiting chunks were read. @throws TypeError if the stream is already closed */
  close(): void {
    if (this.#phase !== 'readable') throw new TypeError('The stream is closed')
    this.#phase = 'closing'
    if (this.#chunks.length === 0) this.#end()
  }

  #end(): void {
    this.#phase = 'closed'
    for (const read of this.#reads.splice(0)) read.resolve({ value: undefined, done: true })
    this.#tellEnd()
  }

  fail(reason: unknown): void {
    if (this.#phase === 'closed' || this.#phase === 'errored') return
    this.#phase = 'errored'
    this.#reason = reason
    this.#chunks.length = 0
    for (const read of this.#reads.splice(0)) read.reject(reason)
    this.#tellEnd()
  }

  #tellEnd(): void {
    for (const tell of this.#endListeners.splice(0)) tell()
  }

  read(): Promise<Result> {
    this.isDisturbed = true
    return new Promise((resolve, reject) => {
      if (this.#phase === 'errored') throw this.#reason
      if (this.#chunks.length > 0) {
        resolve({ value: this.#chunks.shift(), done: false })
        if (this.#phase === 'closing' && this.#chunks.length === 0) this.#end()
      } else if (this.#phase === 'closed') resolve({ value: undefined, done: true })
      else if (this.#reads.length >= MAX_WAITING)
        throw new RangeError(`At most ${MAX_WAITING} reads may wait for a chunk`)
      else this.#reads.push({ resolve, reject })
      this.#pull()
    })
  }

  async cancel(reason: unknown): Promise<void> {
    this.isDisturbed = true
    if (this.#phase === 'errored') throw this.#reason
    if (this.#phase === 'closed') return
    this.#chunks.length = 0
    this.#end()
    const { cancel } = this.#source
    if (cancel !== undefined) await Reflect.apply(cancel, this.#source, [reason])
  }

  release(): void {
    this.reader = undefined
    for (const read of this.#reads.splice(0)) read.reject(new TypeError('The reader was released'))
  }

  ended(): Promise<void> {
    return new Promise((resolve, reject) => {
      const tell = () => (this.#phase === 'errored' ? reject(this.#reason) : resolve())
      if (this.#phase === 'closed' || this.#phase === 'errored') tell()
      else this.#endListeners.push(tell)
    })
  }

  #pull(): void {
    const { pull } = this.#source
    const isWanted = this.#reads.length > 0 || (this.desiredSize ?? 0) > 0
    if (pull === undefined || !this.#hasStarted || this.#phase !== 'readable' || !isWanted) return
    if (this.#isPulling) {
      this.#mustPullAgain = true
      return
    }
    this.#isPulling = true
    // Calls `pull` in a promise callback, so that calls are not nested if the source enqueues a chunk at once.
    Promise.resolve()
      .then(() => Reflect.apply(pull, this.#source, [this.#controller]))
      .then(
        () => {
          this.#isPulling = false
          if (this.#mustPullAgain) {
            this.#mustPullAgain = false
            this.#pull()
          }
        },
        (reason) => this.fail(reason),
      )
  }
}

const flows = new Hidden<Flow>()

export class ReadableStreamDefaultController {
  constructor(key: unknown) {
    if (key !== KEY) throw new TypeError('Illegal constructor')
  }
  get desiredSize(): number | null {
    return flows.get(this).desiredSize
  }
  enqueue(chunk?: unknown): void {
    flows.get(this).enqueue(chunk)
  }
  close(): void {
    flows.get(this).close()
  }
  error(reason?: unknown): void {
    flows.get(this).fail(reason)
  }
}

/** Only code with this key can create a controller. Reactor code cannot reach the key. */
const KEY = {}

interface Reading {
  /** Undefined after the reader has released the stream. */
  flow: Flow | undefined
  closed: Promise<void>
}

const readers = new Hidden<Reading>()

function flowOf(reader: object): Flow {
  const { flow } = readers.get(reader)
  if (flow === undefined) throw new TypeError('The reader was released')
  return flow
}

export class ReadableStreamDefaultReader {
  constructor(stream: object) {
    const flow = flows.get(stream)
    if (!(stream instanceof ReadableStream)) throw new TypeError('The argument must be a ReadableStream')
    if (flow.reader !== undefined) throw new TypeError('The stream is locked to a reader')
    const closed = flow.ended()
    // Without a handler, the rejection of `closed` would end the run.
    closed.catch(() => undefined)
    flow.reader = this
    readers.set(this, { flow, closed })
  }
  get closed(): Promise<void> {
    return readers.get(this).closed
  }
  async read(): Promise<Result> {
    return flowOf(this).read()
  }
  async cancel(reason?: unknown): Promise<void> {
    return flowOf(this).cancel(reason)
  }
  releaseLock(): void {
    const reading = readers.get(this)
    reading.flow?.release()
    reading.flow = undefined
  }
}

/**
 * Reads the member only once, because a getter could return another value at the second read.
 * @throws TypeError for a value that is no function
 */
export function methodOf(given: Any, name: string): ((...given: unknown[]) => unknown) | undefined {
  const method = given?.[name]
  if (method === undefined || method === null) return undefined
  if (typeof method !== 'function') throw new TypeError(`${name} of a source must be a function`)
  return (...args) => Reflect.apply(method, given, args)
}

export class ReadableStream {
  constructor(source?: unknown, strategy?: { highWaterMark?: unknown } | null) {
    const highWaterMark = Number(strategy?.highWaterMark ?? 1)
    if (!(highWaterMark >= 0)) throw new RangeError('highWaterMark must be a number that is not negative')
    const members = ['start', 'pull', 'cancel'].map((name) => [name, methodOf(source, name)])
    const controller = new ReadableStreamDefaultController(KEY)
    const flow = new Flow(Object.fromEntries(members), highWaterMark, controller)
    flows.set(this, flow)
    flows.set(controller, flow)
    flow.start()
  }
  static from(items: Any): ReadableStream {
    const iterator = items[Symbol.asyncIterator]?.() ?? items[Symbol.iterator]()
    const pull = async (controller: ReadableStreamDefaultController) => {
      const { value, done } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(await value)
    }
    return new ReadableStream({ pull, cancel: () => iterator.return?.() }, { highWaterMark: 0 })
  }
  get locked(): boolean {
    return flows.get(this).reader !== undefined
  }
  getReader(options?: { mode?: unknown }): ReadableStreamDefaultReader {
    if (options?.mode !== undefined) throw new TypeError('A reader of this stream cannot have a mode')
    return new ReadableStreamDefaultReader(this)
  }
  async cancel(reason?: unknown): Promise<void> {
    if (this.locked) throw new TypeError('The stream is locked to a reader')
    return flows.get(this).cancel(reason)
  }
  /** Returns two streams with the same chunks. A chunk that one stream has read waits in the other stream. */
  tee(): [ReadableStream, ReadableStream] {
    const reader = this.getReader()
    const controllers: ReadableStreamDefaultController[] = []
    const cancelled: unknown[] = []
    const pull = async () => {
      const { value, done } = await reader.read()
      for (const [at, controller] of controllers.entries())
        if (!(at in cancelled)) done ? controller.close() : controller.enqueue(value)
    }
    let pulling: Promise<void> | undefined
    const pullOnce = () => {
      pulling ??= pull().then(
        () => {
          pulling = undefined
        },
        (reason) => {
          for (const controller of controllers) controller.error(reason)
        },
      )
      return pulling
    }
    const branch = (at: number) =>
      new ReadableStream(
        {
          start(controller: ReadableStreamDefaultController) {
            controllers[at] = controller
          },
          pull: pullOnce,
          cancel(reason: unknown) {
            cancelled[at] = reason
            return 1 - at in cancelled ? reader.cancel([...cancelled]) : undefined
          },
        },
        { highWaterMark: 0 },
      )
    return [branch(0), branch(1)]
  }
  async *values(options?: { preventCancel?: unknown }): AsyncGenerator<unknown, void> {
    const reader = this.getReader()
    const isKept = Boolean(options?.preventCancel)
    let hasEnded = false
    try {
      for (;;) {
        const { value, done } = await reader.read().catch((reason) => {
          hasEnded = true
          throw reason
        })
        hasEnded = done
        if (done) return
        yield value
      }
    } finally {
      if (!hasEnded && !isKept) await reader.cancel()
      reader.releaseLock()
    }
  }
  [Symbol.asyncIterator](): AsyncGenerator<unknown, void> {
    return this.values()
  }
}
define(ReadableStream.prototype, Symbol.toStringTag, 'ReadableStream', false)
define(ReadableStreamDefaultReader.prototype, Symbol.toStringTag, 'ReadableStreamDefaultReader', false)
define(
  ReadableStreamDefaultController.prototype,
  Symbol.toStringTag,
  'ReadableStreamDefaultController',
  false,
)

/** No global of reactor code contains these classes. Code gets only objects, for example from `getReader`. */
export const HIDDEN_CLASSES: readonly object[] = [
  ReadableStreamDefaultReader,
  ReadableStreamDefaultController,
]

export function isDisturbed(stream: ReadableStream): boolean {
  return flows.get(stream).isDisturbed
}

export function isLocked(stream: ReadableStream): boolean {
  return flows.get(stream).reader !== undefined
}

type Bytes = Uint8Array<ArrayBuffer>

/** Each chunk is a copy of a part of `bytes`. */
export function streamOf(bytes: Bytes): ReadableStream {
  let at = 0
  const pull = (controller: ReadableStreamDefaultController) => {
    const end = Math.min(at + CHUNK_BYTES, bytes.length)
    if (end > at) controller.enqueue(bytes.slice(at, end))
    at = end
    if (at === bytes.length) controller.close()
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}

/**
 * Reads a whole stream of bytes. The stream stays locked.
 * @throws TypeError for chunks that are no bytes, RangeError if the stream is too long, and errors of the source
 */
export async function collect(stream: ReadableStream): Promise<Bytes> {
  const flow = flowOf(new ReadableStreamDefaultReader(stream))
  const chunks: Bytes[] = []
  let length = 0
  for (let next = await flow.read(); !next.done; next = await flow.read()) {
    const memory = ArrayBuffer.isView(next.value) ? viewMemory(next.value) : undefined
    const error =
      memory === undefined
        ? new TypeError('Each chunk of a body must be a Uint8Array')
        : new RangeError(`A stream that is read as a whole may have at most ${MAX_BYTES} bytes`)
    length += memory?.length ?? 0
    if (memory === undefined || length > MAX_BYTES) {
      await flow.cancel(error)
      throw error
    }
    chunks.push(new Uint8Array(memory))
  }
  const whole = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}
