/** Applies no-reveal mode to every operation, so that handlers need no code for this mode. */
import { isObject } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { noRevealError } from '../errors.js'
import type { Caller } from './caller/caller.js'
import type { OperationInput } from './context.js'
import type { AnyDeclaration } from './declaration.js'
import { mapMembers, type Schema } from './schema.js'

type Mode = Pick<Caller, 'isNoReveal'>

/** @throws CofferError `forbidden` if the operation gives data or a key, or makes a rule that reveals data */
export function refuseReveal(
  { isNoReveal }: Mode,
  { name, plaintext }: AnyDeclaration,
  { rules }: OperationInput,
): void {
  if (isNoReveal !== true) return
  if (plaintext === 'refused') throw noRevealError(name)
  if (Array.isArray(rules) && rules.some((rule) => rule?.transform === 'reveal'))
    throw noRevealError('a rule with the transform reveal')
}

/**
 * In no-reveal mode, the result of `inNoReveal` replaces each property whose schema has `inNoReveal`.
 * @throws CofferError `forbidden` if the answer has a secret that is shown once
 */
export function showTo<T>({ isNoReveal }: Mode, schema: Schema | undefined, answer: T): T {
  return isNoReveal === true && schema !== undefined ? (hide(schema, answer) as T) : answer
}

function hide(schema: Schema, value: unknown): unknown {
  if (value === undefined) return undefined
  if (schema.isShownOnce) throw noRevealError('a new key')
  if (schema.inNoReveal !== undefined) return schema.inNoReveal(value)
  const shown = mapMembers(schema, value, hide)
  return isObject(shown) ? omitUndefined(shown) : shown
}

/** For `inNoReveal` of a schema: removes the property from the answer. */
export function absent(): undefined {
  return undefined
}

/** For `inNoReveal` of a map: shows the names without the values. */
export function concealValues(map: object): Record<string, string> {
  return Object.fromEntries(Object.keys(map).map((name) => [name, 'REDACTED']))
}
