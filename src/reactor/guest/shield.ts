/**
 * What stands between reactor code and functions of Node: nothing of Node's own, no error, no object and no function,
 * comes through, and nothing that could run the code's own functions goes in. Knows nothing of what the functions do.
 */
import { Buffer as NodeBuffer } from 'node:buffer'

// biome-ignore lint/suspicious/noExplicitAny: what the code passes is checked by the functions it is passed to.
export type Any = any
export type Work = (...args: Any[]) => Any

/** How deep options of a function of Node's may nest. */
const MOST_DEPTH = 4

/** An error of the language's own kinds with the words of `error`: classes of Node's can be changed by whoever gets one. */
export function plainError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('The call failed')
  const { message, name } = error
  const { code } = error as { code?: unknown }
  const plain =
    error instanceof TypeError
      ? new TypeError(message)
      : error instanceof RangeError
        ? new RangeError(message)
        : new Error(message)
  if (plain.name !== name && typeof name === 'string') Object.defineProperty(plain, 'name', { value: name })
  if (typeof code === 'string') Object.defineProperty(plain, 'code', { value: code, enumerable: true })
  return plain
}

/** What `work` gives; it fails with plain errors only. */
export function guard<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw plainError(error)
  }
}

export const getterOf = (prototype: object, name: PropertyKey) =>
  Object.getOwnPropertyDescriptor(prototype, name)!.get as (this: unknown) => Any
/** By the language's own accessors: properties of the same names may be the code's. */
const PLACES = [Object.getPrototypeOf(Uint8Array.prototype) as object, DataView.prototype].map((prototype) =>
  ['buffer', 'byteOffset', 'byteLength'].map((name) => getterOf(prototype, name)),
)
const bufferLength = getterOf(ArrayBuffer.prototype, 'byteLength')

/** A Node buffer of our own on the memory of `value`; undefined for what is no view and no buffer of memory. */
export function viewMemory(value: unknown): NodeBuffer | undefined {
  if (ArrayBuffer.isView(value)) {
    const [buffer, offset, length] = PLACES[value instanceof DataView ? 1 : 0]!.map((get) =>
      Reflect.apply(get, value, []),
    )
    return viewBuffer(buffer, offset, length)
  }
  if (!(value instanceof ArrayBuffer)) return undefined
  return viewBuffer(value, 0, Reflect.apply(bufferLength, value, []))
}

function viewBuffer(buffer: ArrayBuffer, offset: number, length: number): NodeBuffer {
  return Reflect.construct(Uint8Array, [buffer, offset, length], NodeBuffer) as NodeBuffer
}

/**
 * What goes to Node for `value`: a primitive, a copy of bytes, what `unwrap` knows it to stand for, or a new plain
 * object or array of these.
 * @throws TypeError for functions, symbols and what nests too deeply.
 */
export function toNode(value: unknown, unwrap: (value: object) => unknown = () => undefined, depth = 0): Any {
  if (typeof value === 'function' || typeof value === 'symbol' || depth > MOST_DEPTH)
    throw new TypeError('The argument is of a type that this function does not take')
  if (typeof value !== 'object' || value === null) return value
  const raw = unwrap(value)
  if (raw !== undefined) return raw
  const memory = viewMemory(value)
  if (memory !== undefined) return NodeBuffer.from(memory)
  if (Array.isArray(value)) return Array.from(value, (each) => toNode(each, unwrap, depth + 1))
  const copy: Record<string, unknown> = {}
  for (const name of Object.keys(value)) {
    const inner = (value as Record<string, unknown>)[name]
    // Node takes what is not given for what is left out.
    if (inner !== undefined) define(copy, name, toNode(inner, unwrap, depth + 1))
  }
  return copy
}

/** Also `__proto__`, as a property like any other. */
export function define(target: object, name: PropertyKey, value: unknown, enumerable = true): void {
  Object.defineProperty(target, name, { value, writable: true, enumerable, configurable: true })
}
