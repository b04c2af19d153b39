/** Wraps Node's functions for reactor code: copies arguments and results, and delivers nothing to a later run. */
import { Buffer as NodeBuffer } from 'node:buffer'
import { toBuffer } from './globals/buffer-facade.js'
import type { GuestTime } from './globals/date.js'
import { type Any, define, guard, plainError, viewMemory, type Work } from './shield.js'

/** The object of Node's that an object of ours represents; undefined for any other. */
type Unwrap = (value: object) => unknown

/** Identifies the current run, so that a callback of an earlier run can detect that it is over. */
export interface Epoch {
  current: object
  /** The time that its code sees; absent for the real time. */
  time?: GuestTime | undefined
}

/** The maximum depth of the arguments of Node's functions. */
const MOST_DEPTH = 4

/**
 * The argument for a function of Node's: a primitive, a copy of bytes, the object that `unwrap` returns for it, or a new
 * plain object or array of these.
 * @throws TypeError for functions, symbols and values that are nested too deeply.
 */
function toNode(value: unknown, unwrap: Unwrap, depth = 0): Any {
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

/** A copy of Node's result made of the language's own objects. @throws TypeError for a function. */
export function fromNode(value: unknown): Any {
  if (typeof value === 'function') throw new TypeError('The call gave a function')
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

const nothing: Unwrap = () => undefined

/** Wraps a synchronous function; `finish` converts its result. */
export function gate(work: Work, unwrap: Unwrap = nothing, finish: Work = fromNode): Work {
  return (...args) => {
    const given = args.map((each) => toNode(each, unwrap))
    return finish(guard(() => work(...given)))
  }
}

/** {@link gate} for functions that return promises, which never settle once the run that made the call is over. */
export function gateAsync(epoch: Epoch, work: Work, unwrap: Unwrap, finish: Work = fromNode): Work {
  return (...args) => {
    const asked = epoch.current
    return new Promise((resolve, reject) => {
      const given = args.map((each) => toNode(each, unwrap))
      guard(() => work(...given) as Promise<unknown>).then(
        (value) => epoch.current === asked && resolve(finish(value)),
        (error) => epoch.current === asked && reject(plainError(error)),
      )
    })
  }
}

/** {@link gate} for functions whose last argument is a callback. */
export function gateCallback(epoch: Epoch, work: Work): Work {
  return (...args) => {
    const asked = epoch.current
    const callback = args.pop()
    if (typeof callback !== 'function') throw new TypeError('The callback must be a function')
    const answer = (...results: unknown[]) => {
      if (epoch.current === asked) callback(...results.map(fromNode))
    }
    const given = args.map((each) => toNode(each, nothing))
    guard(() => work(...given, answer))
  }
}
