/** Wraps Node's functions for reactor code. Copies arguments and results, and delivers no result to a later run. */
import { Buffer as NodeBuffer } from 'node:buffer'
import { promisify } from 'node:util'
import type { GuestTime } from '../../framework/ports/reactors.js'
import { toBuffer } from './bytes.js'
import { type Any, define, guard, plainError, viewMemory, type Work } from './shield.js'

/** `current` changes when a run begins or ends. If `current` changes during a call, the result is dropped. */
export interface Epoch {
  current: object
  /** The time that the code reads. Undefined: the real time. */
  time?: GuestTime | undefined
  setTimeout?: ((callback: () => void, ms: number) => unknown) | undefined
  /**
   * Pending calls of Node's functions use time and memory, so the guest becomes idle only after these calls have
   * settled.
   */
  readonly pending: Set<Promise<unknown>>
}

interface Conversion {
  unwrap?: (value: object) => unknown
  finish?: Work
}

const MAX_DEPTH = 4

/**
 * Copies bytes, objects and arrays for Node. `unwrap` replaces a facade by its Node object.
 * @throws TypeError for functions, symbols and values that are nested too deeply
 */
function toNode(value: unknown, unwrap: Conversion['unwrap'], depth = 0): Any {
  if (typeof value === 'function' || typeof value === 'symbol' || depth > MAX_DEPTH)
    throw new TypeError('The argument is of a type that this function does not take')
  if (typeof value !== 'object' || value === null) return value
  const raw = unwrap?.(value)
  if (raw !== undefined) return raw
  const memory = viewMemory(value)
  if (memory !== undefined) return NodeBuffer.from(memory)
  if (Array.isArray(value)) return Array.from(value, (each) => toNode(each, unwrap, depth + 1))
  const copy: Record<string, unknown> = {}
  for (const name of Object.keys(value)) {
    const inner = (value as Record<string, unknown>)[name]
    // Node does not always treat undefined like an absent option.
    if (inner !== undefined) define(copy, name, toNode(inner, unwrap, depth + 1))
  }
  return copy
}

/**
 * Copies a result into plain objects, so that the code gets no object of Node.
 * @throws TypeError for a function
 */
export function fromNode(value: unknown): Any {
  if (typeof value === 'function') throw new TypeError('The call returned a function')
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Error) return plainError(value)
  if (value instanceof NodeBuffer) return toBuffer(value)
  if (value instanceof Uint8Array) return new Uint8Array(value)
  if (value instanceof ArrayBuffer) return value.slice(0)
  if (Array.isArray(value)) return value.map(fromNode)
  const copy = {}
  for (const [name, inner] of Object.entries(value)) define(copy, name, fromNode(inner))
  return copy
}

export function gate(work: Work, { unwrap, finish = fromNode }: Conversion = {}): Work {
  return (...args) => {
    const given = args.map((each) => toNode(each, unwrap))
    return finish(guard(() => work(...given)))
  }
}

/**
 * Like {@link gate}, for functions that return promises. After the end of the calling run, the promise never settles.
 */
export function gateAsync(epoch: Epoch, work: Work, { unwrap, finish = fromNode }: Conversion = {}): Work {
  return (...args) => {
    const caller = epoch.current
    return new Promise((resolve, reject) => {
      const given = args.map((each) => toNode(each, unwrap))
      const answer: Promise<unknown> = guard(() => work(...given))
      epoch.pending.add(answer)
      const settle = (isCurrent: () => void) => {
        epoch.pending.delete(answer)
        if (epoch.current === caller) isCurrent()
      }
      answer.then(
        (value) => settle(() => resolve(finish(value))),
        (error) => settle(() => reject(plainError(error))),
      )
    })
  }
}

export function gateCallback(epoch: Epoch, work: Work): Work {
  const later = gateAsync(epoch, promisify(work) as Work)
  return (...args) => {
    const callback = args.pop()
    if (typeof callback !== 'function') throw new TypeError('The callback must be a function')
    later(...args).then((value: unknown) => callback(null, value), callback)
  }
}

/**
 * `structuredClone` for reactor code. Objects of unknown classes become plain objects.
 * @throws TypeError for functions and symbols
 */
export function clone(value: unknown, seen = new Map<object, unknown>()): unknown {
  if (typeof value === 'function' || typeof value === 'symbol')
    throw new TypeError(`A ${typeof value} cannot be cloned`)
  if (typeof value !== 'object' || value === null) return value
  if (seen.has(value)) return seen.get(value)
  const copy: Any = copyWhole(value) ?? (Array.isArray(value) ? new Array(value.length) : {})
  seen.set(value, copy)
  if (value instanceof Map) for (const [key, item] of value) copy.set(clone(key, seen), clone(item, seen))
  else if (value instanceof Set) for (const item of value) copy.add(clone(item, seen))
  else if (Array.isArray(value) || Object.getPrototypeOf(copy) === Object.prototype)
    for (const [name, item] of Object.entries(value)) define(copy, name, clone(item, seen))
  return copy
}

/**
 * The copy of a Map or Set is empty: `clone` adds the items. Returns undefined for arrays, plain objects and objects of
 * unknown classes.
 */
function copyWhole(value: object): object | undefined {
  if (value instanceof Map) return new Map()
  if (value instanceof Set) return new Set()
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
