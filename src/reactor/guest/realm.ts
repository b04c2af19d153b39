/** SES: `lockdown`, a compartment for each run, its endowments. Not for the host: `lockdown` changes the whole process. */
import { Buffer as NodeBuffer } from 'node:buffer'
import type { GuestTime } from '../../framework/ports/reactors.js'
import { atob, Buffer, btoa, TextDecoder, TextEncoder } from './bytes.js'
import { createCrypto } from './crypto.js'
import { AbortController, AbortSignal, Event, EventTarget } from './events.js'
import { clone, type Epoch } from './gate.js'
import { createBuiltins, createBundles, createRequire } from './modules.js'
import { getterOf, type Work } from './shield.js'
import { type createFetch, Headers, Request, Response, URL, URLSearchParams } from './web.js'

import 'ses'

/** On the same line as the beginning of the code, so that line numbers stay the same. */
const WRAPPER = '(function (exports, require, module) {'

export type RunGlobals = Record<string, unknown> & { fetch: ReturnType<typeof createFetch> }

export type Realm = ReturnType<typeof createRealm>

interface Lockdown {
  lockdown: typeof lockdown
  Compartment: typeof Compartment
  harden<T>(value: T): T
  getStackString(error: Error): string
}

/** Globals that SES adds to a compartment and that are not part of the language. */
const SES_NAMES = ['Compartment', 'harden', 'lockdown', 'assert', 'ModuleSource']

/** Applies the lockdown to this process, irreversibly, and creates the endowments that all runs share. */
export function createRealm(epoch: Epoch, modulesDirectory: string | undefined) {
  // Buffers from Node's pool would share memory with each other.
  NodeBuffer.poolSize = 0
  const { lockdown } = globalThis as unknown as Lockdown
  stripGlobal()
  lockdown({
    errorTaming: 'safe',
    // Older code such as axios assigns properties that shadow inherited ones.
    overrideTaming: 'severe',
    localeTaming: 'unsafe',
    consoleTaming: 'unsafe',
    errorTrapping: 'none',
    unhandledRejectionTrapping: 'none',
    reporting: 'none',
  })
  const { Compartment, harden, getStackString } = globalThis as unknown as Lockdown
  // Removes the evaluators of the start realm and the globals of SES.
  keep(globalThis, LANGUAGE)
  const findStack = (error: unknown) =>
    error instanceof Error ? cleanStack(getStackString(error)) : undefined
  const describeError = (error: Error) => {
    const stack = findStack(error)?.replaceAll(/^/gm, '    ')
    return stack === undefined ? String(error) : `${error}\n${stack}`
  }
  const crypto = createCrypto(epoch)
  const shared = harden(createSharedGlobals(epoch, crypto.webcrypto))
  // Shared prototypes that are reachable only from the results of calls.
  const segments = new Intl.Segmenter('en').segment('a')
  for (const each of [segments, segments[Symbol.iterator]()]) harden(Object.getPrototypeOf(each) as object)
  const builtins = harden(createBuiltins(crypto.facade, describeError))
  const bundles = createBundles(modulesDirectory)
  const load = (text: string, globals: RunGlobals): unknown => {
    const compartment = new Compartment({ ...shared, ...globals })
    const { globalThis: global } = compartment
    for (const name of SES_NAMES) Reflect.deleteProperty(global, name)
    global.global = global
    global.self = global
    const evaluate = (code: string, fileName: string): unknown => {
      const wrapped = `${WRAPPER}${code}\n})\n//# sourceURL=${fileName}`
      const module = { exports: {} }
      const work = compartment.evaluate(wrapped) as (...args: unknown[]) => unknown
      Reflect.apply(work, module.exports, [module.exports, require, module])
      return module.exports
    }
    const require = createRequire(builtins, globals.fetch, bundles, evaluate)
    global.require = require
    return evaluate(text, 'reactor.js')
  }
  return { load, findStack, describeError }
}

function createSharedGlobals(epoch: Epoch, crypto: object): Record<string, unknown> {
  const GuestDate = createDate(() => epoch.time)
  setPresentOfFormats(GuestDate.now)
  return {
    // The Date and Math of SES compartments have neither the time nor random numbers.
    ...{ Date: GuestDate, Math, Intl, Float32Array, Float64Array },
    ...{ Buffer, URL, URLSearchParams, TextEncoder, TextDecoder, atob, btoa, crypto },
    ...{ Headers, Request, Response, AbortController, AbortSignal, Event, EventTarget },
    structuredClone: (value: unknown) => clone(value),
  }
}

