/** The module `assert`, with shorter messages than in Node. */
import { inspect } from 'node:util'
import { isDeepEqual, isLooselyEqual } from './deep-equal.js'

type Message = string | Error | undefined
type Work = () => unknown

interface Failure {
  message?: Message
  actual?: unknown
  expected?: unknown
  operator?: string
}

class AssertionError extends Error {
  readonly code = 'ERR_ASSERTION'
  readonly generatedMessage: boolean
  readonly actual: unknown
  readonly expected: unknown
  readonly operator: string | undefined

  constructor({ message, actual, expected, operator }: Failure) {
    super(String(message ?? `${inspect(actual)} ${operator} ${inspect(expected)}`))
    Object.defineProperty(this, 'name', { value: 'AssertionError', configurable: true, writable: true })
    this.generatedMessage = message === undefined
    this.actual = actual
    this.expected = expected
    this.operator = operator
  }
}

function failWith({ message, ...rest }: Failure): never {
  throw message instanceof Error ? message : new AssertionError({ message, ...rest })
}

function ok(value?: unknown, message: Message = 'The value is falsy'): void {
  if (!value) failWith({ message, actual: value, expected: true, operator: '==' })
}

type Compare = (actual: unknown, expected: unknown) => boolean

const check =
  (operator: string, compare: Compare) =>
  (actual: unknown, expected: unknown, message?: Message): void => {
    if (!compare(actual, expected)) failWith({ message, actual, expected, operator })
  }

const not =
  (compare: Compare): Compare =>
  (a, b) =>
    !compare(a, b)
const isDeep =
  (isStrict: boolean): Compare =>
  (a, b) =>
    isDeepEqual(a, b, isStrict)
const matches: Compare = (text, pattern) => typeof text === 'string' && (pattern as RegExp).test(text)

function isExpected(error: unknown, expected: unknown): boolean {
  if (expected === undefined) return true
  if (expected instanceof RegExp) return expected.test(String(error))
  if (typeof expected === 'function') {
    const { prototype } = expected as { prototype?: object }
    if (prototype !== undefined && error instanceof expected) return true
    if (Object.prototype.isPrototypeOf.call(Error, expected)) return false
    return Reflect.apply(expected, {}, [error]) === true
  }
  return Object.entries(expected as object).every(([name, value]) => {
    const actual = (error as Record<string, unknown>)[name]
    const isMatch = value instanceof RegExp && typeof actual === 'string' && value.test(actual)
    return isMatch || isDeepEqual(actual, value, true)
  })
}

function checkThrown(error: unknown, expected: unknown, message: Message): void {
  if (typeof expected === 'string' || isExpected(error, expected)) return
  if (message === undefined) throw error
  failWith({ message, actual: error, expected, operator: 'throws' })
}

function throws(work: Work, expected?: unknown, message?: Message): void {
  let thrown: { error: unknown } | undefined
  try {
    work()
  } catch (error) {
    thrown = { error }
  }
  const text = typeof expected === 'string' ? expected : message
  if (thrown === undefined) failWith({ message: text ?? 'Missing expected exception', operator: 'throws' })
  checkThrown(thrown.error, expected, message)
}

const start = async (work: Work | Promise<unknown>) => (typeof work === 'function' ? work() : work)

async function rejects(work: Work | Promise<unknown>, expected?: unknown, message?: Message): Promise<void> {
  const thrown = await start(work).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  const text = typeof expected === 'string' ? expected : message
  if (thrown === undefined) failWith({ message: text ?? 'Missing expected rejection', operator: 'rejects' })
  checkThrown(thrown.error, expected, message)
}

function ifError(error: unknown): void {
  if (error === null || error === undefined) return
  failWith({ message: `ifError got an unwanted exception: ${(error as Error).message ?? error}` })
}

const strictEqual = check('strictEqual', Object.is)
const notStrictEqual = check('notStrictEqual', not(Object.is))
const deepStrictEqual = check('deepStrictEqual', isDeep(true))
const notDeepStrictEqual = check('notDeepStrictEqual', not(isDeep(true)))

const shared = {
  AssertionError,
  ok,
  fail: (message: Message = 'Failed') => failWith({ message, operator: 'fail' }),
  ifError,
  throws,
  rejects,
  doesNotThrow: (work: Work) => void work(),
  doesNotReject: async (work: Work | Promise<unknown>) => void (await start(work)),
  match: check('match', matches),
  doesNotMatch: check('doesNotMatch', not(matches)),
  strictEqual,
  notStrictEqual,
  deepStrictEqual,
  notDeepStrictEqual,
}

const strict = Object.assign((value?: unknown, message?: Message) => ok(value, message), shared, {
  equal: strictEqual,
  notEqual: notStrictEqual,
  deepEqual: deepStrictEqual,
  notDeepEqual: notDeepStrictEqual,
})

export default Object.assign((value?: unknown, message?: Message) => ok(value, message), shared, {
  equal: check('==', isLooselyEqual),
  notEqual: check('!=', not(isLooselyEqual)),
  deepEqual: check('deepEqual', isDeep(false)),
  notDeepEqual: check('notDeepEqual', not(isDeep(false))),
  strict: Object.assign(strict, { strict }),
})
