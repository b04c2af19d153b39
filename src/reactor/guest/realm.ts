/**
 * The realm of reactor code. SES locks down this process, and each run gets a separate compartment. Only the guest may
 * import this file, because the lockdown changes the whole process and cannot be undone.
 */
import { Buffer as NodeBuffer } from 'node:buffer'
import { atob, Buffer, btoa, TextDecoder, TextEncoder } from './bytes.js'
import { createCrypto } from './crypto.js'
import { createDate, setDefaultOfFormats } from './dates.js'
import { AbortController, AbortSignal, Event, EventTarget } from './events.js'
import { DOMException, extendSharedError } from './exceptions.js'
import { Blob, File, FormData } from './forms.js'
import { clone, type Epoch } from './gate.js'
import { createBuiltins, createBundles, createRequire, type Evaluate, type Internals } from './modules.js'
import type { Scope } from './scope.js'
import { define } from './shield.js'
import { HIDDEN_CLASSES, ReadableStream } from './streams.js'
import { stripAfterLockdown, stripForLockdown } from './strip.js'
import { Timeout } from './timers.js'
import { type createFetch, Headers, Request, Response, URL, URLSearchParams } from './web.js'
import { HIDDEN_WRITABLE_CLASSES, TransformStream, WritableStream } from './writable.js'

import 'ses'

/** On the first line of the code, so that line numbers in stacks stay correct. */
const WRAPPER = '(function (exports, require, module, __filename, __dirname) {'
/**
 * Makes `Object` a local variable. Otherwise a package searches `Object` in the scopes of SES thousands of times, which
 * takes about a third of the time of loading.
 */
const PACKAGE_WRAPPER =
  '(function (Object) { return function (exports, require, module, __filename, __dirname) {'
const MAIN_FILE = 'reactor.js'
const MAX_FRAMES = 20
/** SES adds these globals, which are not part of the language. */
const SES_NAMES = ['Compartment', 'harden', 'lockdown', 'assert', 'ModuleSource']

export type RunGlobals = Record<string, unknown> & { fetch: ReturnType<typeof createFetch> }

interface RunParts {
  globals: RunGlobals
  lazyGlobals: Record<'process' | 'performance', object>
  scope: Scope['api']
}

export type Realm = ReturnType<typeof createRealm>

interface Ses {
  lockdown: typeof lockdown
  Compartment: typeof Compartment
  harden<T>(value: T): T
  getStackString(error: Error): string
}

/**
 * Locks down this process, and creates the objects that all runs share. `load` evaluates code in a new compartment.
 * `packages`: texts of packages by name.
 */
export function createRealm(epoch: Epoch, modulesDirectory: string | undefined) {
  const { Compartment, harden, getStackString } = lockDownProcess()
  extendSharedError()
  const findStack = (error: unknown) =>
    error instanceof Error ? cleanStack(getStackString(error)) : undefined
  const describeError = (error: Error) => {
    const stack = findStack(error)?.replaceAll(/^/gm, '    ')
    return stack === undefined ? String(error) : `${error}\n${stack}`
  }
  const crypto = createCrypto(epoch)
  const shared = harden(createSharedGlobals(epoch, crypto.webcrypto))
  hardenHiddenPrototypes(harden)
  const { builtins, internals } = harden(createBuiltins(crypto.facade, describeError))
  const bundles = createBundles(modulesDirectory)

  const load = (text: string, run: RunParts, packages: ReadonlyMap<string, string>): unknown => {
    const { globals, scope } = run
    const compartment = new Compartment({ ...shared, ...globals })
    const { globalThis: global } = compartment
    for (const name of SES_NAMES) Reflect.deleteProperty(global, name)
    global.global = global
    global.self = global
    defineLazily(global, 'process', () => run.lazyGlobals.process)
    defineLazily(global, 'performance', () => run.lazyGlobals.performance)
    const evaluate: Evaluate = (code, fileName, ownRequire = require) => {
      const isPackage = fileName !== MAIN_FILE
      const [before, after] = isPackage ? [PACKAGE_WRAPPER, '}})(Object)'] : [WRAPPER, '})']
      const wrapped = `${before}${code}\n${after}\n//# sourceURL=${fileName}`
      const filename = `/${fileName}`
      const module = { id: filename, filename, exports: {} }
      const work = compartment.evaluate(wrapped) as (...args: unknown[]) => unknown
      Reflect.apply(work, module.exports, [module.exports, ownRequire, module, filename, '/'])
      return module.exports
    }
    // The npm package `node-fetch` needs modules that do not exist here, so `require` provides a replacement.
    const findPackage = (name: string) => (name === 'node-fetch' ? undefined : packages.get(name))
    const { fetch } = globals
    const own: Internals = { ...internals, fetch, scope }
    const findProcess = () => run.lazyGlobals.process
    const require = createRequire({
      builtins,
      fetch,
      findProcess,
      internals: own,
      bundles: (name) => findPackage(name) ?? bundles(name),
      evaluate,
    })
    global.require = require
    return evaluate(text, MAIN_FILE)
  }
  return { load, findStack, describeError }
}

