/** The spelling of property names: `camelCase` for the page, `snake_case` for the server. */

/** The page chooses the property names inside these properties, so these names are not changed. */
const AS_GIVEN = ['data', 'metadata']

export function toServer(payload: unknown): unknown {
  return rename(payload, (name) =>
    name
      .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
      .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
      .toLowerCase(),
  )
}

export function toPage(answer: unknown): ReturnType<typeof JSON.parse> {
  return rename(answer, (name) =>
    name.replaceAll(/(?<=[^_])_+([^_])/g, (_, next: string) => next.toUpperCase()),
  )
}

function rename(value: unknown, change: (name: string) => string, isTop = true): unknown {
  if (Array.isArray(value)) return value.map((each) => rename(each, change, false))
  if (typeof value !== 'object' || value === null) return value
  const pairs = Object.entries(value).map(([name, inner]) =>
    isTop && AS_GIVEN.includes(name) ? [name, inner] : [change(name), rename(inner, change, false)],
  )
  return Object.fromEntries(pairs)
}
