/**
 * The realm that reactor code lives in: SES's `lockdown`, a fresh compartment for each invocation, and the facades it
 * is given one by one. Never loaded by the host: `lockdown` changes a whole process.
 */
import 'ses'
import { Buffer } from 'node:buffer'
import { inspect } from 'node:util'
import { clone } from './clone.js'
import { createCryptoFacade, createWebCrypto } from './crypto-facade.js'
import { AbortController, AbortSignal, Event, EventTarget } from './events-facade.js'
import { createBuiltins, createBundles, createRequire } from './modules.js'
import { type Epoch, shield } from './shield.js'
import { shieldClass, shieldMembers } from './shield-class.js'
import { type createFetch, Headers, Request, Response } from './web-facade.js'

/** Stands on the first line before the code, so that lines stay what they are. */
const WRAPPER = '(function (exports, require, module) {'

/** What is not the same for each invocation. */
export interface RunGlobals {
  console: Record<string, unknown>
  timers: Record<string, unknown>
  fetch: ReturnType<typeof createFetch>
}

export interface Realm {
  /** Evaluates prepared CommonJS text in a compartment of its own; gives back `module.exports`. */
  load(text: string, globals: RunGlobals): unknown
  /** Freezes everything that can be reached from `value`. */
  harden<T>(value: T): T
  /** The frames of `error` in reactor code, or undefined. */
  findStack(error: unknown): string | undefined
}

declare const getStackString: (error: Error) => string

/** Locks this process down, for good, and readies what all invocations share. */
export function createRealm(epoch: Epoch, modulesDirectory: string | undefined): Realm {
  removeSharedState()
  lockdown({
    errorTaming: 'safe',
    // Older class patterns (axios and others) assign over inherited names.
    overrideTaming: 'severe',
    localeTaming: 'unsafe',
    consoleTaming: 'unsafe',
    errorTrapping: 'none',
    unhandledRejectionTrapping: 'none',
    reporting: 'none',
  })
  const readStack = getStackString
  const shared = createSharedGlobals(epoch)
  for (const prototype of findHiddenPrototypes()) harden(prototype)
  const builtins = harden(createBuiltins(createCryptoFacade(epoch)))
  const bundles = createBundles(modulesDirectory)

  return {
    harden: (value) => harden(value),
    findStack: (error) => (error instanceof Error ? cleanStack(readStack(error)) : undefined),
    load: (text, { console, timers, fetch }) => {
      const compartment = new Compartment({ ...shared, ...timers, console, fetch })
      const { globalThis: global } = compartment
      global.global = global
      global.self = global
      const evaluate = (code: string, fileName: string): unknown => {
        const wrapped = `${WRAPPER}${code}\n})\n//# sourceURL=${fileName}`
        const module = { exports: {} }
        const work = compartment.evaluate(wrapped) as (...args: unknown[]) => unknown
        Reflect.apply(work, module.exports, [module.exports, require, module])
        return module.exports
      }
      const require = createRequire(builtins, fetch, bundles, evaluate)
      global.require = require
      return evaluate(text, 'reactor.js')
    },
  }
}

/** What lockdown would freeze in a shape that invocations could use to talk to each other, or to reach Node through. */
function removeSharedState(): void {
  // A pool is one buffer that strangers' bytes lie in.
  Buffer.poolSize = 0
  const iterator = Object.getPrototypeOf(new URLSearchParams()[Symbol.iterator]()) as object
  const classes = { Buffer, URL, URLSearchParams, TextEncoder, TextDecoder }
  // These call Node's own `inspect` with objects of the code's, and would hand it out.
  for (const prototype of [...Object.values(classes).map((each) => each.prototype), iterator])
    Reflect.deleteProperty(prototype, inspect.custom)
  Reflect.deleteProperty(Buffer.prototype, 'inspect')
  for (const name of ['createObjectURL', 'revokeObjectURL']) Reflect.deleteProperty(URL, name)
  shieldMembers(iterator)
  for (const [name, each] of Object.entries(classes))
    Object.defineProperty(globalThis, name, { value: shieldClass(each), writable: true, configurable: true })
}

/** Prototypes that no name leads to: objects that calls give have them, and every invocation's have the same. */
function findHiddenPrototypes(): object[] {
  const segments = new Intl.Segmenter('en').segment('a')
  const made = [new URLSearchParams()[Symbol.iterator](), segments, segments[Symbol.iterator]()]
  // What a Buffer's own methods make new ones with.
  const species = (Buffer as unknown as Record<symbol, object>)[Symbol.species]!
  return [species, ...made.map((each) => Object.getPrototypeOf(each) as object)]
}

function createSharedGlobals(epoch: Epoch): Record<string, unknown> {
  return harden({
    // SES's own Date and Math for compartments refuse to tell the time and to draw a number.
    Date,
    Math,
    Intl,
    Buffer: globalThis.Buffer,
    URL,
    URLSearchParams,
    TextEncoder,
    TextDecoder,
    Float32Array,
    Float64Array,
    atob: shield(atob),
    btoa: shield(btoa),
    crypto: createWebCrypto(epoch),
    Headers,
    Request,
    Response,
    AbortController,
    AbortSignal,
    Event,
    EventTarget,
    structuredClone: (value: unknown) => clone(value),
  })
}

/** Only frames of reactor code: the others name places of this machine. Columns of the first line count the wrapper. */
function cleanStack(stack: string): string | undefined {
  const frames = stack
    .split('\n')
    .map((line) => line.trim())
    .filter(
      (line) =>
        /^at .*\b(?:reactor|[\w@./-]+)\.js:\d+:\d+\)?$/.test(line) && !/guest\.mjs|node:|file:/.test(line),
    )
    .map((line) =>
      line.replace(
        /\b(reactor\.js:1:)(\d+)/,
        (_, place, column) => `${place}${Math.max(1, column - WRAPPER.length)}`,
      ),
    )
  return frames.length === 0 ? undefined : frames.slice(0, 20).join('\n')
}
