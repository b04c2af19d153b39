/**
 * Removes everything that reactor code does not need from the start realm and from the process object. This removal is
 * a second layer of defense, because code in an SES compartment can reach neither the start realm nor the process
 * object. The lists in this file name the members that are kept. Therefore globals that a later version of Node adds
 * are removed too.
 */
import * as module from 'node:module'

/** The globals of ECMA-262 and ECMA-402, without shared memory, weak references and evaluators. */
const LANGUAGE =
  `AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
  Float16Array Float32Array Float64Array Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number
  Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError
  Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent encodeURI
  encodeURIComponent escape globalThis isFinite isNaN parseFloat parseInt undefined unescape`.split(/\s+/)
/** The lockdown itself uses these evaluators, so they are removed after the lockdown. */
const EVALUATORS = ['Function', 'eval']
/** The members of `Intl` that ECMA-402 defines. V8 adds another class to `Intl`. The guest removes this class. */
const INTL = `Collator DateTimeFormat DisplayNames DurationFormat ListFormat Locale NumberFormat PluralRules
  RelativeTimeFormat Segmenter getCanonicalLocales supportedValuesOf`.split(/\s+/)
/** Members of `process` that Node itself uses at run time. These members have no effect outside of this process. */
const PROCESS =
  `_events _eventsCount _exiting _fatalException _maxListeners _tickCallback arch domain emitWarning exitCode
  features argv0 hasUncaughtExceptionCaptureCallback nextTick permission platform version versions`.split(
    /\s+/,
  )

/** The first step, before the lockdown: leaves the language, the evaluators and an empty console. */
export function stripForLockdown(): void {
  keep(globalThis, [...LANGUAGE, ...EVALUATORS])
  keep(Intl, INTL)
  // An empty console is defined, because the lockdown needs a console.
  Object.assign(globalThis, { console: {} })
}

/** The second step, after the lockdown: removes the evaluators, the console, and the globals that SES has added. */
export function stripAfterLockdown(): void {
  keep(globalThis, LANGUAGE)
}

/** The last step: removes all members of the process object that are not in `PROCESS`, and disables `import()`. */
export function stripProcess(node: object): void {
  keep(node, PROCESS)
  Object.defineProperty(node, 'env', { value: Object.freeze({}) })
  // Older versions of Node lack `registerHooks`. In versions of Node without `registerHooks`, `import()` does not work
  // in a script such as the guest.
  const { registerHooks } = module as { registerHooks?: (hooks: object) => void }
  registerHooks?.({
    resolve: () => {
      throw new TypeError('There is nothing to import')
    },
  })
}

/** Deletes all properties of `target` except `names`. @throws TypeError if a property cannot be deleted */
function keep(target: object, names: readonly string[]): void {
  for (const key of Reflect.ownKeys(target)) {
    // Symbols on the global object come from Node and are deleted. Symbols on other objects stay.
    if (typeof key === 'string' ? names.includes(key) : target !== globalThis) continue
    if (!Reflect.deleteProperty(target, key)) throw new TypeError(`${String(key)} cannot be removed`)
  }
}
