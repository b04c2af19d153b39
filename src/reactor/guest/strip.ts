/**
 * Takes from a guest's process what no code of it needs once it has started: a second wall, for whoever reaches the
 * start realm's global object, or the process object, all the same. What is to go is what is not named here, so that
 * nothing that a later Node adds stays.
 */
import * as module from 'node:module'

/** ECMA-262 and ECMA-402, without what shares memory, watches the collector or evaluates text. */
const LANGUAGE =
  `AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
  Float16Array Float32Array Float64Array Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number
  Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError
  Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent encodeURI
  encodeURIComponent escape globalThis isFinite isNaN parseFloat parseInt undefined unescape`.split(/\s+/)
/** What the lockdown itself needs. */
const EVALUATORS = ['Function', 'eval']
/** ECMA-402 alone: V8 has a class of its own there. */
const INTL = `Collator DateTimeFormat DisplayNames DurationFormat ListFormat Locale NumberFormat PluralRules
  RelativeTimeFormat Segmenter getCanonicalLocales supportedValuesOf`.split(/\s+/)
/** What Node's own code looks for on the process object while it runs; none of it acts on anything but this process. */
const PROCESS =
  `_events _eventsCount _exiting _fatalException _maxListeners _tickCallback arch domain emitWarning exitCode
  features argv0 hasUncaughtExceptionCaptureCallback nextTick permission platform version versions`.split(
    /\s+/,
  )

/** Before the lockdown: the start realm's global keeps what is of the language. */
export function stripGlobal(): void {
  keep(globalThis, [...LANGUAGE, ...EVALUATORS])
  keep(Intl, INTL)
  // The lockdown looks at one, and has nothing to say: its reports are off.
  Object.assign(globalThis, { console: {} })
}

/** After it: no evaluator that reads text outside of a compartment, and nothing that the lockdown put there. */
export function stripEvaluators(): void {
  keep(globalThis, LANGUAGE)
}

/** The process object loses its powers; what listens to it goes on. `import()` finds nothing any more. */
export function stripProcess(node: object): void {
  keep(node, PROCESS)
  Object.defineProperty(node, 'env', { value: Object.freeze({}) })
  const { registerHooks } = module as { registerHooks?: (hooks: object) => void }
  // Older versions of Node find nothing to import from in a script, which is what the guest is.
  registerHooks?.({
    resolve: () => {
      throw new TypeError('There is nothing to import')
    },
  })
}

/** @throws TypeError for a property that is not named and cannot be removed. */
function keep(target: object, names: readonly string[]): void {
  for (const key of Reflect.ownKeys(target)) {
    // Symbols on the others are their own; those on the global are names of Node's.
    if (typeof key === 'string' ? names.includes(key) : target !== globalThis) continue
    if (!Reflect.deleteProperty(target, key)) throw new TypeError(`${String(key)} cannot be removed`)
  }
}
