/**
 * The walk: reactor code that visits every object it can reach. The walk reports objects that belong neither to the
 * language nor to the program of child processes. The walk is sent to a child as text, so its functions must not use
 * anything outside of them.
 */

// biome-ignore lint/suspicious/noExplicitAny: everything there is.
type Any = any

export interface WalkArgs {
  /**
   * Source texts of the program that child processes run, the program itself first. If the text of a function is part
   * of one of these texts, the function belongs to that program. The other texts are evaluated in the compartment of
   * each run.
   */
  sources: string[]
  /** The source texts of the language's own functions, taken from a realm without Node. */
  natives: string[]
  /**
   * `leave`: at the end, the walk leaves marks on all objects. `find`: the walk looks for the marks that an earlier
   * walk left.
   */
  marks: 'leave' | 'find'
  /** The text of the marks, reversed, so that the walk does not find its own argument. */
  mark: string
  maxObjects: number
  maxCalls: number
}

export interface WalkReport {
  objects: number
  calls: number
  /**
   * Number of results that were skipped because they have the same prototype, keys and source text as earlier results.
   */
  alike: number
  marked: number
  /** One entry for each problem, with the path to its object. */
  findings: string[]
  /** Number of objects that were not visited, because the budget was used up. */
  left: number
}

/**
 * Collects all objects that can be reached through the names and the syntax of the language. The function calls none of
 * these objects.
 */
export function collectLanguage(global: Any): Map<object, string> {
  const names =
    `Object Function Array Number Boolean String Symbol Date Promise RegExp Error AggregateError EvalError RangeError
    ReferenceError SyntaxError TypeError URIError JSON Math Intl ArrayBuffer Uint8Array Int8Array Uint16Array Int16Array
    Uint32Array Int32Array Float16Array Float32Array Float64Array Uint8ClampedArray BigUint64Array BigInt64Array DataView
    Map BigInt Set Iterator WeakMap WeakSet Proxy Reflect Temporal decodeURI decodeURIComponent encodeURI encodeURIComponent escape
    unescape eval isFinite isNaN parseFloat parseInt`.split(/\s+/)
  const segments = new Intl.Segmenter('en').segment('a')
  const iterators = [
    [].values(),
    new Map().values(),
    new Set().values(),
    'a'[Symbol.iterator](),
    'a'.matchAll(/a/g),
  ]
  const helpers = [global.Iterator?.from?.({ next() {} }), (iterators[0] as Any).map?.((x: unknown) => x)]
  const syntax = [
    function* () {},
    async function* () {},
    async () => {},
    (function* () {})(),
    (async function* () {})(),
  ]
  const bound = [new Intl.NumberFormat(), new Intl.DateTimeFormat(), new Intl.Collator()]
  const open: [unknown, string][] = [
    ...iterators,
    ...helpers,
    ...syntax,
    ...bound,
    segments,
    segments[Symbol.iterator](),
  ]
    .filter((value) => value !== undefined)
    .map((value) => [Object.getPrototypeOf(value), 'syntax'])
  for (const name of names) if (Object.hasOwn(global, name)) open.push([global[name], name])
  const found = new Map<object, string>()
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, path] = next as [Any, string]
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || found.has(value))
      continue
    found.set(value, path)
    open.push([Object.getPrototypeOf(value), `${path}^`])
    for (const key of Reflect.ownKeys(value)) {
      const { value: inner, get, set } = Object.getOwnPropertyDescriptor(value, key)!
      for (const each of [inner, get, set]) open.push([each, `${path}.${String(key)}`])
    }
  }
  return found
}

