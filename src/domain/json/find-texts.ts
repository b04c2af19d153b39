/** Finds the texts with expressions in a JSON value. */

/** Adds every text with an expression to `found`, with the path of its first occurrence; `path` is that of `value`. */
export function findTexts(value: unknown, path: string, found: Map<string, string>): Map<string, string> {
  // Spelled for what is found alone: paths of 300,000 values would take longer than the rest.
  const names: (string | number)[] = []
  visit(value)
  return found

  function visit(inner: unknown): void {
    if (typeof inner === 'string' && inner.includes('{{') && !found.has(inner))
      found.set(inner, names.reduce<string>(appendName, path))
    if (typeof inner !== 'object' || inner === null) return
    const isArray = Array.isArray(inner)
    for (const name of isArray ? inner.keys() : Object.keys(inner)) {
      names.push(name)
      visit((inner as Record<string | number, unknown>)[name])
      names.pop()
    }
  }
}

function appendName(path: string, name: string | number): string {
  if (typeof name === 'number') return `${path}[${name}]`
  return path === '' ? name : `${path}.${name}`
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
