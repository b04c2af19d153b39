/** `Buffer` for reactor code: Node's methods on a Node buffer over the same memory, which reactor code never gets. */
import { Buffer as NodeBuffer } from 'node:buffer'
import { type Any, define, getterOf, guard, viewMemory, type Work } from '../shield.js'

type NewTarget = new (...args: unknown[]) => object

/** Methods of Node's whose arguments are text, numbers and bytes. */
const NODE_METHODS = [
  'compare copy equals fill includes indexOf lastIndexOf toString toLocaleString'.split(' '),
  Object.getOwnPropertyNames(NodeBuffer.prototype).filter((name) => /^(?:read|write|swap)/.test(name)),
].flat()
/** Captured before reactor code could change them. */
const { alloc, byteLength, compare, concat, from, isEncoding } = NodeBuffer
const subarray = Uint8Array.prototype.subarray as Work
const lengthOf = getterOf(Object.getPrototypeOf(Uint8Array.prototype) as object, 'length')

/** A Node buffer over the memory of `value`, cached for ours. @throws TypeError if `value` is not a view of memory. */
let view: (value: unknown) => NodeBuffer

class Bytes extends Uint8Array<ArrayBuffer> {
  #view: NodeBuffer | undefined

  static {
    view = (value) => {
      const own = typeof value === 'object' && value !== null && #view in value ? value : undefined
      const kept = own === undefined ? undefined : own.#view
      // The memory may have been resized or transferred.
      if (kept !== undefined && kept.length === Reflect.apply(lengthOf, own, [])) return kept
      const made = viewMemory(value)
      if (made === undefined) throw new TypeError('The argument must be a Buffer or a Uint8Array')
      if (own !== undefined) own.#view = made
      return made
    }
  }
  /** Shares the memory, unlike `slice` of other typed arrays. */
  override slice(start?: number, end?: number): Any {
    return Reflect.apply(subarray, this, [start, end])
  }
  toJSON(): object {
    return { type: 'Buffer', data: Array.from(view(this)) }
  }
}

for (const name of NODE_METHODS) {
  const work = (NodeBuffer.prototype as Any)[name] as Work
  const method = {
    [name](this: unknown, ...args: unknown[]): unknown {
      const self = view(this)
      const given = args.map(toArgument)
      const result = guard(() => Reflect.apply(work, self, given))
      return result === self ? this : result
    },
  }[name]
  define(Bytes.prototype, name, method, false)
}

/** A primitive, or a Node buffer for a view of memory. @throws TypeError for any other object. */
function toArgument(value: unknown): unknown {
  if (typeof value === 'function' || typeof value === 'symbol')
    throw new TypeError('The argument is no bytes')
  return typeof value === 'object' && value !== null ? view(value) : value
}

/** Our buffer with the bytes of Node's; copies memory that is shared with other buffers. */
export function toBuffer(bytes: Uint8Array, target: NewTarget = Buffer): Buffer {
  const isAlone = bytes.byteLength === bytes.buffer.byteLength
  return Reflect.construct(Bytes, [isAlone ? bytes.buffer : new Uint8Array(bytes).buffer], target) as Buffer
}

/** Old packages call `Buffer` without `new`. */
function createBuffer(value: Any, encoding: Any, length: Any, target?: NewTarget): Buffer {
  if (typeof value === 'number') {
    const zeros = guard(() => alloc(value))
    return toBuffer(zeros, target)
  }
  if (typeof value === 'string') {
    const name = encoding === undefined ? undefined : `${encoding}`
    const bytes = guard(() => from(value, name as BufferEncoding))
    return toBuffer(bytes, target)
  }
  const made = (...args: unknown[]) => Reflect.construct(Bytes, args, target ?? Buffer) as Buffer
  if (value instanceof ArrayBuffer) return made(value, encoding, length)
  if (typeof value !== 'object' || value === null)
    throw new TypeError('The first argument must be a string, bytes, an array or an object like one')
  if (ArrayBuffer.isView(value)) return made(value)
  const primitive = value[Symbol.toPrimitive]?.('string') ?? value.valueOf?.()
  if (typeof primitive === 'string') return createBuffer(primitive, encoding, length, target)
  if (value.type === 'Buffer' && Array.isArray(value.data)) return made(value.data)
  if (!Array.isArray(value) && typeof value.length !== 'number')
    throw new TypeError('The first argument must be a string, bytes, an array or an object like one')
  return made(Array.from(value))
}

function allocate(size: unknown, fill?: unknown, encoding?: unknown): Buffer {
  const [value, name] = [fill, encoding].map(toArgument) as [Any, Any]
  return toBuffer(guard(() => alloc(size as number, value, name)))
}

const STATIC: Record<string, Work> = {
  alloc: allocate,
  allocUnsafe: (size) => allocate(size),
  allocUnsafeSlow: (size) => allocate(size),
  byteLength: (value, encoding) =>
    typeof value === 'string'
      ? byteLength(value, `${encoding ?? 'utf8'}` as BufferEncoding)
      : view(value).length,
  compare: (a, b) => compare(view(a), view(b)),
  concat: (list, length) => {
    if (!Array.isArray(list)) throw new TypeError('The list must be an array of Buffers')
    const views = Array.from(list, view)
    return toBuffer(guard(() => concat(views, toArgument(length) as number)))
  },
  copyBytesFrom: (value, offset = 0, length = undefined) =>
    Buffer.from(value.subarray(offset, length === undefined ? undefined : offset + length).slice().buffer),
  from: (value, encoding, length) => {
    if (typeof value === 'number') throw new TypeError('The first argument must not be a number')
    return createBuffer(value, encoding, length)
  },
  isBuffer: (value) => value instanceof Bytes,
  isEncoding: (name) => typeof name === 'string' && isEncoding(name),
}

export type Buffer = Uint8Array<ArrayBuffer> & { toString(encoding?: string): string }

export const Buffer = function Buffer(value: unknown, encoding: unknown, length: unknown): Buffer {
  return createBuffer(value, encoding, length, new.target as unknown as NewTarget | undefined)
} as unknown as {
  new (value: unknown): Buffer
  from(value: unknown, encoding?: string): Buffer
  prototype: Buffer
}

Object.setPrototypeOf(Buffer, Uint8Array)
Object.defineProperty(Buffer, 'prototype', { value: Bytes.prototype, writable: false })
define(Bytes.prototype, 'constructor', Buffer, false)
for (const [name, work] of Object.entries(STATIC)) define(Buffer, name, work)
