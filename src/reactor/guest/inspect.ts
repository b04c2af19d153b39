/** `inspect` and `format` over copies without functions or objects of the code, which could run inside Node's functions. */
import { Buffer as NodeBuffer } from 'node:buffer'
import { formatWithOptions, inspect as nodeInspect, types } from 'node:util'
import { type Any, define, getterOf, viewMemory } from './shield.js'

/** Longer lines are cut. */
export const MOST_CHARACTERS = 16_384
const MOST_ITEMS = 100
const { isDate, isMap, isPromise, isRegExp, isSet } = types
const { custom } = nodeInspect
const kindOf = getterOf(Object.getPrototypeOf(Uint8Array.prototype) as object, Symbol.toStringTag)
const methodOf = (prototype: object, name: string) =>
  (prototype as Any)[name] as (...args: unknown[]) => unknown
const getTime = methodOf(Date.prototype, 'getTime')
const toPattern = methodOf(RegExp.prototype, 'toString')
const toSource = methodOf(Function.prototype, 'toString')
const eachOfMap = methodOf(Map.prototype, 'forEach')
const eachOfSet = methodOf(Set.prototype, 'forEach')

/** The text of an error. SES hides class and stack from Node's formatting. */
export type DescribeError = (error: Error) => string

export function inspect(value: unknown, depth: number, describeError: DescribeError): string {
  return nodeInspect(createCopier(describeError)(value, depth), optionsOf(depth))
}

/** `util.format` */
export function format(values: readonly unknown[], depth: number, describeError: DescribeError): string {
  const [first, ...rest] = values
  // The common case.
  if (values.length === 1 && typeof first === 'string') return first
  let next = 0
  const pattern =
    typeof first !== 'string' || !first.includes('%')
      ? first
      : first.replaceAll(/%[sdifjoOc%]/g, (place) => {
          const at = place === '%%' ? rest.length : next++
          const value = rest[at]
          if (at >= rest.length || typeof value !== 'object' || (place !== '%j' && place !== '%s'))
            return place
          rest[at] = place === '%j' ? JSON.stringify(value) : inspect(value, 0, describeError)
          return '%s'
        })
  const copy = createCopier(describeError)
  const shown = [pattern, ...rest].slice(0, values.length).map((value) => copy(value, depth, true))
  // The text of an error must not be used as a format.
  if (first instanceof Error) shown.unshift('%s')
  return formatWithOptions(optionsOf(depth), ...shown)
}

function optionsOf(depth: number) {
  return { depth, maxArrayLength: MOST_ITEMS, maxStringLength: MOST_CHARACTERS, breakLength: 110 }
}

function createCopier(describeError: DescribeError) {
  /** The objects that contain the current one, with their copies; a cycle refers to one of them. */
  const open = new Map<object, object>()

  return copy

  /** A copy of `value` to one level more than is shown. If `alone`, an error becomes plain text. */
  function copy(value: unknown, depth: number, alone = false): unknown {
    if (typeof value === 'function') return label(describeFunction(value))
    if (typeof value !== 'object' || value === null) return value
    if (value instanceof Error) return alone ? describeError(value) : label(describeError(value))
    const known = open.get(value)
    if (known !== undefined) return known
    if (isDate(value)) return new Date(Reflect.apply(getTime, value, []) as number)
    if (isRegExp(value)) return label(`${Reflect.apply(toPattern, value, [])}`)
    const memory = viewMemory(value)
    if (memory !== undefined) return copyMemory(value, memory)
    const made = createAlike(value)
    open.set(value, made)
    const inner = (item: unknown) => (depth < 0 ? undefined : copy(item, depth - 1))
    if (isMap(value))
      Reflect.apply(eachOfMap, value, [
        (item: unknown, key: unknown) => (made as Any).set(inner(key), inner(item)),
      ])
    if (isSet(value)) Reflect.apply(eachOfSet, value, [(item: unknown) => (made as Any).add(inner(item))])
    copyProperties(value, made, inner)
    open.delete(value)
    return made
  }

  function copyProperties(value: object, copy: object, inner: (item: unknown) => unknown): void {
    for (const key of Reflect.ownKeys(value)) {
      if (Array.isArray(value) && Number(key) > MOST_ITEMS) continue
      const property = Object.getOwnPropertyDescriptor(value, key)
      if (property?.enumerable !== true) continue
      if (!('get' in property)) define(copy, key, inner(property.value))
      else {
        const shown: PropertyDescriptor = {}
        if (property.get !== undefined) shown.get = nothing
        if (property.set !== undefined) shown.set = nothing
        Object.defineProperty(copy, key, { ...shown, enumerable: true, configurable: true })
      }
    }
  }
}