/** The walk itself, as the body of a handler. The walk does not call the function `itself`. */
export async function walk(
  req: Any,
  roots: Any[],
  language: Map<object, string>,
  itself: unknown,
): Promise<WalkReport> {
  const { sources, natives, marks, maxObjects, maxCalls } = req.args as WalkArgs
  const mark = [...req.args.mark].reverse().join('')
  const report: WalkReport = { objects: 0, calls: 0, alike: 0, marked: 0, findings: [], left: 0 }
  const leaves = marks === 'leave'
  const word = leaves ? mark : 'word'
  const nativeTexts = new Set(natives)
  const seen = new Map<object, string>()
  const shapes = new Map<string, number>()
  const ids = new WeakMap<object, number>()
  let lastId = 0
  const known = new Map<string, boolean>()
  const open: [object, string, object | undefined][] = []
  let pending = 0
  /**
   * True after the code has escaped from the realm. After an escape, one more call could end the process. Therefore the
   * walk stops and reports.
   */
  let isOut = false
  /**
   * True while the walk looks for marks. During the search, the traps of the walk's proxies can receive the mark as an
   * argument.
   */
  let isSearching = false
  const ownGlobal = globalThis as Any
  const textOf = (work: unknown) => Function.prototype.toString.call(work)
  const isOurText = (text: string): boolean => {
    if (!known.has(text))
      known.set(
        text,
        sources.some((source) => source.includes(text)),
      )
    return known.get(text)!
  }
  const ofRun = new Map<string, boolean>()
  const isOfRun = (text: string): boolean => {
    if (!ofRun.has(text))
      ofRun.set(
        text,
        sources.slice(1).some((source) => source.includes(text)),
      )
    return ofRun.get(text)!
  }
  const isObject = (value: unknown): value is object =>
    (typeof value === 'object' && value !== null) || typeof value === 'function'
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work()
    } catch {
      return undefined
    }
  }
  const complain = (what: string, path: string) => {
    if (report.findings.length < 200) report.findings.push(`${what}: ${path}`)
  }
  const idOf = (value: object | null): number => {
    if (value === null) return 0
    if (!ids.has(value)) ids.set(value, ++lastId)
    return ids.get(value)!
  }
  /** Objects that the walk itself creates. */
  const own = new Set<object>()
  const instances = new Map<object, number>()

  function take(value: unknown, path: string, holder?: object, isRoot = false): void {
    if (typeof value === 'string' && !leaves && !isSearching && value.includes(mark))
      complain('a mark in a text', path)
    if (!isObject(value) || seen.has(value) || own.has(value)) return
    if (value instanceof Promise) follow(value, path)
    report.objects += 1
    judge(value, path)
    if (!leaves) {
      isSearching = true
      findMark(value, path)
      isSearching = false
    }
    if (isAlike(value) && !isRoot) {
      report.alike += 1
      if (leaves) leaveMark(value)
      return
    }
    seen.set(value, path)
    open.push([value, path, holder])
  }

  /** Subscribes to the promise at once, because an unhandled rejection would end the walk. */
  function follow(promise: Promise<unknown>, path: string): void {
    pending += 1
    const settled = (value: unknown) => {
      pending -= 1
      take(value, `await ${path}`)
    }
    attempt(() => Reflect.apply(Promise.prototype.then, promise, [settled, settled]))
  }

  /** Returns whether the walk has already visited enough objects that are similar to `value`. */
  function isAlike(value: object): boolean {
    if (language.has(value) || Object.isFrozen(value)) return false
    const keys = attempt(() => Reflect.ownKeys(value)) ?? []
    const few = keys.length > 40 ? `${keys.length > 400}` : keys.map(String).join()
    const text = typeof value === 'function' ? textOf(value) : ''
    const shape = `${idOf(Object.getPrototypeOf(value))} ${text} ${few}`
    const count = (shapes.get(shape) ?? 0) + 1
    shapes.set(shape, count)
    return count > 2
  }

  function judge(value: Any, path: string): void {
    const isGlobal =
      value !== ownGlobal && ['globalThis', 'JSON', 'process'].some((name) => Object.hasOwn(value, name))
    if (isGlobal) {
      complain('a global object that is not its own', path)
      isOut = true
    }
    if (typeof value === 'function') {
      const text = textOf(value)
      const isNative = /\{ \[native code\] \}$/.test(text)
      // Bound functions, resolver functions of promises, and proxies of the walk have the text `function () {…`. The
      // walk calls these functions like all other functions.
      const isNameless = /^function \(\) \{/.test(text)
      if (isNative && !(language.has(value) && nativeTexts.has(text)) && !isNameless)
        complain(`a native function that is not the language's (${text.slice(0, 60)})`, path)
      // A function that was created from a text has the name `anonymous`.
      if (!isNative && !/^(?:async )?function\*? anonymous\(/.test(text) && !isOurText(text))
        complain('a function that is not ours', path)
      return
    }
    const prototype = Object.getPrototypeOf(value)
    const made = prototype?.constructor
    // Later runs do not get classes that the compartment has evaluated, so these classes and their instances may have
    // any properties.
    const its = Object.getOwnPropertyDescriptor(value, 'constructor')?.value
    if ([made, its].some((each) => typeof each === 'function' && isOfRun(textOf(each)))) return
    const symbols = Object.getOwnPropertySymbols(value).filter(
      (key) => !/^Symbol\((?:Symbol\.|IntlLegacyConstructedSymbol|harden)/.test(String(key)),
    )
    if (symbols.length > 0) complain(`properties that no standard names (${symbols.map(String)})`, path)
    if (prototype === null || language.has(prototype) || language.has(value)) return
    const isOurs = typeof made === 'function' && sources[0]!.includes(textOf(made))
    // The walk marks and then forgets an object that it skips. Therefore the walk may reach the object again, with the
    // mark.
    const names = Object.getOwnPropertyNames(value).filter(
      (name) => !/^\d+$/.test(name) && !(leaves && name === mark),
    )
    if (isOurs && !Object.hasOwn(value, 'constructor') && !(value instanceof Error) && names.length > 0)
      complain(`properties that no standard names (${names})`, path)
  }

  const spied = function (this: unknown, ...args: unknown[]): unknown {
    take(this, 'the receiver of a callback')
    for (const each of args) take(each, 'the argument of a callback')
    return word
  }
  const hostile = {
    toString: spied,
    valueOf: spied,
    toJSON: spied,
    [Symbol.iterator]: function* (): Generator<unknown> {
      yield [word, word]
    },
    get length() {
      spied.call(this)
      return 1
    },
    get name() {
      throw spied
    },
    handleEvent: spied,
  }
  const traps = Object.fromEntries(
    Reflect.ownKeys(Reflect)
      .filter((name) => typeof name === 'string')
      .map((name) => [
        name,
        (...args: unknown[]) => {
          spied(...args)
          return (Reflect as Any)[name](...args)
        },
      ]),
  )
  const spy = new Proxy(function target() {}, traps)
  class Species extends Uint8Array {
    static get [Symbol.species](): Any {
      return spied
    }
    override get buffer(): Any {
      return spy
    }
  }
  // Creates a new array for each call, because a call may detach the memory of its argument.
  const createBytes = () => new Uint8Array([0xd8, 0, 0xff, 65])
  for (const each of [spied, hostile, spy, traps, Species, Species.prototype, ...Object.values(traps)])
    own.add(each as object)
  for (const each of Reflect.ownKeys(hostile)) {
    const { value, get } = Object.getOwnPropertyDescriptor(hostile, each)!
    for (const work of [value, get]) if (isObject(work)) own.add(work)
  }

  const argumentLists = (isOurs = true): unknown[][] => [
    [],
    [word, word],
    [spied, 1, hostile],
    [spy, spy],
    [hostile, hostile],
    ...(isOurs ? moreArguments() : []),
  ]
  const moreArguments = (): unknown[][] => [
    [word],
    ['utf-16le', { fatal: true }],
    ['return this'],
    ['sha256', word, 1, 8, 'sha256', spied],
    [1],
    [word, 1, spied],
    [null],
    [{ [word]: word }],
    [[word, [word, word]]],
    [createBytes()],
    [createBytes().buffer, 0, 2],
    [new Species(4)],
    [spied, word],
    [Symbol.iterator],
  ]
  const receivers = (holder: unknown, isOurs: boolean): unknown[] =>
    isOurs ? [undefined, holder, {}, word, spy, createBytes()] : [holder, spy]

  function settle(work: () => unknown, path: string): void {
    if (isOut) return
    report.calls += 1
    try {
      take(work(), path)
    } catch (error) {
      take(error, `${path} throws`)
    }
  }

  function callAll(work: Any, path: string, holder: object | undefined): void {
    if (work === itself) return
    // Functions of the language are called with few argument lists and receivers, because their behaviour is known. These calls only show what the
    // functions pass to callbacks.
    const isOurs = !language.has(work)
    for (const args of argumentLists(isOurs)) {
      // This call passes no receiver to the function.
      settle(() => work(...args), `${path}()`)
      for (const self of receivers(holder, isOurs)) settle(() => Reflect.apply(work, self, args), `${path}()`)
      settle(() => new work(...args), `new ${path}`)
    }
  }

  function look(value: Any, path: string, holder: object | undefined): void {
    take(Object.getPrototypeOf(value), `${path}^`)
    for (let level = value as object | null; level !== null; level = Object.getPrototypeOf(level))
      for (const key of (attempt(() => Reflect.ownKeys(level!)) ?? []).slice(0, 2_000)) {
        const property = Object.getOwnPropertyDescriptor(level, key)
        if (property === undefined) continue
        const way = `${path}.${String(key)}`
        if (level === value)
          for (const each of [property.value, property.get, property.set]) take(each, way, value)
        // Calls a getter, also an inherited getter, with the object as the receiver.
        if (property.get !== undefined) settle(() => Reflect.apply(property.get!, value, []), way)
      }
    if (typeof value === 'function') callAll(value, path, holder)
    else callMethods(value, path)
  }

  /** Calls the methods of classes that are not part of the language, with the instance as the receiver. */
  function callMethods(value: Any, path: string): void {
    // A few instances of each class are enough, because all instances have the same methods.
    const prototype = Object.getPrototypeOf(value)
    const count = (instances.get(prototype) ?? 0) + 1
    instances.set(prototype, count)
    if (count > 4) return
    for (
      let level = Object.getPrototypeOf(value);
      level !== null && !language.has(level);
      level = Object.getPrototypeOf(level)
    )
      for (const key of Reflect.ownKeys(level)) {
        const work = Object.getOwnPropertyDescriptor(level, key)!.value
        if (typeof work !== 'function' || key === 'constructor') continue
        for (const args of argumentLists())
          settle(() => Reflect.apply(work, value, args), `${path}.${String(key)}()`)
      }
  }

  function findMark(value: Any, path: string): void {
    const isMarked =
      Object.hasOwn(value, mark) ||
      (value instanceof Map && attempt(() => Map.prototype.has.call(value, mark))) ||
      (value instanceof Set && attempt(() => Set.prototype.has.call(value, mark))) ||
      (value instanceof WeakMap &&
        attempt(() => WeakMap.prototype.get.call(value, Object.prototype)) === mark) ||
      (value instanceof Date && attempt(() => Date.prototype.getTime.call(value)) === 424_242) ||
      (value instanceof Uint8Array &&
        ArrayBuffer.isView(value) &&
        value.length > 3 &&
        value.every((byte) => byte === 0x42)) ||
      Reflect.ownKeys(value).some((key) => Object.getOwnPropertyDescriptor(value, key)?.value === mark)
    if (isMarked) complain('a mark', path)
  }

  function leaveMark(value: Any): void {
    let isMarked =
      Object.isExtensible(value) &&
      attempt(() => Reflect.defineProperty(value, mark, { value: mark, configurable: true }))
    const wayOf = (isOne: boolean, work: () => unknown) => {
      if (isOne && attempt(work) !== undefined) isMarked = true
    }
    wayOf(value instanceof Map, () => Map.prototype.set.call(value, mark, mark))
    wayOf(value instanceof Set, () => Set.prototype.add.call(value, mark))
    wayOf(value instanceof WeakMap, () => WeakMap.prototype.set.call(value, Object.prototype, mark))
    wayOf(value instanceof Date, () => Date.prototype.setTime.call(value, 424_242))
    wayOf(value instanceof Uint8Array, () => Uint8Array.prototype.fill.call(value, 0x42))
    if (isMarked === true) report.marked += 1
  }

  /** Sets every writable property of the object to the mark, even if no property can be added to the object. */
  function changeAll(value: Any): void {
    for (const key of attempt(() => Reflect.ownKeys(value)) ?? [])
      if (Object.getOwnPropertyDescriptor(value, key)?.writable) attempt(() => Reflect.set(value, key, mark))
  }

  for (const [value, path] of roots) take(value, path, undefined, true)
  // Waits for at most 40 idle turns, because some promises never settle.
  for (let idle = 0; idle < 40; ) {
    const next = open.pop()
    if (isOut || report.objects > maxObjects || report.calls > maxCalls) break
    if (next !== undefined) look(...next)
    else {
      await new Promise((resolve) => setTimeout(resolve, 5))
      idle = open.length > 0 ? 0 : pending === 0 ? 40 : idle + 1
    }
  }
  report.left = open.length
  const all = [...seen.keys()]
  if (leaves)
    for (const work of [leaveMark, changeAll]) for (const value of all) if (value !== ownGlobal) work(value)
  return report
}
