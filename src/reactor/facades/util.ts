/** The module `util`. The guest provides the functions that format values and test types. */
import { util as base } from 'coffer:internals'
import { isDeepEqual } from './deep-equal.js'

type Work = (...args: unknown[]) => unknown
type Callback = (error: unknown, value?: unknown) => void

const custom = Symbol.for('nodejs.util.promisify.custom')

/** The callback is the first argument of these functions, so `promisify` needs special versions. */
const TIMERS = new Map<unknown, Work>([
  [setTimeout, (ms, value) => new Promise((resolve) => setTimeout(resolve, ms as number, value))],
  [setImmediate, (value) => new Promise((resolve) => setImmediate(resolve, value))],
])

function promisify(work: Work & { [custom]?: Work }): Work {
  if (typeof work !== 'function') throw new TypeError('The argument must be a function')
  const own = work[custom] ?? TIMERS.get(work)
  if (own !== undefined) return own
  function promised(this: unknown, ...args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const callback: Callback = (error, value) => (error ? reject(error) : resolve(value))
      Reflect.apply(work, this, [...args, callback])
    })
  }
  Object.setPrototypeOf(promised, Object.getPrototypeOf(work) as object)
  return Object.defineProperties(promised, Object.getOwnPropertyDescriptors(work)) as Work
}
promisify.custom = custom

function callbackify(work: Work): Work {
  if (typeof work !== 'function') throw new TypeError('The argument must be a function')
  return function (this: unknown, ...args: unknown[]): void {
    const callback = args.pop() as Callback
    const promise = Reflect.apply(work, this, args) as Promise<unknown>
    promise.then(
      (value) => process.nextTick(callback, null, value),
      (error) => process.nextTick(callback, error ?? new Error('The promise was rejected without a reason')),
    )
  }
}

function inherits(child: { prototype: object; super_?: unknown }, parent: { prototype: object }): void {
  Object.defineProperty(child, 'super_', { value: parent, writable: true, configurable: true })
  Object.setPrototypeOf(child.prototype, parent.prototype)
}

function debuglog(): Work {
  return Object.assign(() => undefined, { enabled: false })
}

/** Node has removed these functions, but old packages use them. */
const OLD_TESTS = {
  isArray: Array.isArray,
  isBoolean: (value: unknown) => typeof value === 'boolean',
  isBuffer: (value: unknown) => Buffer.isBuffer(value),
  isDate: (value: unknown) => value instanceof Date,
  isError: (value: unknown) => value instanceof Error,
  isFunction: (value: unknown) => typeof value === 'function',
  isNull: (value: unknown) => value === null,
  isNullOrUndefined: (value: unknown) => value === null || value === undefined,
  isNumber: (value: unknown) => typeof value === 'number',
  isObject: (value: unknown) => typeof value === 'object' && value !== null,
  isPrimitive: (value: unknown) =>
    value === null || (typeof value !== 'object' && typeof value !== 'function'),
  isRegExp: (value: unknown) => value instanceof RegExp,
  isString: (value: unknown) => typeof value === 'string',
  isSymbol: (value: unknown) => typeof value === 'symbol',
  isUndefined: (value: unknown) => value === undefined,
}

export default {
  ...base,
  ...OLD_TESTS,
  TextEncoder,
  TextDecoder,
  promisify,
  callbackify,
  inherits,
  debuglog,
  debug: debuglog,
  deprecate: (work: unknown) => work,
  isDeepStrictEqual: (a: unknown, b: unknown) => isDeepEqual(a, b, true),
  stripVTControlCharacters: (text: unknown) => String(text).replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, ''),
  styleText: (_format: unknown, text: unknown) => String(text),
  toUSVString: (text: unknown) => String(text).replaceAll(/\p{Cs}/gu, '\uFFFD'),
}
