/**
 * The realm that reactor code lives in: SES's `lockdown`, a fresh compartment for each invocation, and the facades it
 * is given one by one. Never loaded by the host: `lockdown` changes a whole process.
 */
import 'ses'
import { Buffer as NodeBuffer } from 'node:buffer'
import { Buffer } from './buffer-facade.js'
import { clone } from './clone.js'
import { createCryptoFacade, createWebCrypto } from './crypto-facade.js'
import { AbortController, AbortSignal, Event, EventTarget } from './events-facade.js'
import type { Epoch } from './gate.js'
import { createBuiltins, createBundles, createRequire } from './modules.js'
import { stripEvaluators, stripGlobal } from './strip.js'
import { atob, btoa, TextDecoder, TextEncoder } from './text-facade.js'
import { URL, URLSearchParams } from './url-facade.js'
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
  /** The frames of `error` in reactor code, or undefined. */
  findStack(error: unknown): string | undefined
  /** What `error` is in a line of the console. */
  describeError(error: Error): string
}

interface Lockdown {
  lockdown: typeof lockdown
  Compartment: typeof Compartment
  harden<T>(value: T): T
  getStackString(error: Error): string
}

/** What the lockdown leaves on a compartment's global that is not the language. */
const SES_NAMES = ['Compartment', 'harden', 'lockdown', 'assert', 'ModuleSource']

/** Locks this process down, for good, and readies what all invocations share. */
export function createRealm(epoch: Epoch, modulesDirectory: string | undefined): Realm {
  // A pool is one buffer that strangers' bytes lie in.
  NodeBuffer.poolSize = 0
  const { lockdown } = globalThis as unknown as Lockdown
  stripGlobal()
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
  const { Compartment, harden, getStackString } = globalThis as unknown as Lockdown
  stripEvaluators()
  const findStack = (error: unknown) =>
    error instanceof Error ? cleanStack(getStackString(error)) : undefined
  const describeError = (error: Error) => {
    const stack = findStack(error)
    return stack === undefined ? String(error) : `${error}\n${stack.replaceAll(/^/gm, '    ')}`
  }
  const shared = harden(createSharedGlobals(epoch))
  for (const prototype of findHiddenPrototypes()) harden(prototype)
  const builtins = harden(createBuiltins(createCryptoFacade(epoch), describeError))
  const bundles = createBundles(modulesDirectory)

  return {
    findStack,
    describeError,
    load: (text, { console, timers, fetch }) => {
      const compartment = new Compartment({ ...shared, ...timers, console, fetch })
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
      const require = createRequire(builtins, fetch, bundles, evaluate)
      global.require = require
      return evaluate(text, 'reactor.js')
    },
  }
}

/** Prototypes that no name leads to: objects that calls give have them, and every invocation's have the same. */
function findHiddenPrototypes(): object[] {
  const segments = new Intl.Segmenter('en').segment('a')
  return [segments, segments[Symbol.iterator]()].map((each) => Object.getPrototypeOf(each) as object)
}

function createSharedGlobals(epoch: Epoch): Record<string, unknown> {
  return {
    // SES's own Date and Math for compartments refuse to tell the time and to draw a number.
    Date,
    Math,
    Intl,
    Buffer,
    URL,
    URLSearchParams,
    TextEncoder,
    TextDecoder,
    Float32Array,
    Float64Array,
    atob,
    btoa,
    crypto: createWebCrypto(epoch),
    Headers,
    Request,
    Response,
    AbortController,
    AbortSignal,
    Event,
    EventTarget,
    structuredClone: (value: unknown) => clone(value),
  }
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
