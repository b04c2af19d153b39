/**
 * `require` for reactor code: built-in modules, error classes and bundles. All runs share some built-in modules, which
 * are frozen. The other built-in modules are texts (`facades/`), which the compartment of a run evaluates like other
 * code when the code requires them.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import * as querystring from 'node:querystring'
import { types } from 'node:util'
import { atob, Buffer, btoa } from './bytes.js'
import texts from './facade-texts.js'
import { toErrorMap } from './failure.js'
import { Blob, File } from './forms.js'
import { gate } from './gate.js'
import { type DescribeError, format, inspect } from './inspect.js'
import { createPath, createUrlModule } from './locations.js'
import type { Scope } from './scope.js'
import { type Any, define, type Work } from './shield.js'
import { preparePackage } from './source.js'
import { StringDecoder } from './string-decoder.js'
import { Headers, Request, Response } from './web.js'
import { createZlib } from './zlib.js'

/** Our own name, and the name that existing formulas use. */
const ERROR_MODULES = ['coffer/errors', '@basis-theory/basis-theory-reactor-formulas-sdk-js']

const ERROR_CLASSES: Readonly<Record<string, readonly [status: number, message: string]>> = {
  BadRequestError: [400, 'Bad Request'],
  InvalidReactorConfigurationError: [400, 'Invalid Reactor Configuration'],
  AuthenticationError: [401, 'Authentication Failed'],
  InvalidPaymentMethodError: [402, 'Invalid Payment Method'],
  InvalidCardError: [402, 'Invalid Card'],
  AuthorizationError: [403, 'Forbidden'],
  InvalidReactorFormulaError: [422, 'Invalid Reactor Formula'],
  RateLimitError: [429, 'Rate Limit Exceeded'],
  ReactorRuntimeError: [500, 'Reactor Runtime Error'],
  ServiceUnavailableError: [503, 'Service Unavailable'],
}

/**
 * The source of a function that takes {@link toErrorMap} and returns the error classes. Evaluated in a compartment, so
 * that the classes extend the `Error` of the compartment.
 */
export const ERROR_CLASSES_SOURCE = `module.exports = (toErrorMap) => {
  const nameError = (error, name) =>
    Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true })
  class BasisTheoryReactorError extends Error {
    constructor({ message, status, errors }) {
      super(message)
      nameError(this, new.target.name)
      this.status = status
      this.errors = toErrorMap(errors)
    }
    toRFC7807() {
      return { detail: this.message, status: this.status, errors: this.errors }
    }
  }
  class CustomHttpResponseError extends Error {
    constructor({ status, headers, body } = {}) {
      if (!Number.isInteger(status) || status < 100 || status > 599)
        throw new TypeError('status must be an integer from 100 to 599')
      super('The code answers with a response of its own')
      nameError(this, 'CustomHttpResponseError')
      this.status = status
      this.headers = headers ?? {}
      this.body = body ?? {}
    }
    toResponseBody() {
      return { status: this.status, headers: this.headers, body: this.body }
    }
  }
  const classes = { BasisTheoryReactorError, CustomHttpResponseError }
  for (const [name, [status, message]] of Object.entries(${JSON.stringify(ERROR_CLASSES)}))
    classes[name] = { [name]: class extends BasisTheoryReactorError {
      constructor(errors) {
        super({ message, status, errors })
      }
    } }[name]
  return classes
}`

/** Facades get this object as `coffer:internals` (`facades/internals.d.ts`). */
export interface Internals {
  util: Record<string, unknown>
  zlib: ReturnType<typeof createZlib>
  fetch: Work
  scope: Scope['api']
}

const INTERNALS = 'coffer:internals'

/** All runs share `builtins` and `internals`, so harden both before code gets them. */
export function createBuiltins(crypto: Record<string, unknown>, describeError: DescribeError) {
  const path = createPath()
  const util = createUtil(describeError)
  const builtins: Record<string, unknown> = {
    crypto,
    buffer: createBufferModule(),
    path,
    'path/posix': path,
    querystring: createQuerystring(),
    string_decoder: { StringDecoder },
    url: createUrlModule(),
    'util/types': util.types,
  }
  const internals = { util, zlib: createZlib() }
  return { builtins, internals }
}

function createBufferModule(): object {
  const [kMaxLength, kStringMaxLength] = [2 ** 31 - 1, 2 ** 29 - 24]
  return {
    ...{ Buffer, Blob, File, atob, btoa, kMaxLength, kStringMaxLength },
    SlowBuffer: Buffer,
    INSPECT_MAX_BYTES: 50,
    constants: { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: kStringMaxLength },
    isUtf8: gate((bytes) => isUtf8(bytes as Uint8Array)),
    isAscii: gate((bytes) => isAscii(bytes as Uint8Array)),
    transcode: (bytes: Any, from: unknown, to: unknown) =>
      Buffer.from((Buffer.from(bytes) as Any).toString(from), to),
  }
}

function createQuerystring(): object {
  const parse = gate((text, separator, equals) => querystring.parse(text, separator, equals))
  const stringify = gate((value, separator, equals) => querystring.stringify(value, separator, equals))
  return {
    ...{ parse, stringify, decode: parse, encode: stringify },
    escape: gate(querystring.escape),
    unescape: gate(querystring.unescape),
  }
}

