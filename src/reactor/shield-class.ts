/**
 * Classes of Node's that reactor code is given as they are, made to fail with plain errors only: the prototypes of
 * Node's own errors belong to no class that has a name, so that nothing could freeze them all.
 */
import { plainError } from './shield.js'

// biome-ignore lint/suspicious/noExplicitAny: any class, whatever it takes.
type Class = (new (...args: any[]) => object) & { prototype: object }
type Work = (...args: unknown[]) => unknown

/** Shields every member of `Class` in place; the result constructs and is called like it, and is its `constructor`. */
export function shieldClass<C extends Class>(Class: C): C {
  shieldMembers(Class)
  shieldMembers(Class.prototype)
  const shielded = new Proxy(Class, {
    construct: (target, args, newTarget) =>
      rethrow(() => Reflect.construct(target, args, newTarget) as object),
    apply: (target, self, args) => rethrow(() => Reflect.apply(target as unknown as Work, self, args)),
  })
  Object.defineProperty(Class.prototype, 'constructor', {
    value: shielded,
    writable: true,
    configurable: true,
  })
  return shielded
}

/** Shields the own functions and accessors of `target`. */
export function shieldMembers(target: object): void {
  // One function under two names stays one: `entries` and the iterator of URLSearchParams.
  const shielded = new Map<unknown, Work>()
  const wrap = (work: unknown): Work => {
    const known = shielded.get(work) ?? shieldMethod(work as Work)
    shielded.set(work, known)
    return known
  }
  for (const key of Reflect.ownKeys(target)) {
    const member = Object.getOwnPropertyDescriptor(target, key)!
    if (key === 'constructor' || key === 'prototype' || !member.configurable) continue
    if (typeof member.value === 'function') member.value = wrap(member.value)
    if (member.get !== undefined) member.get = wrap(member.get) as () => unknown
    if (member.set !== undefined) member.set = wrap(member.set) as (value: unknown) => void
    Object.defineProperty(target, key, member)
  }
}

function shieldMethod(work: Work): Work {
  const { name, length } = work
  const method = {
    work(this: unknown, ...args: unknown[]): unknown {
      return rethrow(() => Reflect.apply(work, this, args))
    },
  }.work
  Object.defineProperty(method, 'name', { value: name })
  Object.defineProperty(method, 'length', { value: length })
  return method
}

function rethrow<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw plainError(error)
  }
}
