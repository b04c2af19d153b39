/** Payloads of the page, in which fields stand for their values. */
import { insideOf, valueIn, type Wrapper } from './element.js'
import { type FieldError, ValidationError } from './errors.js'

export function hasElement(payload: unknown): boolean {
  if (findField(payload) !== undefined) return true
  return isStructure(payload) && Object.values(payload).some(hasElement)
}

/** Replaces the fields by their values. @throws ValidationError if a field is incomplete, invalid or not mounted */
export function fillIn(payload: unknown): unknown {
  const faults: FieldError[] = []
  const details = findFaults(payload, faults)
  if (details !== undefined)
    throw new ValidationError(
      'A field is not mounted, is incomplete, or is invalid. Nothing was sent.',
      details,
      faults,
    )
  return replace(payload)
}

/**
 * Returns the structure of the payload with a fault in place of each faulty field. Returns undefined if no field has a
 * fault.
 */
function findFaults(payload: unknown, faults: FieldError[]): Record<string, unknown> | undefined {
  const field = findField(payload)
  if (field !== undefined) {
    const inside = insideOf(field.element)!
    const own = inside.isMounted
      ? inside.faults
      : [{ targetId: inside.targetId, type: 'incomplete' } satisfies FieldError]
    faults.push(...own)
    const [first] = own
    return first && { type: first.type }
  }
  if (!isStructure(payload)) return undefined
  const pairs = Object.entries(payload).flatMap(([name, inner]) => {
    const found = findFaults(inner, faults)
    return found === undefined ? [] : [[name, found]]
  })
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs)
}

function replace(payload: unknown): unknown {
  const field = findField(payload)
  if (field !== undefined) return valueIn(field)
  if (Array.isArray(payload)) return payload.map(replace)
  if (!isStructure(payload)) return payload
  return Object.fromEntries(Object.entries(payload).map(([name, inner]) => [name, replace(inner)]))
}

function findField(value: unknown): Wrapper | undefined {
  if (insideOf(value) !== undefined) return { element: value as object }
  const wrapper = value as Wrapper | null | undefined
  return insideOf(wrapper?.element) === undefined ? undefined : (wrapper as Wrapper)
}

function isStructure(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null
}