function createUtil(describeError: DescribeError): Record<string, unknown> {
  const show = (value: unknown, options?: { depth?: number | null }) =>
    inspect(value, options?.depth === null ? Infinity : Number(options?.depth ?? 2), describeError)
  // Copied to a new object, because a module namespace would be an object of Node.
  const names = Object.keys(types).filter((name) => name.startsWith('is') && !/External|Namespace/.test(name))
  return {
    format: (...values: unknown[]) => format(values, 2, describeError),
    formatWithOptions: (options: { depth?: number | null } | undefined, ...values: unknown[]) =>
      format(values, Number(options?.depth ?? 2), describeError),
    inspect: Object.assign(show, { custom: Symbol.for('nodejs.util.inspect.custom'), defaultOptions: {} }),
    types: Object.fromEntries(
      names.map((name) => [name, (value: unknown) => (types as Any)[name](value) as boolean]),
    ),
  }
}

/** No part of the name begins with a dot, so the name cannot lead out of the directory. */
const BUNDLE = /^((?:@[\w-][\w.-]*\/)?[\w-][\w.-]*(?:\/[\w@~+-][\w.@~+-]*)*?)\.c?js$/
const MAX_DEPTH = 8

/**
 * Reads all bundles now, because no file can be opened later. Caches prepared bundles, because preparing can be slow.
 */
export function createBundles(directory: string | undefined): (name: string) => string | undefined {
  const texts = new Map<string, string>()
  const prepared = new Map<string, string>()
  // A file that cannot be read counts as missing. `require` then lists the available modules.
  for (const path of directory === undefined ? [] : listBundles(directory)) {
    const text = tryRead(() => readFileSync(`${directory}/${path}`, 'utf8'))
    if (text !== undefined) texts.set(BUNDLE.exec(path)![1]!, text)
  }
  return (name) => {
    const text = texts.get(name)
    const known = prepared.get(name) ?? (text && preparePackage(text))
    if (known !== undefined) prepared.set(name, known)
    return known
  }
}

/** If two files differ only in their extension, the file with `.js` comes last, and replaces the other file. */
function listBundles(directory: string): string[] {
  const namesIn = (path: string) => tryRead(() => readdirSync(path)) ?? []
  const below = (path: string, depth: number): string[] =>
    namesIn(`${directory}/${path}`).flatMap((name) => {
      const inner = `${path}${name}`
      // A bundle of a subpath, such as `chart.js/auto.js`, is in a directory with the name of its package.
      const more = depth < MAX_DEPTH && /^[\w@~+-]/.test(name) ? below(`${inner}/`, depth + 1) : []
      return BUNDLE.test(inner) ? [inner, ...more] : more
    })
  return below('', 0).sort((a, b) => (a < b ? -1 : 1))
}

function tryRead<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

export type Require = (name: unknown) => unknown

export type Evaluate = (text: string, fileName: string, ownRequire?: Require) => unknown

interface Modules {
  builtins: Readonly<Record<string, unknown>>
  fetch: Work
  findProcess(): object
  internals: Internals
  bundles(name: string): string | undefined
  evaluate: Evaluate
}

export function createRequire(modules: Modules): Require {
  const { builtins, fetch, findProcess, internals, bundles, evaluate } = modules
  const loaded = new Map<string, unknown>()
  const requireInside: Require = (name) => (name === INTERNALS ? internals : require(name))
  return require

  function require(given: unknown): unknown {
    const name = String(given).replace(/^node:/, '')
    if (Object.hasOwn(builtins, name)) return builtins[name]
    if (!loaded.has(name)) loaded.set(name, load(name, String(given)))
    return loaded.get(name)
  }

  function load(name: string, given: string): unknown {
    if (name === 'process') return findProcess()
    if (Object.hasOwn(texts, name)) return evaluate(texts[name]!, `node:${name}`, requireInside)
    if (ERROR_MODULES.includes(name)) {
      const createClasses = evaluate(ERROR_CLASSES_SOURCE, 'errors.js') as Work
      return createClasses(toErrorMap)
    }
    const bundle = bundles(name)
    if (bundle !== undefined) return evaluate(bundle, `${name}.js`)
    if (name === 'node-fetch') {
      // The function is the module and also its `default`, as in the npm package.
      const module: Any = (...args: unknown[]) => fetch(...args)
      return Object.assign(module, { default: module, Headers, Request, Response })
    }
    throw notFound(name, given)
  }

  function notFound(name: string, given: string): Error {
    const known = [...Object.keys(builtins), 'process', ...Object.keys(texts), 'node-fetch', ERROR_MODULES[0]]
    const isOfNode = given !== name || builtinModules.includes(name)
    const declare =
      'To use another package, declare it in runtime.dependencies with the image node22 or node24, and start the server with --dependencies'
    const error = new Error(
      isOfNode
        ? `'${name}' is not available to reactor code`
        : `Cannot find module '${name}'. Code can require ${known.join(', ')} and the bundles of --modules. ${declare}`,
    )
    define(error, 'code', 'MODULE_NOT_FOUND')
    return error
  }
}
