/** The membrane: no error, object or function of Node's reaches reactor code, and nothing that could run that reaches Node. */
import { Buffer as NodeBuffer } from 'node:buffer'

// biome-ignore lint/suspicious/noExplicitAny: what the code passes is checked by the functions it is passed to.
export type Any = any
export type Work = (...args: Any[]) => Any

/** The maximum depth of the arguments of Node's functions. */
const MOST_DEPTH = 4

/** A copy of `error` as an error of the language: reactor code could modify the classes of Node's errors. */
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

/** Calls `work`; throws plain errors only. */
export function guard<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw plainError(error)
  }
}

export const getterOf = (prototype: object, name: PropertyKey) =>
  Object.getOwnPropertyDescriptor(prototype, name)!.get as (this: unknown) => Any
/** The language's own accessors, because the code can define properties of the same names. */
const PLACES = [Object.getPrototypeOf(Uint8Array.prototype) as object, DataView.prototype].map((prototype) =>
  ['buffer', 'byteOffset', 'byteLength'].map((name) => getterOf(prototype, name)),
)
const bufferLength = getterOf(ArrayBuffer.prototype, 'byteLength')

/** A Node buffer over the memory of `value`; undefined if it is neither an ArrayBuffer nor a view of one. */
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
 * The argument for a function of Node's: a primitive, a copy of bytes, the object that `unwrap` returns for it, or a new
 * plain object or array of these.
 * @throws TypeError for functions, symbols and values that are nested too deeply.
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
    // Node treats some undefined options differently from absent ones.
    if (inner !== undefined) define(copy, name, toNode(inner, unwrap, depth + 1))
  }
  return copy
}

/** Defines an ordinary property, also for the name `__proto__`. */
export function define(target: object, name: PropertyKey, value: unknown, enumerable = true): void {
  Object.defineProperty(target, name, { value, writable: true, enumerable, configurable: true })
}
