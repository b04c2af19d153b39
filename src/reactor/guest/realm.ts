/** SES: `lockdown`, a compartment for each run, its endowments. Not for the host: `lockdown` changes the whole process. */
import 'ses'
import { Buffer as NodeBuffer } from 'node:buffer'
import { clone } from './clone.js'
import type { Epoch } from './gate.js'
import { Buffer } from './globals/buffer-facade.js'
import { createCryptoFacade, createWebCrypto } from './globals/crypto-facade.js'
import { createDate, setPresentOfFormats } from './globals/date.js'
import { AbortController, AbortSignal, Event, EventTarget } from './globals/events-facade.js'
import { atob, btoa, TextDecoder, TextEncoder } from './globals/text-facade.js'
import { URL, URLSearchParams } from './globals/url-facade.js'
import { type createFetch, Headers, Request, Response } from './globals/web-facade.js'
import { createBuiltins, createBundles, createRequire } from './modules.js'
import { stripEvaluators, stripGlobal } from './strip.js'

/** On the same line as the beginning of the code, so that line numbers stay the same. */
const WRAPPER = '(function (exports, require, module) {'

export interface RunGlobals {
  console: Record<string, unknown>
  timers: Record<string, unknown>
  fetch: ReturnType<typeof createFetch>
}

export interface Realm {
  /** Evaluates prepared CommonJS code in a new compartment and returns its `module.exports`. */
  load(text: string, globals: RunGlobals): unknown
  /** The stack frames of `error` that are in reactor code, or undefined. */
  findStack(error: unknown): string | undefined
  /** The text of `error` for the console. */
  describeError(error: Error): string
}

interface Lockdown {
  lockdown: typeof lockdown
  Compartment: typeof Compartment
  harden<T>(value: T): T
  getStackString(error: Error): string
}

/** Globals that SES adds to a compartment and that are not part of the language. */
const SES_NAMES = ['Compartment', 'harden', 'lockdown', 'assert', 'ModuleSource']

/** Applies the lockdown to this process, irreversibly, and creates the endowments that all runs share. */
export function createRealm(epoch: Epoch, modulesDirectory: string | undefined): Realm {
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

/** Shared prototypes that are reachable only from the results of calls. */
function findHiddenPrototypes(): object[] {
  const segments = new Intl.Segmenter('en').segment('a')
  return [segments, segments[Symbol.iterator]()].map((each) => Object.getPrototypeOf(each) as object)
}

function createSharedGlobals(epoch: Epoch): Record<string, unknown> {
  const GuestDate = createDate(() => epoch.time)
  setPresentOfFormats(GuestDate.now)
  return {
    // The Date and Math of SES compartments have neither the time nor random numbers.
    Date: GuestDate,
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

/** Removes frames outside of reactor code, which contain paths of this machine, and the wrapper's columns. */
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
