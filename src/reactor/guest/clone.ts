/**
 * `structuredClone` for reactor code; Node's could create objects that the realm must not contain. Supports the types of
 * JSON and binary data, Map, Set, Date, RegExp and Error; an object of any other class becomes a plain one.
 */
import { define } from './shield.js'

/** A deep copy that preserves cycles. @throws TypeError for functions and symbols. */
export function clone(value: unknown, seen = new Map<object, unknown>()): unknown {
  if (typeof value === 'function' || typeof value === 'symbol')
    throw new TypeError(`A ${typeof value} cannot be cloned`)
  if (typeof value !== 'object' || value === null) return value
  if (seen.has(value)) return seen.get(value)
  const whole = copyWhole(value)
  if (whole !== undefined) return remember(whole)
  if (value instanceof Map) {
    const copy = remember(new Map())
    for (const [key, item] of value) copy.set(clone(key, seen), clone(item, seen))
    return copy
  }
  if (value instanceof Set) {
    const copy = remember(new Set())
    for (const item of value) copy.add(clone(item, seen))
    return copy
  }
  const copy = remember(Array.isArray(value) ? new Array(value.length) : {})
  for (const [name, item] of Object.entries(value)) define(copy, name, clone(item, seen))
  return copy

  function remember<T>(made: T): T {
    seen.set(value as object, made)
    return made
  }
}

/** A copy of an object that contains no values to clone; undefined for other objects. */
function copyWhole(value: object): object | undefined {
  if (value instanceof Date) return new Date(value)
  if (value instanceof RegExp) return new RegExp(value.source, value.flags)
  if (value instanceof ArrayBuffer) return value.slice(0)
  if (value instanceof DataView)
    return new DataView(value.buffer.slice(0), value.byteOffset, value.byteLength)
  if (ArrayBuffer.isView(value)) return Reflect.apply(Uint8Array.prototype.slice, value, [])
  if (!(value instanceof Error)) return undefined
  const copy = new Error(value.message)
  define(copy, 'name', String(value.name))
  return copy
}
