/** A second layer, if code reaches the start realm. Only listed names stay, so additions of later Node versions go. */
import * as module from 'node:module'

/** ECMA-262 and ECMA-402 without shared memory, weak references and evaluators. */
const LANGUAGE =
  `AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
  Float16Array Float32Array Float64Array Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number
  Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError
  Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent encodeURI
  encodeURIComponent escape globalThis isFinite isNaN parseFloat parseInt undefined unescape`.split(/\s+/)
/** Needed by the lockdown. */
const EVALUATORS = ['Function', 'eval']
/** ECMA-402 only; V8 adds a class of its own. */
const INTL = `Collator DateTimeFormat DisplayNames DurationFormat ListFormat Locale NumberFormat PluralRules
  RelativeTimeFormat Segmenter getCanonicalLocales supportedValuesOf`.split(/\s+/)
/** Members that Node's own code uses at run time; none affects anything outside of this process. */
const PROCESS =
  `_events _eventsCount _exiting _fatalException _maxListeners _tickCallback arch domain emitWarning exitCode
  features argv0 hasUncaughtExceptionCaptureCallback nextTick permission platform version versions`.split(
    /\s+/,
  )

/** Call before the lockdown. Removes all globals of the start realm that are not part of the language. */
export function stripGlobal(): void {
  keep(globalThis, [...LANGUAGE, ...EVALUATORS])
  keep(Intl, INTL)
  // The lockdown expects a console; its reports are disabled.
  Object.assign(globalThis, { console: {} })
}

/** Call after the lockdown. Removes the evaluators of the start realm and the globals of SES. */
export function stripEvaluators(): void {
  keep(globalThis, LANGUAGE)
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

/** Removes all other properties. @throws TypeError for one that cannot be removed. */
function keep(target: object, names: readonly string[]): void {
  for (const key of Reflect.ownKeys(target)) {
    // The symbols on the global are Node's; those on the other objects stay.
    if (typeof key === 'string' ? names.includes(key) : target !== globalThis) continue
    if (!Reflect.deleteProperty(target, key)) throw new TypeError(`${String(key)} cannot be removed`)
  }
}
