/** Reads a thrown value: the reason of a failed run, or a response. */
import { isObject } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { GuestFailure } from '../messages.js'
import { SourceError } from './source.js'

const MAX_CHARACTERS = 10_000
const MAX_ERRORS = 50
const UNREADABLE = 'The code threw a value that cannot be read'
const UNSAID = 'The code gave no reason'

/**
 * Returns undefined if `thrown` is no CustomHttpResponseError. The class is recognized by its name, because packages
 * can contain copies of this class.
 */
export function readThrownResponse(thrown: unknown): object | undefined {
  if (!isObject(thrown) || thrown.name !== 'CustomHttpResponseError' || !Number.isInteger(thrown.status))
    return undefined
  const { status: statusCode, headers, body } = thrown
  return { statusCode, headers: headers ?? {}, body: body ?? {} }
}

export function describeFailure(
  thrown: unknown,
  findStack: (error: unknown) => string | undefined,
): GuestFailure {
  if (thrown instanceof SourceError) {
    const { message, line, column, others } = thrown
    const more = others.map((fault) => ({ ...fault, message: clip(fault.message) }))
    return {
      kind: 'invalid',
      message: clip(message),
      line,
      column,
      ...(more.length > 0 && { others: more }),
    }
  }
  try {
    if (typeof thrown !== 'object' || thrown === null) return { kind: 'thrown', message: toText(thrown) }
    const {
      message: given,
      status,
      errors,
    } = thrown as { message?: unknown; status: number; errors?: unknown }
    const message = given === undefined ? UNREADABLE : toText(given || thrown)
    const hasStatus = Number.isInteger(status) && status >= 400 && status <= 599
    const map = (errors ?? undefined) === undefined ? undefined : toErrorMap(errors)
    const own = hasStatus ? { status, errors: map } : {}
    return { kind: 'thrown', message, ...omitUndefined({ ...own, stack: findStack(thrown) }) }
  } catch {
    return { kind: 'thrown', message: UNREADABLE }
  }
}

/**
 * Reads messages from a text, an array, an object or an Error. Messages without a name get the name `error`. The result
 * has at least one message.
 */
export function toErrorMap(errors: unknown): Record<string, string[]> {
  const isNamed = isObject(errors) && !(errors instanceof Error) && Object.keys(errors).length > 0
  const entries = Object.entries(isNamed ? errors : { error: errors }).slice(0, MAX_ERRORS)
  return Object.fromEntries(entries.map(([name, value]) => [clip(name), toTexts(value)]))
}

function toTexts(value: unknown): string[] {
  const isEmpty =
    (value ?? '') === '' ||
    (typeof value === 'object' && !(value instanceof Error) && Object.keys(value!).length === 0)
  return isEmpty ? [UNSAID] : [value].flat().slice(0, MAX_ERRORS).map(toText)
}

function toText(value: unknown): string {
  if (value instanceof Error) return toText(value.message || (value.name === 'Error' ? UNSAID : value.name))
  const isObject = typeof value === 'object' && value !== null
  return clip(isObject ? (toJson(value) ?? UNREADABLE) : String(value)) || UNSAID
}

/** If an object contains itself, writes `[Circular]` for the inner occurrence. */
function toJson(value: object): string | undefined {
  const outer: unknown[] = []
  return JSON.stringify(value, function (this: unknown, _, inner: unknown) {
    if (typeof inner !== 'object' || inner === null) return inner
    outer.splice(outer.lastIndexOf(this) + 1)
    if (outer.includes(inner)) return '[Circular]'
    outer.push(inner)
    return inner
  })
}

/** Limits the length, and replaces lone surrogates, which the host refuses in JSON. */
function clip(text: string): string {
  return text.slice(0, MAX_CHARACTERS).replaceAll(/\p{Cs}/gu, '\uFFFD')
}
