/** Compares values like `assert.deepStrictEqual`, or like `assert.deepEqual` if `isStrict` is false. */

type Pairs = Map<object, object>

export function isDeepEqual(a: unknown, b: unknown, isStrict: boolean, open: Pairs = new Map()): boolean {
  if (isStrict ? Object.is(a, b) : isLooselyEqual(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (isStrict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false
  if (kindOf(a) !== kindOf(b)) return false
  if (open.get(a) === b) return true
  open.set(a, b)
  const isEqual = hasEqualContent(a, b, isStrict, open) && hasEqualProperties(a, b, isStrict, open)
  open.delete(a)
  return isEqual
}

export function isLooselyEqual(a: unknown, b: unknown): boolean {
  // biome-ignore lint/suspicious/noDoubleEquals: this comparison is what `assert.equal` documents.
  return a == b || (Number.isNaN(a) && Number.isNaN(b))
}

const kindOf = (value: object) => (Array.isArray(value) ? 'array' : Object.prototype.toString.call(value))

function hasEqualContent(a: object, b: object, isStrict: boolean, open: Pairs): boolean {
  if (a instanceof Date && b instanceof Date) return Object.is(a.getTime(), b.getTime())
  if (a instanceof RegExp && b instanceof RegExp) return String(a) === String(b)
  if (a instanceof Error && b instanceof Error) return a.name === b.name && a.message === b.message
  if (ArrayBuffer.isView(a) && ArrayBuffer.isView(b)) return Buffer.compare(bytesOf(a), bytesOf(b)) === 0
  if (a instanceof ArrayBuffer && b instanceof ArrayBuffer)
    return Buffer.compare(new Uint8Array(a), new Uint8Array(b)) === 0
  if (a instanceof Set && b instanceof Set)
    return a.size === b.size && [...a].every((each) => b.has(each) || hasEqual(b, each, isStrict, open))
  if (a instanceof Map && b instanceof Map)
    return a.size === b.size && [...a].every((entry) => hasEqualEntry(b, entry, isStrict, open))
  if (isBoxed(a) && isBoxed(b)) return Object.is(a.valueOf(), b.valueOf())
  return true
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
  new Uint8Array(buffer, byteOffset, byteLength)

const isBoxed = (value: object) =>
  value instanceof String || value instanceof Number || value instanceof Boolean

function hasEqual(items: Iterable<unknown>, wanted: unknown, isStrict: boolean, open: Pairs): boolean {
  for (const item of items) if (isDeepEqual(wanted, item, isStrict, open)) return true
  return false
}

function hasEqualEntry(
  map: Map<unknown, unknown>,
  [key, value]: [unknown, unknown],
  isStrict: boolean,
  open: Pairs,
): boolean {
  if (map.has(key)) return isDeepEqual(value, map.get(key), isStrict, open)
  return hasEqual(map, [key, value], isStrict, open)
}

function hasEqualProperties(a: object, b: object, isStrict: boolean, open: Pairs): boolean {
  // The bytes of the view were compared as a whole.
  if (ArrayBuffer.isView(a)) return true
  const keys = keysOf(a, isStrict)
  if (keys.length !== keysOf(b, isStrict).length) return false
  const [one, other] = [a, b] as Record<PropertyKey, unknown>[]
  return keys.every((key) => Object.hasOwn(b, key) && isDeepEqual(one![key], other![key], isStrict, open))
}

function keysOf(value: object, isStrict: boolean): PropertyKey[] {
  const isShown = (key: PropertyKey) => Object.prototype.propertyIsEnumerable.call(value, key)
  return [...Object.keys(value), ...(isStrict ? Object.getOwnPropertySymbols(value).filter(isShown) : [])]
}
