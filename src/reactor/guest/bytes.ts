/**
 * `Buffer` and text encoding for reactor code. Node's functions work on the memory of reactor code, but the code gets
 * no object of Node.
 */
import { Buffer as NodeBuffer, atob as nodeAtob, btoa as nodeBtoa } from 'node:buffer'
import { TextDecoder as NodeDecoder, TextEncoder as NodeEncoder } from 'node:util'
import { type Any, define, getterOf, guard, Hidden, requireMemory, split, type Work } from './shield.js'

const NODE_METHODS = [
  ...split('compare copy equals fill includes indexOf lastIndexOf toString toLocaleString'),
  ...Object.getOwnPropertyNames(NodeBuffer.prototype).filter((name) => /^(?:read|write|swap)/.test(name)),
]
/** Read when the guest starts, before reactor code can change them. */
const { alloc, byteLength, compare, concat, from, isEncoding } = NodeBuffer
const subarray = Uint8Array.prototype.subarray as Work
const lengthOf = getterOf(Object.getPrototypeOf(Uint8Array.prototype) as object, 'length')
const NOT_BYTES = 'The first argument must be a string, bytes, an array or an array-like object'

/** Like {@link requireMemory}, with a cache for our own buffers. Without the cache, methods take ten times as long. */
let view: (value: unknown) => NodeBuffer

class Buffer extends Uint8Array<ArrayBuffer> {
  #view: NodeBuffer | undefined

