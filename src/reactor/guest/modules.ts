/** `require` for reactor code: facades, error classes, and the owner's bundles, evaluated in the compartment only. */
import { readdirSync, readFileSync } from 'node:fs'
import * as querystring from 'node:querystring'
import { types } from 'node:util'
import { ERROR_CLASSES_SOURCE, ERROR_MODULES } from './error-classes.js'
import { gate } from './gate.js'
import { Buffer } from './globals/buffer-facade.js'
import { atob, btoa, TextDecoder, TextEncoder } from './globals/text-facade.js'
import { URL, URLSearchParams } from './globals/url-facade.js'
import { Headers, Request, Response } from './globals/web-facade.js'
import { type DescribeError, format, inspect, isDeepEqual } from './inspect.js'
import { prepareSource } from './source.js'

/** One level of scope, and no part that begins with a dot, so that the name cannot leave the directory. */
const BUNDLE_NAME = /^(?:@[\w-][\w.-]*\/)?[\w-][\w.-]*$/

/** Evaluates CommonJS code and returns its `module.exports`. */
type EvaluateModule = (text: string, fileName: string) => unknown

/** The modules that all runs share. They must be hardened before reactor code gets them. */
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

/** Reads all bundles at once, because no file can be opened later. Caches prepared bundles, because preparing is slow. */
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

/** The paths of bundles in `directory`; of two with the same name, the preferred one is first. */
function listBundles(directory: string): string[] {
  const names = namesIn(directory)
  const scopes = names.filter((name) => name.startsWith('@'))
  const scoped = scopes.flatMap((scope) => namesIn(`${directory}/${scope}`).map((name) => `${scope}/${name}`))
  const all = [...names, ...scoped].filter((path) => BUNDLE_NAME.test(nameOf(path)))
  return ['.js', '.cjs'].flatMap((ending) => all.filter((path) => path.endsWith(ending)))
}

/** Empty for a directory that cannot be read; `require` then reports the available modules. */
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
    // `require` reports it.
    return undefined
  }
}

/** `require` for one run, which evaluates a bundle once. @throws Error with code `MODULE_NOT_FOUND`, to the reactor code */
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

/** Like the package: the function is both the module and its `default`. */
function createNodeFetch(fetch: unknown): unknown {
  const module = (...args: unknown[]) => (fetch as (...args: unknown[]) => unknown)(...args)
  return Object.assign(module, { default: module, Headers, Request, Response })
}
