/** `require` for reactor code: facades, error classes, and the owner's bundles. All code is evaluated in the compartment. */
import { readdirSync, readFileSync } from 'node:fs'
import * as querystring from 'node:querystring'
import { types } from 'node:util'
import { atob, Buffer, btoa, TextDecoder, TextEncoder } from './bytes.js'
import { toErrorMap } from './failure.js'
import { gate } from './gate.js'
import { type DescribeError, format, inspect } from './inspect.js'
import { type Any, define, type Work } from './shield.js'
import { prepareSource } from './source.js'
import { Headers, Request, Response, URL, URLSearchParams } from './web.js'

/** The names of the module of reactor errors: our own, and the name that existing formulas use. */
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
 * The source of the module of reactor errors: a function that takes {@link toErrorMap}. In a compartment, its classes
 * extend the `Error` of the compartment.
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
    TextEncoder,
    TextDecoder,
    promisify:
      (work: Work) =>
      (...args: unknown[]) =>
        new Promise((resolve, reject) => {
          work(...args, (error: unknown, value: unknown) => (error ? reject(error) : resolve(value)))
        }),
    inherits: (child: { prototype: object }, parent: { prototype: object }) =>
      void Object.setPrototypeOf(child.prototype, parent.prototype),
    deprecate: (work: unknown) => work,
    types: Object.fromEntries(
      (['isDate', 'isRegExp', 'isPromise', 'isUint8Array'] as const).map((name) => [
        name,
        (value: unknown) => types[name](value),
      ]),
    ),
  }
}

/** One level of scope, and no part that begins with a dot, so that the name cannot leave the directory. */
const BUNDLE = /^((?:@[\w-][\w.-]*\/)?[\w-][\w.-]*)\.c?js$/

/** Reads all bundles at once, because no file can be opened later. Caches prepared bundles, because preparing is slow. */
export function createBundles(directory: string | undefined): (name: string) => string | undefined {
  const texts = new Map<string, string>()
  const prepared = new Map<string, string>()
  // A file that cannot be read counts as missing, and `require` lists the available modules.
  for (const path of directory === undefined ? [] : listBundles(directory)) {
    const text = tryRead(() => readFileSync(`${directory}/${path}`, 'utf8'))
    if (text !== undefined) texts.set(BUNDLE.exec(path)![1]!, text)
  }
  return (name) => {
    const text = texts.get(name)
    const known = prepared.get(name) ?? (text && prepareSource(text.replace(/^#!/, '//')))
    if (known !== undefined) prepared.set(name, known)
    return known
  }
}

/** The paths of bundles in `directory`. If two have the same name, `.js` comes last. */
function listBundles(directory: string): string[] {
  // If a directory cannot be read, `require` lists the available modules.
  const namesIn = (path: string) => tryRead(() => readdirSync(path)) ?? []
  const names = namesIn(directory)
  const scopes = names.filter((name) => name.startsWith('@'))
  const scoped = scopes.flatMap((scope) => namesIn(`${directory}/${scope}`).map((name) => `${scope}/${name}`))
  return [...names, ...scoped].filter((path) => BUNDLE.test(path)).sort((a, b) => (a < b ? -1 : 1))
}

function tryRead<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

export function createRequire(
  builtins: Readonly<Record<string, unknown>>,
  fetch: Work,
  bundles: (name: string) => string | undefined,
  evaluate: (text: string, fileName: string) => unknown,
): (name: unknown) => unknown {
  const loaded = new Map<string, unknown>()
  return (given) => {
    const name = String(given).replace(/^node:/, '')
    if (Object.hasOwn(builtins, name)) return builtins[name]
    if (!loaded.has(name)) loaded.set(name, load(name))
    return loaded.get(name)
  }

  function load(name: string): unknown {
    if (ERROR_MODULES.includes(name)) {
      const createClasses = evaluate(ERROR_CLASSES_SOURCE, 'errors.js') as Work
      return createClasses(toErrorMap)
    }
    const bundle = bundles(name)
    if (bundle !== undefined) return evaluate(bundle, `${name}.js`)
    if (name === 'node-fetch') {
      // The function is both the module and its `default`, as in the package `node-fetch`.
      const module: Any = (...args: unknown[]) => fetch(...args)
      return Object.assign(module, { default: module, Headers, Request, Response })
    }
    const known = [...Object.keys(builtins), 'node-fetch', ERROR_MODULES[0]].join(', ')
    const error = new Error(`Cannot find module '${name}'; there are ${known} and the bundles of --modules`)
    define(error, 'code', 'MODULE_NOT_FOUND')
    throw error
  }
}
