/**
 * Functions of Node's as reactor code is given them: their arguments are copied on the way in, their answers on the way
 * out, and whatever answers later is heard only while the invocation that asked still runs.
 */
import { Buffer as NodeBuffer } from 'node:buffer'
import { toBuffer } from './buffer-facade.js'
import { type Any, define, guard, plainError, toNode, type Work } from './shield.js'

/** The current invocation, by identity; what an earlier one started finds that it is over. */
export interface Epoch {
  current: object
}

/** What of Node's an object of ours stands for; undefined for any other. */
export type Unwrap = (value: object) => unknown

/** A new value of the language's for what Node gave. @throws TypeError for a function. */
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

/** `work` as it is handed out; `finish` makes its answer one of ours. */
export function gate(work: Work, unwrap?: Unwrap, finish: Work = fromNode): Work {
  return (...args) => {
    const given = args.map((each) => toNode(each, unwrap))
    return finish(guard(() => work(...given)))
  }
}

/** As {@link gate}, for promises: they never settle once the invocation that asked is over. */
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

/** As {@link gate}, for functions that answer a callback, which is the last argument. */
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
