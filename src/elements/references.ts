/** Values that the server has sent. The page gets references to these values, and only fields can show the values. */
import { BoundedMap } from '../bounded-map.js'

export interface Reference {
  correlationId: string
  elementId: string
  path: string
}

/** The values of older answers are forgotten. */
const MAX_ANSWERS = 100

const answers = new BoundedMap<string, Map<string, unknown>>(MAX_ANSWERS)

/**
 * Replaces each text, number and boolean with a reference. The structure of `value` stays the same. `path`: the place
 * of `value` in the answer.
 */
export function hideValues(value: unknown, path: string): unknown {
  const correlationId = drawId()
  const values = new Map<string, unknown>()
  answers.set(correlationId, values)
  const hide = (inner: unknown, at: string): unknown => {
    if (Array.isArray(inner)) return inner.map((each, index) => hide(each, `${at}[${index}]`))
    if (typeof inner === 'object' && inner !== null)
      return Object.fromEntries(
        Object.entries(inner).map(([name, each]) => [name, hide(each, at === '' ? name : `${at}.${name}`)]),
      )
    if (inner === null || inner === undefined) return inner
    const reference: Reference = { correlationId, elementId: drawId(), path: at }
    values.set(reference.elementId, inner)
    return reference
  }
  return hide(value, path)
}

/** @throws Error for an unknown or old reference. */
export function resolveReference(reference: Reference): unknown {
  const value = answers.get(reference?.correlationId)?.get(reference?.elementId)
  if (value !== undefined) return value
  throw new Error(
    `This is no reference to a value, or it is older than the last ${MAX_ANSWERS} answers. A field can show only values that tokens.retrieve or a call of a proxy returned.`,
  )
}

/** `crypto.randomUUID` exists only on secure pages. */
function drawId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
