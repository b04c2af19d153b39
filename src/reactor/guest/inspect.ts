/**
 * `inspect`, `format` and `console`. Node formats copies of values, because functions of the original objects could run
 * inside Node.
 */
import { Buffer as NodeBuffer } from 'node:buffer'
import { formatWithOptions, inspect as nodeInspect, types } from 'node:util'
import { type Any, define, kindOf, split, viewMemory } from './shield.js'

const MAX_CHARACTERS = 16_384
const MAX_ITEMS = 100
const CONSOLE_DEPTH = 4
const { isDate, isMap, isRegExp, isSet } = types
const { custom } = nodeInspect
/** These methods are read when the guest starts, before reactor code can change them. */
const { getTime } = Date.prototype
const { toString: toPattern } = RegExp.prototype
const { toString: toSource } = Function.prototype
const { forEach: forEachEntry } = Map.prototype
const { forEach: forEachItem } = Set.prototype

/** After the lockdown, Node's formatting finds neither the class nor the stack of an error. */
export type DescribeError = (error: Error) => string

export function inspect(value: unknown, depth: number, describeError: DescribeError): string {
  return nodeInspect(createCopier(describeError)(value, depth), optionsOf(depth))
}

export function format(values: readonly unknown[], depth: number, describeError: DescribeError): string {
  const [first, ...rest] = values
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
  // Puts `%s` first, because the text of an error must not be used as a format.
  if (first instanceof Error) shown.unshift('%s')
  return formatWithOptions(optionsOf(depth), ...shown)
}

function optionsOf(depth: number) {
  return { depth, maxArrayLength: MAX_ITEMS, maxStringLength: MAX_CHARACTERS, breakLength: 110 }
}

function createCopier(describeError: DescribeError) {
  /**
   * Objects that contain the current object, with their copies. If an object contains itself, the inner occurrence
   * becomes the outer copy.
   */
  const open = new Map<object, object>()

  return copy

  /** Copies one level more than `depth`. If `alone` is true, an error becomes plain text. */
  function copy(value: unknown, depth: number, alone = false): unknown {
    if (typeof value === 'function') return label(describeFunction(value))
    if (typeof value !== 'object' || value === null) return value
    if (value instanceof Error) return alone ? describeError(value) : label(describeError(value))
    const known = open.get(value)
    if (known !== undefined) return known
    if (isDate(value)) return new Date(Reflect.apply(getTime, value, []))
    if (isRegExp(value)) return label(`${Reflect.apply(toPattern, value, [])}`)
    const memory = viewMemory(value)
    if (memory !== undefined) return copyMemory(value, memory)
    const made: Any = createAlike(value)
    open.set(value, made)
    const inner = (item: unknown) => (depth < 0 ? undefined : copy(item, depth - 1))
    const addEntry = (item: unknown, key: unknown) => made.set(inner(key), inner(item))
    const addItem = (item: unknown) => made.add(inner(item))
    if (isMap(value)) Reflect.apply(forEachEntry, value, [addEntry])
    if (isSet(value)) Reflect.apply(forEachItem, value, [addItem])
    copyProperties(value, made, inner)
    open.delete(value)
    return made
  }
}

function copyProperties(value: object, copy: object, inner: (item: unknown) => unknown): void {
  for (const key of Reflect.ownKeys(value)) {
    if (Array.isArray(value) && Number(key) > MAX_ITEMS) continue
    const property = Object.getOwnPropertyDescriptor(value, key)
    if (property?.enumerable !== true) continue
    const { get, set, value: item } = property
    const nothing = () => undefined
    const accessors = { ...(get && { get: nothing }), ...(set && { set: nothing }) }
    if (get ?? set) Object.defineProperty(copy, key, { ...accessors, enumerable: true, configurable: true })
    else define(copy, key, inner(item))
  }
}

const label = (text: string): object => ({ [custom]: () => text })

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

function createAlike(value: object): object {
  if (Array.isArray(value)) return new Array(value.length)
  // After the lockdown, Node's formatting does not find the class names of Map and Set.
  if (isMap(value)) return new { Map: class extends Map {} }.Map()
  if (isSet(value)) return new { Set: class extends Set {} }.Set()
  if (Object.getPrototypeOf(value) === null) return Object.create(null) as object
  const name = findClassName(value)
  return name === 'Object' ? {} : new { [name]: class {} }[name]!()
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

const LEVELS = { debug: 'debug trace', info: 'info', log: 'log dir table', warn: 'warn', error: 'error' }
const SILENT = 'group groupCollapsed groupEnd time timeLog timeEnd count clear'

export function createConsole(
  send: (level: string, text: string) => void,
  describeError: DescribeError,
): Record<string, (...values: unknown[]) => void> {
  const write = (level: string, values: readonly unknown[]) => send(level, formatLine(values, describeError))
  const methods: ReturnType<typeof createConsole> = {
    assert: (isTrue, ...values) => void (isTrue || write('error', ['Assertion failed', ...values])),
  }
  for (const name of split(SILENT)) methods[name] = () => undefined
  for (const [level, names] of Object.entries(LEVELS))
    for (const name of split(names)) methods[name] = (...values) => write(level, values)
  return methods
}

function formatLine(values: readonly unknown[], describeError: DescribeError): string {
  try {
    const text = format(values, CONSOLE_DEPTH, describeError)
    return text.slice(0, MAX_CHARACTERS).replaceAll(/\p{Cs}/gu, '\uFFFD')
  } catch {
    // Formatting fails, for example, for a proxy that throws, or for a value that overflows the stack.
    return '[not printable]'
  }
}
