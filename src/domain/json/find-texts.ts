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
