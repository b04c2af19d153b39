/**
 * Removes from the start realm and the process object everything that reactor code does not need. This is a second
 * layer of defense: code in an SES compartment can reach neither the start realm nor the process object. The lists
 * contain the members that stay, so globals that a later version of Node adds are removed too.
 */
import * as module from 'node:module'

/** The globals of ECMA-262 and ECMA-402, without shared memory, weak references and evaluators. */
const LANGUAGE =
  `AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
  Float16Array Float32Array Float64Array Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number
  Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError
  Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent encodeURI
  encodeURIComponent escape globalThis isFinite isNaN parseFloat parseInt undefined unescape`.split(/\s+/)
/** Removed after the lockdown, which uses these evaluators. */
const EVALUATORS = ['Function', 'eval']
/** The members of `Intl` in ECMA-402. V8 adds another class, which is removed. */
const INTL = `Collator DateTimeFormat DisplayNames DurationFormat ListFormat Locale NumberFormat PluralRules
  RelativeTimeFormat Segmenter getCanonicalLocales supportedValuesOf`.split(/\s+/)
/** Node itself uses these members of `process` at run time. They have no effect outside of this process. */
const PROCESS =
  `_events _eventsCount _exiting _fatalException _maxListeners _tickCallback arch domain emitWarning exitCode
  features argv0 hasUncaughtExceptionCaptureCallback nextTick permission platform version versions`.split(
    /\s+/,
  )

/** The first step, before the lockdown: leaves the language, the evaluators and an empty console. */
export function stripForLockdown(): void {
  keep(globalThis, [...LANGUAGE, ...EVALUATORS])
  keep(Intl, INTL)
  // The lockdown needs a console.
  Object.assign(globalThis, { console: {} })
}

/** The second step, after the lockdown: removes the evaluators, the console, and the globals that SES has added. */
export function stripAfterLockdown(): void {
  keep(globalThis, LANGUAGE)
}

/** The last step: keeps only the members in `PROCESS`, and disables `import()`. */
export function stripProcess(node: object): void {
  keep(node, PROCESS)
  Object.defineProperty(node, 'env', { value: Object.freeze({}) })
  // In versions of Node without `registerHooks`, `import()` does not work in a script such as the guest.
  const { registerHooks } = module as { registerHooks?: (hooks: object) => void }
  registerHooks?.({
    resolve: () => {
      throw new TypeError('There is nothing to import')
    },
  })
}

/** @throws TypeError if a property cannot be deleted */
function keep(target: object, names: readonly string[]): void {
  for (const key of Reflect.ownKeys(target)) {
    // Symbols of the global object come from Node and are deleted. Symbols of other objects stay.
    if (typeof key === 'string' ? names.includes(key) : target !== globalThis) continue
    if (!Reflect.deleteProperty(target, key)) throw new TypeError(`${String(key)} cannot be removed`)
  }
}
