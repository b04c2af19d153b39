const hasExpression = (text: string) => text.includes('{{')

/** Maps each text that `isWanted` accepts to the path of its first occurrence in `value`. */
export function findTexts(
  value: unknown,
  path: string,
  found = new Map<string, string>(),
  isWanted = hasExpression,
): Map<string, string> {
  // Paths are built only for wanted texts, because building the path of each value would take longer than the search.
  const names: (string | number)[] = []
  const visit = (inner: unknown): void => {
    if (typeof inner === 'string' && isWanted(inner) && !found.has(inner))
      found.set(inner, names.reduce<string>(joinPath, path))
    if (typeof inner !== 'object' || inner === null) return
    for (const name of Array.isArray(inner) ? inner.keys() : Object.keys(inner)) {
      names.push(name)
      visit((inner as Record<string | number, unknown>)[name])
      names.pop()
    }
  }
  visit(value)
  return found
}

export function joinPath(path: string, name: string | number): string {
  if (typeof name === 'number') return `${path}[${name}]`
  return path === '' ? name : `${path}.${name}`
}

export function* listTexts(value: unknown): Generator<string> {
  if (typeof value === 'string' && hasExpression(value)) yield value
  if (typeof value === 'object' && value !== null)
    for (const inner of Object.values(value)) yield* listTexts(inner)
}

export function replaceTexts(value: unknown, replacements: Iterator<unknown>): unknown {
  return mapScalars(value, (scalar) =>
    typeof scalar === 'string' && hasExpression(scalar) ? replacements.next().value : scalar,
  )
}

export function mapScalars(value: unknown, change: (scalar: unknown) => unknown): unknown {
  if (typeof value !== 'object' || value === null) return change(value)
  if (Array.isArray(value)) return value.map((item) => mapScalars(item, change))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mapScalars(inner, change)]))
}
