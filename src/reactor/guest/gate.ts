/** Wraps Node's functions for reactor code: copies arguments and results, and delivers nothing to a later run. */
import { Buffer as NodeBuffer } from 'node:buffer'
import { toBuffer } from './buffer-facade.js'
import type { GuestTime } from './date.js'
import { type Any, define, guard, plainError, toNode, type Work } from './shield.js'

/** Identifies the current run, so that a callback of an earlier run can detect that it is over. */
export interface Epoch {
  current: object
  /** What its code takes for the present; absent for the real time. */
  time?: GuestTime | undefined
}

/** The object of Node's that an object of ours represents; undefined for any other. */
export type Unwrap = (value: object) => unknown

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

/** Wraps a synchronous function; `finish` converts its result. */
export function gate(work: Work, unwrap?: Unwrap, finish: Work = fromNode): Work {
  return (...args) => {
    const given = args.map((each) => toNode(each, unwrap))
    return finish(guard(() => work(...given)))
  }
}

/** {@link gate} for functions that return promises, which never settle once the run that made the call is over. */
export function gateAsync(epoch: Epoch, work: Work, unwrap?: Unwrap, finish: Work = fromNode): Work {
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
    const given = args.map((each) => toNode(each))
    guard(() => work(...given, answer))
  }
}