/** Removes frames outside of reactor code, which contain paths of this machine, and the wrapper's columns. */
function cleanStack(stack: string): string | undefined {
  const isOurs = (line: string) =>
    /^at .*\b(?:reactor|[\w@./-]+)\.js:\d+:\d+\)?$/.test(line) && !/guest\.mjs|node:|file:/.test(line)
  const unwrap = (_: string, place: string, column: number) =>
    `${place}${Math.max(1, column - WRAPPER.length)}`
  const frames = stack
    .split('\n')
    .map((line) => line.trim())
    .filter(isOurs)
    .map((line) => line.replace(/\b(reactor\.js:1:)(\d+)/, unwrap))
  return frames.length === 0 ? undefined : frames.slice(0, 20).join('\n')
}

/** A second layer, if code reaches the start realm. Only listed names stay, so additions of later Node versions go. */
import * as module from 'node:module'

/** ECMA-262 and ECMA-402 without shared memory, weak references and evaluators. */
const LANGUAGE =
  `AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
  Float16Array Float32Array Float64Array Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number
  Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError
  Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent encodeURI
  encodeURIComponent escape globalThis isFinite isNaN parseFloat parseInt undefined unescape`.split(/\s+/)
/** ECMA-402 only; V8 adds a class of its own. */
const INTL = `Collator DateTimeFormat DisplayNames DurationFormat ListFormat Locale NumberFormat PluralRules
  RelativeTimeFormat Segmenter getCanonicalLocales supportedValuesOf`.split(/\s+/)
/** Members that Node's own code uses at run time; none affects anything outside of this process. */
const PROCESS =
  `_events _eventsCount _exiting _fatalException _maxListeners _tickCallback arch domain emitWarning exitCode
  features argv0 hasUncaughtExceptionCaptureCallback nextTick permission platform version versions`.split(
    /\s+/,
  )

/** Call before the lockdown, which needs the evaluators and a console. Leaves only the language in the start realm. */
function stripGlobal(): void {
  keep(globalThis, [...LANGUAGE, 'Function', 'eval'])
  keep(Intl, INTL)
  Object.assign(globalThis, { console: {} })
}

/** Removes the functions of the process object, except for its events, and disables `import()`. */
export function stripProcess(node: object): void {
  keep(node, PROCESS)
  Object.defineProperty(node, 'env', { value: Object.freeze({}) })
  const { registerHooks } = module as { registerHooks?: (hooks: object) => void }
  // In older versions of Node `import()` does not work in a script such as the guest.
  registerHooks?.({
    resolve: () => {
      throw new TypeError('There is nothing to import')
    },
  })
}

function keep(target: object, names: readonly string[]): void {
  for (const key of Reflect.ownKeys(target)) {
    // The symbols on the global are Node's; those on the other objects stay.
    if (typeof key === 'string' ? names.includes(key) : target !== globalThis) continue
    if (!Reflect.deleteProperty(target, key)) throw new TypeError(`${String(key)} cannot be removed`)
  }
}

/** `time` returns the setting of the current run; undefined for the real time. */
export function createDate(time: () => GuestTime | undefined): DateConstructor {
  const Real = Date
  const realNow = Real.now
  const now = (): number => {
    const { offsetMs = 0, frozenMs } = time() ?? {}
    return Math.floor(frozenMs ?? realNow() + offsetMs)
  }
  // A function, because `Date()` without `new` is a text.
  function SetDate(this: unknown, ...args: unknown[]): unknown {
    if (new.target === undefined) return new Real(now()).toString()
    return Reflect.construct(Real, args.length === 0 ? [now()] : args, new.target)
  }
  const { UTC, parse, prototype } = Real
  const properties = { name: 'Date', length: 7, prototype, now, UTC, parse }
  for (const [name, value] of Object.entries(properties)) Object.defineProperty(SetDate, name, { value })
  return SetDate as unknown as DateConstructor
}

/** Makes `Intl.DateTimeFormat` use `now` if it gets no date. Contract: called before its prototype is hardened. */
function setPresentOfFormats(now: () => number): void {
  const { prototype } = Intl.DateTimeFormat
  const getFormat = getterOf(prototype, 'format')
  const { formatToParts } = prototype
  const bound = new WeakMap<object, Work>()
  const methods = {
    get format(): Work {
      const format = Reflect.apply(getFormat, this, []) as Work
      const known = bound.get(format) ?? ((date = now()) => format(date))
      bound.set(format, known)
      return known
    },
    formatToParts(this: unknown, date: unknown = now()): unknown {
      return Reflect.apply(formatToParts, this, [date])
    },
  }
  for (const [name, method] of Object.entries(Object.getOwnPropertyDescriptors(methods)))
    Object.defineProperty(prototype, name, { ...method, enumerable: false })
}