  static {
    view = (value) => {
      if (typeof value !== 'object' || value === null || !(#view in value)) return requireMemory(value)
      // The memory may have been resized or transferred since the last call.
      if (value.#view?.length !== Reflect.apply(lengthOf, value, [])) value.#view = requireMemory(value)
      return value.#view!
    }
  }
  constructor(value?: unknown, encoding?: unknown, length?: unknown) {
    super(...(toMemory(value, encoding, length) as [ArrayBuffer]))
  }
  static override from(value: Any, encoding?: Any, length?: unknown): Buffer {
    if (typeof value === 'number') throw new TypeError('The first argument must not be a number')
    return new Buffer(value, encoding, length)
  }
  static alloc(size: Any, fill?: unknown, encoding?: unknown): Buffer {
    const [value, name] = [fill, encoding].map(toArgument) as [Any, Any]
    return toBuffer(guard(() => alloc(size, value, name)))
  }
  static copyBytesFrom(value: Any, offset = 0, length = Infinity): Buffer {
    return new Buffer(value.slice(offset, offset + length).buffer)
  }
  static byteLength(value: unknown, encoding: unknown = 'utf8'): number {
    return typeof value === 'string'
      ? byteLength(value, `${encoding}` as 'utf8')
      : requireMemory(value).length
  }
  static compare(a: unknown, b: unknown): number {
    return compare(requireMemory(a), requireMemory(b))
  }
  static concat(list: unknown, length?: unknown): Buffer {
    if (!Array.isArray(list)) throw new TypeError('The list must be an array of Buffers')
    const views = Array.from(list, requireMemory)
    return toBuffer(guard(() => concat(views, toArgument(length) as number)))
  }
  static isBuffer(value: unknown): boolean {
    return value instanceof Buffer
  }
  static isEncoding(name: unknown): boolean {
    return typeof name === 'string' && isEncoding(name)
  }
  /** The result shares the memory, as in Node. `slice` of other typed arrays copies the memory. */
  override slice(start?: number, end?: number): Any {
    return Reflect.apply(subarray, this, [start, end])
  }
  toJSON(): object {
    return { type: 'Buffer', data: Array.from(requireMemory(this)) }
  }
}

for (const name of NODE_METHODS) {
  const work = (NodeBuffer.prototype as Any)[name] as Work
  const { [name]: method } = {
    [name](this: unknown, ...args: unknown[]): unknown {
      const self = view(this)
      const given = args.map(toArgument)
      const result = guard(() => Reflect.apply(work, self, given))
      return result === self ? this : result
    },
  }
  define(Buffer.prototype, name, method, false)
}

/** Some packages use these methods of Node, because they are faster there than `toString` and `write`. */
for (const encoding of split('ascii base64 base64url hex latin1 ucs2 utf8')) {
  define(
    Buffer.prototype,
    `${encoding}Slice`,
    function (this: Any, start?: unknown, end?: unknown): string {
      return this.toString(encoding, start, end)
    },
    false,
  )
  define(
    Buffer.prototype,
    `${encoding}Write`,
    function (this: Any, text: unknown, offset: unknown = 0, length: unknown = this.length): number {
      return this.write(text, offset, length, encoding)
    },
    false,
  )
}
for (const [name, source] of Object.entries({ parent: 'buffer', offset: 'byteOffset' }))
  Object.defineProperty(Buffer.prototype, name, {
    get(this: Any): unknown {
      return this[source]
    },
    configurable: true,
  })

/** Old packages call `Buffer` without `new`, and copy its functions by enumerating them. */
const Callable = new Proxy(Buffer, { apply: (_target, _self, args) => new Buffer(...args) })
type Callable = Buffer

export { Callable as Buffer }

define(Buffer.prototype, 'constructor', Callable, false)
for (const name of ['allocUnsafe', 'allocUnsafeSlow'])
  define(Buffer, name, (size: unknown) => Buffer.alloc(size))
define(Buffer, 'poolSize', 0)
for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(Buffer)))
  if (typeof value === 'function') define(Buffer, name, value)

/**
 * Returns a primitive unchanged, and a Node buffer for a view of memory.
 * @throws TypeError for a symbol, a function, and an object that is not a view of memory
 */
function toArgument(value: unknown): unknown {
  if (typeof value === 'function' || typeof value === 'symbol')
    throw new TypeError('The argument must be bytes or text')
  return typeof value === 'object' && value !== null ? view(value) : value
}

function toMemory(value: Any, encoding: Any, length: unknown): unknown[] {
  if (typeof value === 'number') return [value]
  if (typeof value === 'string') {
    const name = encoding === undefined ? undefined : (`${encoding}` as BufferEncoding)
    return [copyMemory(guard(() => from(value, name)))]
  }
  if (value instanceof ArrayBuffer) return [value, encoding, length]
  if (typeof value !== 'object' || value === null) throw new TypeError(NOT_BYTES)
  if (ArrayBuffer.isView(value)) return [value]
  const text = value[Symbol.toPrimitive]?.('string') ?? value.valueOf?.()
  if (typeof text === 'string') return toMemory(text, encoding, length)
  const list = value.type === 'Buffer' && Array.isArray(value.data) ? value.data : value
  if (typeof list.length !== 'number') throw new TypeError(NOT_BYTES)
  return [Array.from(list)]
}

function copyMemory(bytes: Uint8Array): ArrayBufferLike {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : new Uint8Array(bytes).buffer
}

export function toBuffer(bytes: Uint8Array): Buffer {
  return new Buffer(copyMemory(bytes))
}

const encoder = new NodeEncoder()
const decoders = new Hidden<NodeDecoder>()

export class TextEncoder {
  get encoding(): string {
    return 'utf-8'
  }
  encode(text: unknown = ''): Uint8Array {
    return new Uint8Array(encoder.encode(`${text}`))
  }
  encodeInto(text: unknown, target: unknown): { read: number; written: number } {
    const given = `${text}`
    if (!(target instanceof Uint8Array)) throw new TypeError('The target must be a Uint8Array')
    const { read, written } = encoder.encodeInto(given, requireMemory(target))
    return { read, written }
  }
}
define(TextEncoder.prototype, Symbol.toStringTag, 'TextEncoder', false)

export class TextDecoder {
  constructor(label: unknown = 'utf-8', options?: { fatal?: unknown; ignoreBOM?: unknown }) {
    const name = `${label}`
    const given = { fatal: Boolean(options?.fatal), ignoreBOM: Boolean(options?.ignoreBOM) }
    decoders.set(
      this,
      guard(() => new NodeDecoder(name, given)),
    )
  }
  decode(bytes?: unknown, options?: { stream?: unknown }): string {
    const raw = decoders.get(this)
    const memory = bytes === undefined ? undefined : requireMemory(bytes)
    const given = { stream: Boolean(options?.stream) }
    return guard(() => raw.decode(memory, given))
  }
}
define(TextDecoder.prototype, Symbol.toStringTag, 'TextDecoder', false)
decoders.addMembers(TextDecoder, { reads: 'encoding fatal ignoreBOM' })

const onText = (work: (text: string) => string) => (text: unknown) => {
  const given = `${text}`
  return guard(() => work(given))
}
export const atob = onText(nodeAtob)
export const btoa = onText(nodeBtoa)
