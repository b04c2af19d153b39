/**
 * The membrane between reactor code and Node. Reactor code gets no error, object or function of Node. Node gets no
 * value that can run reactor code.
 */
import { Buffer as NodeBuffer } from 'node:buffer'

// biome-ignore lint/suspicious/noExplicitAny: each function checks the values that it receives from the code.
export type Any = any
export type Work = (...args: Any[]) => Any

/** Reactor code could modify the classes of Node's errors, so `error` is copied into an error of the language. */
export function plainError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('The call failed')
  const { message, name, code } = error as Error & { code?: unknown }
  const Class = [TypeError, RangeError].find((each) => error instanceof each) ?? Error
  const plain = new Class(message)
  if (plain.name !== name && typeof name === 'string') Object.defineProperty(plain, 'name', { value: name })
  if (typeof code === 'string') Object.defineProperty(plain, 'code', { value: code, enumerable: true })
  return plain
}

export function guard<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw plainError(error)
  }
}

export function getterOf(prototype: object, name: PropertyKey): (this: unknown) => Any {
  return Object.getOwnPropertyDescriptor(prototype, name)!.get as (this: unknown) => Any
}

/**
 * Reads the accessors from the original prototypes, because reactor code can define other properties with these names.
 */
const PLACES = [Object.getPrototypeOf(Uint8Array.prototype) as object, DataView.prototype].map((prototype) =>
  ['buffer', 'byteOffset', 'byteLength'].map((name) => getterOf(prototype, name)),
)
/** The class name of a typed array. Undefined for other values. */
export const kindOf = getterOf(Object.getPrototypeOf(Uint8Array.prototype) as object, Symbol.toStringTag)
const bufferLength = getterOf(ArrayBuffer.prototype, 'byteLength')

/** Returns a Node buffer over the same memory, or undefined if `value` is neither an ArrayBuffer nor a view. */
export function viewMemory(value: unknown): NodeBuffer | undefined {
  const isView = ArrayBuffer.isView(value)
  if (!isView && !(value instanceof ArrayBuffer)) return undefined
  const place = isView
    ? PLACES[value instanceof DataView ? 1 : 0]!.map((get) => Reflect.apply(get, value, []))
    : [value, 0, Reflect.apply(bufferLength, value, [])]
  return Reflect.construct(Uint8Array, place, NodeBuffer) as NodeBuffer
}

/** @throws TypeError if `value` is neither an ArrayBuffer nor a view */
export function requireMemory(value: unknown): NodeBuffer {
  const memory = viewMemory(value)
  if (memory === undefined)
    throw new TypeError('The argument must be an ArrayBuffer or a view of an ArrayBuffer')
  return memory
}

/** Defines an ordinary property, even if the name is `__proto__`. */
export function define(target: object, name: PropertyKey, value: unknown, enumerable = true): void {
  Object.defineProperty(target, name, { value, writable: true, enumerable, configurable: true })
}

export const split = (names: string): string[] => names.split(/\s+/).filter((name) => name !== '')

export class Hidden<T extends object> {
  readonly #raw = new WeakMap<object, T>()

  set(facade: object, raw: T): void {
    this.#raw.set(facade, raw)
  }

  /** @throws TypeError if no object is hidden behind `facade` */
  get(facade: object): T {
    const raw = this.#raw.get(facade)
    if (raw === undefined) throw new TypeError('Illegal invocation')
    return raw
  }

  /**
   * Adds members of hidden objects to a class. `reads`: properties that code can read. `sets`: properties that code can
   * also set, as text. `methods`: methods whose arguments are converted to text.
   */
  addMembers(
    { prototype }: { prototype: object },
    { reads = '', sets = '', methods = '' }: { reads?: string; sets?: string; methods?: string },
  ): void {
    const rawOf = (facade: object) => this.get(facade) as Any
    for (const name of split(`${reads} ${sets}`)) {
      const accessors = {
        get [name](): unknown {
          return rawOf(this)[name]
        },
        set [name](value: unknown) {
          const [raw, text] = [rawOf(this), `${value}`]
          guard(() => Reflect.set(raw, name, text))
        },
      }
      const property = Object.getOwnPropertyDescriptor(accessors, name)!
      if (!split(sets).includes(name)) delete property.set
      Object.defineProperty(prototype, name, { ...property, enumerable: false })
    }
    for (const name of split(methods)) {
      const { [name]: method } = {
        [name](this: object, ...args: unknown[]): unknown {
          const raw = rawOf(this)
          const given = args.map((each) => (each === undefined ? each : `${each}`))
          const result = guard(() => raw[name](...given) as unknown)
          return Array.isArray(result) ? [...result] : result
        },
      }
      define(prototype, name, method, false)
    }
  }
}