function nothing(): undefined {
  return undefined
}

/** An object that Node's formatting shows as `text`. */
function label(text: string): object {
  return { [custom]: () => text }
}

function describeFunction(value: object): string {
  const kind = /^class\b/.test(Reflect.apply(toSource, value, []) as string) ? 'class' : 'Function'
  const name = Object.getOwnPropertyDescriptor(value, 'name')?.value
  if (typeof name !== 'string' || name === '') return `[${kind} (anonymous)]`
  return kind === 'class' ? `[class ${name}]` : `[Function: ${name}]`
}

function copyMemory(value: object, memory: NodeBuffer): unknown {
  const bytes = new Uint8Array(memory).buffer
  if (!ArrayBuffer.isView(value)) return bytes
  if (findClassName(value) === 'Buffer') return NodeBuffer.from(bytes)
  const kind = Reflect.apply(kindOf, value, []) ?? 'DataView'
  return Reflect.construct((globalThis as Any)[kind], [bytes]) as unknown
}

/** An empty object whose class has the same name. */
function createAlike(value: object): object {
  if (Array.isArray(value)) return new Array(value.length)
  // After the lockdown Node's formatting does not find the names of these.
  if (isMap(value)) return new { Map: class extends Map {} }.Map()
  if (isSet(value)) return new { Set: class extends Set {} }.Set()
  if (Object.getPrototypeOf(value) === null) return Object.create(null) as object
  const name = findClassName(value)
  if (name === 'Object') return {}
  return new { [name]: class {} }[name]!()
}

function findClassName(value: object): string {
  let prototype = Object.getPrototypeOf(value) as object | null
  for (let level = 0; prototype !== null && level < 100; level++) {
    const made = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value
    const name = typeof made === 'function' ? Object.getOwnPropertyDescriptor(made, 'name')?.value : undefined
    if (typeof name === 'string' && name !== '') return name
    prototype = Object.getPrototypeOf(prototype) as object | null
  }
  return 'Object'
}

/** `util.isDeepStrictEqual` */
export function isDeepEqual(a: Any, b: Any, open: [unknown, unknown][] = []): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b) || Array.isArray(a) !== Array.isArray(b))
    return false
  if (open.some(([x, y]) => x === a && y === b)) return true
  const inside: [unknown, unknown][] = [...open, [a, b]]
  const isSame = (x: unknown, y: unknown) => isDeepEqual(x, y, inside)
  const [x, y] = [viewMemory(a), viewMemory(b)]
  if (x !== undefined && y !== undefined) return x.equals(y)
  if (isPromise(a) || a instanceof WeakMap || a instanceof WeakSet) return false
  if (isDate(a) || isRegExp(a)) return `${a.valueOf()}` === `${b.valueOf()}`
  if (a instanceof Error && (a.message !== b.message || a.name !== b.name)) return false
  if (
    isMap(a) &&
    !(a.size === b.size && [...a].every(([key, item]) => b.has(key) && isSame(item, b.get(key))))
  )
    return false
  if (isSet(a) && !(a.size === b.size && [...a].every((item) => [...b].some((other) => isSame(item, other)))))
    return false
  const [keys, others] = [a, b].map((each) =>
    Reflect.ownKeys(each).filter((key) => Object.prototype.propertyIsEnumerable.call(each, key)),
  ) as [PropertyKey[], PropertyKey[]]
  return keys.length === others.length && keys.every((key) => others.includes(key) && isSame(a[key], b[key]))
}
