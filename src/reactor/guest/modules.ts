/**
 * What `require` gives reactor code: an allow-list of facades, the error classes, and bundles from the owner's
 * directory. Everything that is source text is evaluated inside the realm, never here.
 */
import { readdirSync, readFileSync } from 'node:fs'
import * as querystring from 'node:querystring'
import { types } from 'node:util'
import { Buffer } from './buffer-facade.js'
import { ERROR_CLASSES_SOURCE, ERROR_MODULES } from './error-classes.js'
import { gate } from './gate.js'
import { type DescribeError, format, inspect, isDeepEqual } from './inspect.js'
import { prepareSource } from './source.js'
import { atob, btoa, TextDecoder, TextEncoder } from './text-facade.js'
import { URL, URLSearchParams } from './url-facade.js'
import { Headers, Request, Response } from './web-facade.js'

/** One level of scope, no dots at the start of a part: the name can lead nowhere but into the directory. */
const BUNDLE_NAME = /^(?:@[\w-][\w.-]*\/)?[\w-][\w.-]*$/

/** CommonJS code, evaluated; gives back its `module.exports`. */
export type EvaluateModule = (text: string, fileName: string) => unknown

/** Builtins that are the same for every invocation. They must be hardened before code sees them. */
export function createBuiltins(
  crypto: Record<string, unknown>,
  describeError: DescribeError,
): Record<string, unknown> {
  return {
    crypto,
    buffer: { Buffer, atob, btoa, kMaxLength: 2 ** 31 - 1 },
    querystring: {
      parse: gate((text, separator, equals) => querystring.parse(text, separator, equals)),
      stringify: gate((value, separator, equals) => querystring.stringify(value, separator, equals)),
      escape: gate(querystring.escape),
      unescape: gate(querystring.unescape),
    },
    url: { URL, URLSearchParams },
    util: createUtil(describeError),
  }
}

function createUtil(describeError: DescribeError): Record<string, unknown> {
  return {
    format: (...values: unknown[]) => format(values, 2, describeError),
    inspect: (value: unknown, options?: { depth?: number | null }) =>
      inspect(value, options?.depth === null ? Infinity : Number(options?.depth ?? 2), describeError),
    isDeepStrictEqual: (a: unknown, b: unknown) => isDeepEqual(a, b),
    TextEncoder,
    TextDecoder,
    promisify:
      (work: (...args: unknown[]) => void) =>
      (...args: unknown[]) =>
        new Promise((resolve, reject) => {
          work(...args, (error: unknown, value: unknown) => (error ? reject(error) : resolve(value)))
        }),
    inherits: (child: { prototype: object }, parent: { prototype: object }) => {
      Object.setPrototypeOf(child.prototype, parent.prototype)
    },
    deprecate: (work: unknown) => work,
    types: {
      isDate: (value: unknown) => types.isDate(value),
      isRegExp: (value: unknown) => types.isRegExp(value),
      isPromise: (value: unknown) => types.isPromise(value),
      isUint8Array: (value: unknown) => types.isUint8Array(value),
    },
  }
}

/**
 * Reads the bundles of the owner's directory now, for no file can be opened later, and keeps what was prepared:
 * preparing one takes longer than most runs.
 */
export function createBundles(directory: string | undefined): (name: string) => string | undefined {
  const texts = new Map<string, string | undefined>()
  const prepared = new Map<string, string>()
  for (const path of directory === undefined ? [] : listBundles(directory))
    if (!texts.has(nameOf(path))) texts.set(nameOf(path), readIfAllowed(`${directory}/${path}`))
  return (name) => {
    if (!texts.has(name)) return undefined
    const text = texts.get(name)
    if (text === undefined) throw new Error('The bundle could not be read')
    const known = prepared.get(name) ?? prepareSource(text.replace(/^#!/, '//')).text
    prepared.set(name, known)
    return known
  }
}

/** Their paths in `directory`, those that go before others of the same name first. */
function listBundles(directory: string): string[] {
  const names = namesIn(directory)
  const scopes = names.filter((name) => name.startsWith('@'))
  const scoped = scopes.flatMap((scope) => namesIn(`${directory}/${scope}`).map((name) => `${scope}/${name}`))
  const all = [...names, ...scoped].filter((path) => BUNDLE_NAME.test(nameOf(path)))
  return ['.js', '.cjs'].flatMap((ending) => all.filter((path) => path.endsWith(ending)))
}

/** A directory that cannot be read has none: code that asks for one is told which modules there are. */
function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

function nameOf(path: string): string {
  return path.replace(/\.c?js$/, '')
}

function readIfAllowed(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Told to the code that asks for it.
    return undefined
  }
}

/**
 * `require` for one invocation. A bundle is evaluated once in it.
 * @throws Error with code `MODULE_NOT_FOUND`, inside the realm.
 */
export function createRequire(
  builtins: Readonly<Record<string, unknown>>,
  fetch: unknown,
  bundles: (name: string) => string | undefined,
  evaluate: EvaluateModule,
): (name: unknown) => unknown {
  const loaded = new Map<string, unknown>()
  return (given) => {
    const name = String(given).replace(/^node:/, '')
    if (Object.hasOwn(builtins, name)) return builtins[name]
    if (!loaded.has(name)) loaded.set(name, load(name))
    return loaded.get(name)
  }

  function load(name: string): unknown {
    if ((ERROR_MODULES as readonly string[]).includes(name))
      return evaluate(ERROR_CLASSES_SOURCE, 'errors.js')
    const bundle = bundles(name)
    if (bundle !== undefined) return evaluate(bundle, `${name}.js`)
    if (name === 'node-fetch') return createNodeFetch(fetch)
    const known = [...Object.keys(builtins), 'node-fetch', ERROR_MODULES[0]].join(', ')
    const error = new Error(`Cannot find module '${name}'; there are ${known} and the bundles of --modules`)
    Object.defineProperty(error, 'code', { value: 'MODULE_NOT_FOUND', enumerable: true })
    throw error
  }
}

/** The package's shape: the function is the module, and its `default`. */
function createNodeFetch(fetch: unknown): unknown {
  const module = (...args: unknown[]) => (fetch as (...args: unknown[]) => unknown)(...args)
  return Object.assign(module, { default: module, Headers, Request, Response })
}
