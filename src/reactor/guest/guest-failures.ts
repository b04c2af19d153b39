/** Describes a thrown value for the host. Reading the value can run reactor code, within the host's limits. */
import type { GuestFailure } from '../messages.js'
import { SourceError } from './source.js'

const MOST_CHARACTERS = 10_000
const MOST_ERRORS = 50
const UNREADABLE = 'The code threw a value that cannot be read'

/** `findStack` returns the stack frames of an error that are in reactor code. */
export function describeFailure(
  thrown: unknown,
  findStack: (error: unknown) => string | undefined,
): GuestFailure {
  if (thrown instanceof SourceError) {
    const { message, line, column } = thrown
    return { kind: 'invalid', message: clip(message), line, column }
  }
  try {
    const stack = findStack(thrown)
    return { ...describeThrown(thrown), ...(stack === undefined ? {} : { stack }) }
  } catch {
    return { kind: 'thrown', message: UNREADABLE }
  }
}

function describeThrown(thrown: unknown): Extract<GuestFailure, { kind: 'thrown' }> {
  if (typeof thrown !== 'object' || thrown === null) return { kind: 'thrown', message: clip(toText(thrown)) }
  const { message, status, errors } = thrown as { message?: unknown; status?: unknown; errors?: unknown }
  const text = clip(message === undefined ? UNREADABLE : toText(message))
  const isStatus = Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599
  if (!isStatus) return { kind: 'thrown', message: text }
  const map = describeErrors(errors)
  return {
    kind: 'thrown',
    message: text,
    status: status as number,
    ...(map === undefined ? {} : { errors: map }),
  }
}

/** Messages by name, from a string, an array, an object or an Error; those without a name are under `error`. */
function describeErrors(errors: unknown): Record<string, string[]> | undefined {
  if (errors === undefined || errors === null) return undefined
  if (typeof errors !== 'object') return { error: [clip(toText(errors))] }
  if (Array.isArray(errors)) return { error: toTexts(errors) }
  if (errors instanceof Error) return { error: [clip(toText(errors.message))] }
  const entries = Object.entries(errors).slice(0, MOST_ERRORS)
  return Object.fromEntries(entries.map(([name, value]) => [clip(name), toTexts(value)]))
}

function toTexts(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).slice(0, MOST_ERRORS).map((each) => clip(toText(each)))
}

function toText(value: unknown): string {
  if (value instanceof Error) return toText(value.message)
  return typeof value === 'object' && value !== null ? (JSON.stringify(value) ?? UNREADABLE) : String(value)
}

/** Limits the length and replaces lone surrogates, which the host's JSON parser refuses. */
function clip(text: string): string {
  return text.slice(0, MOST_CHARACTERS).replaceAll(/\p{Cs}/gu, '\uFFFD')
}
