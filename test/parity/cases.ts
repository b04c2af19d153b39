/**
 * Fixture cases: sequences of operations with their expected answers. A case does not depend on an interface. Every
 * interface replays all cases.
 */
import { readdirSync, readFileSync } from 'node:fs'

/**
 * The answer of an operation, the same for every interface. `body` is the result or the problem. Interfaces that do not
 * distinguish kinds of success use the status `done`.
 */
export interface Answer {
  status: number | 'done'
  body?: unknown
  /** True if the answer was stored for an idempotency key and is now replayed. */
  isReplayed?: boolean
}

/** `fixtures/operations/README.md` describes the properties. */
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

const folder = new URL('../../../fixtures/operations/', import.meta.url)

/** Returns all cases. Each title begins with the name of the case's file. */
export function readCases(): Case[] {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.json') && !name.endsWith('.schema.json'))
    .sort()
  return files.flatMap((file) => {
    const cases = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Case[]
    return cases.map((each) => ({ ...each, title: `${file.replace('.json', '')}: ${each.title}` }))
  })
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

const WILDCARDS: Record<string, RegExp> = {
  '*uuid': /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  '*date': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/,
  '*fingerprint': /^[1-9A-HJ-NP-Za-km-z]{43,44}$/,
  '*key': /^key_[1-9A-HJ-NP-Za-km-z]{22}$/,
}

/**
 * Returns where `actual` differs from `expected`, or undefined. An object may have more properties than expected. An
 * array must have the expected length.
 */
function findMismatch(expected: unknown, actual: unknown, path = 'result'): string | undefined {
  const isNot = (what: string) => `${path} is ${JSON.stringify(actual)}, not ${what}`
  if (expected === '*') return actual === undefined ? `${path} is missing` : undefined
  if (typeof expected === 'string' && (expected in WILDCARDS || expected.startsWith('~'))) {
    const pattern = WILDCARDS[expected] ?? new RegExp(expected.slice(1))
    return typeof actual === 'string' && pattern.test(actual) ? undefined : isNot(expected)
  }
  if (typeof expected !== 'object' || expected === null)
    return Object.is(expected, actual) ? undefined : isNot(JSON.stringify(expected))
  if (Array.isArray(expected) && !(Array.isArray(actual) && actual.length === expected.length))
    return isNot(`an array of ${expected.length}`)
  if (typeof actual !== 'object' || actual === null) return isNot('an object')
  for (const [key, item] of Object.entries(expected)) {
    const mismatch = findMismatch(item, (actual as Record<string, unknown>)[key], `${path}.${key}`)
    if (mismatch !== undefined) return mismatch
  }
  return undefined
}

/** Returns why the answer differs from the expected answer, or undefined. */
export function checkAnswer(
  { status, body, isReplayed = false }: Answer,
  expected: Expectation,
): string | undefined {
  const isExpected = status === 'done' ? expected.status < 300 : status === expected.status
  if (!isExpected) return `status is ${status}, not ${expected.status}: ${JSON.stringify(body)}`
  if (isReplayed !== (expected.replayed ?? false)) return `it was${isReplayed ? '' : ' not'} replayed`
  const mismatch = expected.result === undefined ? undefined : findMismatch(expected.result, body)
  if (mismatch !== undefined) return mismatch
  for (const path of expected.lacks ?? []) {
    if (readPath(body, path) !== undefined) return `${path} is there`
  }
  for (const [path, value] of Object.entries(expected.differs ?? {})) {
    const found = readPath(body, path)
    if (found === undefined || found === value) return `${path} is ${JSON.stringify(found)}`
  }
  const problem = (body ?? {}) as { errors?: Record<string, string[]>; detail?: string }
  for (const [path, part] of Object.entries(expected.errors ?? {})) {
    const messages = problem.errors?.[path] ?? []
    if (!messages.some((message) => message.includes(part))) {
      return `errors are ${JSON.stringify(problem.errors)}, without "${part}" at ${path}`
    }
  }
  if (expected.detail !== undefined && !problem.detail?.includes(expected.detail))
    return `detail is ${problem.detail}`
  return undefined
}

/**
 * Replaces everything that is random or measured, so that equivalent answers become equal. A value that the case saved
 * is replaced by its name. Other ids, keys and fingerprints are replaced by numbers in the order of their appearance.
 * All kinds of success become equal, because {@link checkAnswer} checks them.
 */
export function normalize(answers: readonly Answer[], saved: ReadonlyMap<string, unknown>): unknown {
  const names = new Map<string, string>()
  const drawn =
    /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00|key_(?:run_)?[1-9A-HJ-NP-Za-km-z]{22}|(?<=BEGIN PUBLIC KEY-----\\n)[A-Za-z0-9+/]{43}=|(?<="key":")[1-9A-HJ-NP-Za-km-z]{22}|(?<="fingerprint":")[1-9A-HJ-NP-Za-km-z]{43,44}/g
  let text = JSON.stringify(answers.map(withoutReference))
  for (const [name, value] of saved) text = text.replaceAll(JSON.stringify(value), `"<${name}>"`)
  text = text.replaceAll(drawn, (found) => {
    if (/^\d{4}-\d\d-\d\dT/.test(found)) return '<date>'
    if (!names.has(found)) names.set(found, `<${names.size + 1}>`)
    return names.get(found)!
  })
  return JSON.parse(text)
}

function withoutReference({ status: answered, body, ...rest }: Answer): Answer {
  const status = answered !== 'done' && answered < 300 ? 'done' : answered
  if (typeof body !== 'object' || body === null || !('instance' in body)) return { status, body, ...rest }
  // Over HTTP, errors of 3-D Secure have only the attributes of the service.
  if ('title' in body && String(body.title).startsWith('3DS Service')) {
    const { type: _, instance: __, ...told } = body as Record<string, unknown>
    return { status, body: told, ...rest }
  }
  return { status, body: { ...body, instance: '<reference>' } }
}

/** Returns the value at a dotted path. */
export function readPath(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], value)
}
