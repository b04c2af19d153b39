/**
 * The cases of `fixtures/operations`: sequences of operations with their expected answers. A case does not depend on
 * an interface. `fixtures/operations/README.md` describes the properties of a case.
 */

/**
 * `body`: the result or the problem. An interface that does not distinguish kinds of success uses the status `done`.
 */
export interface Answer {
  status: number | 'done'
  body?: unknown
  isReplayed?: boolean
}

export interface Step {
  operation: string
  input?: Record<string, unknown>
  as?: string
  reveal?: boolean
  idempotencyKey?: string
  waitMs?: number
  untilFound?: true
  save?: Record<string, string>
  expect: Expectation
}

export interface Expectation {
  status: number
  replayed?: boolean
  result?: unknown
  lacks?: string[]
  differs?: Record<string, unknown>
  errors?: Record<string, string>
  detail?: string
}

export interface Case {
  title: string
  except?: string[]
  steps: Step[]
}

/** Replaces `$name` by the value that was saved under this name, also inside a longer text. */
export function fillIn(value: unknown, saved: ReadonlyMap<string, unknown>): unknown {
  if (typeof value === 'string') {
    const whole = /^\$([a-z][a-z0-9]*)$/.exec(value)
    if (whole !== null && saved.has(whole[1]!)) return saved.get(whole[1]!)
    return value.replaceAll(/\$([a-z][a-z0-9]*)/g, (text, name: string) =>
      saved.has(name) ? String(saved.get(name)) : text,
    )
  }
  if (Array.isArray(value)) return value.map((item) => fillIn(item, saved))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillIn(item, saved)]))
}

export function readPath(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, key) => readOwn(at, key), value)
}

/** The answer of a server is untrusted data, so inherited properties such as `constructor` do not count. */
export function readOwn(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return (value as Record<string, unknown>)[key]
}
