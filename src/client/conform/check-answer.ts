import { type Answer, type Expectation, readOwn, readPath } from './cases.js'
import { EVERYTHING, type Show } from './show-received.js'

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
function findMismatch(expected: unknown, actual: unknown, show: Show, path = 'result'): string | undefined {
  const isNot = (what: string) => `${path} is ${show.value(actual)}, not ${what}`
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
    const mismatch = findMismatch(item, readOwn(actual, key), show, `${path}.${key}`)
    if (mismatch !== undefined) return mismatch
  }
  return undefined
}

export function checkAnswer(
  { status, body, isReplayed = false }: Answer,
  expected: Expectation,
  show: Show = EVERYTHING,
): string | undefined {
  const isExpected = status === 'done' ? expected.status < 300 : status === expected.status
  if (!isExpected) return `status is ${status}, not ${expected.status}: ${show.body(body)}`
  if (isReplayed !== (expected.replayed ?? false)) return `the answer was${isReplayed ? '' : ' not'} replayed`
  const mismatch = expected.result === undefined ? undefined : findMismatch(expected.result, body, show)
  if (mismatch !== undefined) return mismatch
  for (const path of expected.lacks ?? []) {
    if (readPath(body, path) !== undefined) return `${path} is there`
  }
  for (const [path, value] of Object.entries(expected.differs ?? {})) {
    const found = readPath(body, path)
    if (found === undefined || found === value)
      return `${path} is ${show.value(found)}, not a different value`
  }
  const errors = readPath(body, 'errors')
  for (const [path, part] of Object.entries(expected.errors ?? {})) {
    const messages = typeof errors === 'object' && errors !== null ? Object.entries(errors) : []
    const found = messages.flatMap(([name, texts]) => (name === path && Array.isArray(texts) ? texts : []))
    if (!found.some((message) => typeof message === 'string' && message.includes(part)))
      return `errors are ${show.messages(errors)}, without "${part}" at ${path}`
  }
  const detail = readPath(body, 'detail')
  if (expected.detail !== undefined && !(typeof detail === 'string' && detail.includes(expected.detail)))
    return `detail is ${show.messages(detail)}`
  return undefined
}
