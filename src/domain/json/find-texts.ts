/** Finds the texts with expressions in a JSON value. */

/** Adds every text with an expression to `found`, with the path of its first occurrence; `path` is that of `value`. */
export function findTexts(value: unknown, path: string, found: Map<string, string>): Map<string, string> {
  if (typeof value === 'string' && value.includes('{{') && !found.has(value)) found.set(value, path)
  if (typeof value !== 'object' || value === null) return found
  for (const [name, inner] of Object.entries(value))
    findTexts(
      inner,
      Array.isArray(value) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`,
      found,
    )
  return found
}

/** Every text with an expression, in order, as often as it occurs. */
export function* listTexts(value: unknown): Generator<string> {
  if (typeof value === 'string' && value.includes('{{')) yield value
  if (typeof value === 'object' && value !== null)
    for (const name of Object.keys(value)) yield* listTexts((value as Record<string, unknown>)[name])
}

/** A copy of `value` with the next of `replacements` in place of each text with an expression. */
export function replaceTexts(value: unknown, replacements: Iterator<unknown>): unknown {
  if (typeof value === 'string') return value.includes('{{') ? replacements.next().value : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => replaceTexts(item, replacements))
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, replaceTexts(inner, replacements)]),
  )
}