function lockDownProcess(): Omit<Ses, 'lockdown'> {
  // Buffers from a pool would share memory with each other.
  NodeBuffer.poolSize = 0
  // Read before `stripForLockdown` removes `lockdown`.
  const { lockdown } = globalThis as unknown as Ses
  stripForLockdown()
  lockdown({
    errorTaming: 'safe',
    // Older packages, such as axios, assign properties with the names of inherited properties.
    overrideTaming: 'severe',
    localeTaming: 'unsafe',
    consoleTaming: 'unsafe',
    errorTrapping: 'none',
    unhandledRejectionTrapping: 'none',
    reporting: 'none',
  })
  const { Compartment, harden, getStackString } = globalThis as unknown as Ses
  stripAfterLockdown()
  return { Compartment, harden, getStackString }
}

function createSharedGlobals(epoch: Epoch, crypto: object): Record<string, unknown> {
  const GuestDate = createDate(() => epoch.time)
  setDefaultOfFormats(GuestDate.now)
  define(AbortSignal, 'timeout', (ms: unknown): AbortSignal => {
    const controller = new AbortController()
    const reason = new DOMException('The operation was aborted due to timeout', 'TimeoutError')
    epoch.setTimeout?.(() => controller.abort(reason), Number(ms))
    return controller.signal
  })
  return {
    // The `Date` and `Math` of SES compartments have neither the time nor random numbers. The other three are missing.
    ...{ Date: GuestDate, Math, Intl, Float32Array, Float64Array },
    ...{ Buffer, URL, URLSearchParams, TextEncoder, TextDecoder, atob, btoa, crypto },
    ...{ Headers, Request, Response, ReadableStream, AbortController, AbortSignal, Event, EventTarget },
    ...{ WritableStream, TransformStream, Blob, File, FormData, DOMException },
    structuredClone: (value: unknown) => clone(value),
  }
}

/** `make` creates the global at its first use. Code may replace the global before that. */
function defineLazily(global: object, name: string, make: () => unknown): void {
  const accessors = {
    get: () => {
      const value = make()
      define(global, name, value)
      return value
    },
    set: (value: unknown) => define(global, name, value),
  }
  Object.defineProperty(global, name, { ...accessors, enumerable: true, configurable: true })
}

/** Hardens the classes and prototypes that no global contains. Code can reach them through objects that it gets. */
function hardenHiddenPrototypes(harden: Ses['harden']): void {
  const segments = new Intl.Segmenter('en').segment('a')
  for (const each of [segments, segments[Symbol.iterator]()]) harden(Object.getPrototypeOf(each) as object)
  for (const each of [...HIDDEN_CLASSES, ...HIDDEN_WRITABLE_CLASSES, Timeout]) harden(each)
}

/**
 * Removes frames outside of reactor code, because they contain paths of this machine. Subtracts the length of the
 * wrapper from columns of the first line of the main file.
 */
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
    // SES names the frame of a module `Object.eval`. Node's name is `Object.<anonymous>`.
    .map((line) => line.replace(/^at Object\.eval \(/, 'at Object.<anonymous> ('))
  return frames.length === 0 ? undefined : frames.slice(0, MAX_FRAMES).join('\n')
}
