/** Reads a property as Liquid does: an own one, or `size`, `first` and `last`. */
export function readProperty(object: unknown, key: unknown): unknown {
  if (object === undefined || object === null || (typeof key === 'object' && key !== null)) return undefined
  if (Array.isArray(object) && typeof key === 'number') return object.at(key)
  const name = String(key)
  if (Object.hasOwn(Object(object), name)) return (object as Record<string, unknown>)[name]
  const isList = Array.isArray(object)
  if (name === 'first' && isList) return object[0]
  if (name === 'last' && isList) return object.at(-1)
  if (name !== 'size') return undefined
  if (isList || typeof object === 'string') return object.length
  return typeof object === 'object' ? Object.keys(object).length : undefined
}
