/** Finds the ids that names and beginnings of ids stand for, in the properties whose schema says what they refer to. */
import { isObject } from '../../domain/json/json.js'
import { suggestName } from '../../domain/text/nearest.js'
import { CofferError, usage } from '../../errors.js'
import type { OperationInput } from '../../framework/operation.js'
import type { Schema } from '../../framework/schema.js'
import { display } from '../output/display.js'

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/** A shorter beginning of an id is a name only. */
const LEAST_BEGINNING = 4
const MOST_LISTED = 10

/** All things of a noun, as its `list` operation shows them. */
export type ListNoun = (noun: string) => Promise<readonly unknown[]>

/** @throws CofferError `usage` that lists what an ambiguous name may stand for */
export async function resolveNames(
  properties: Readonly<Record<string, Schema>>,
  input: OperationInput,
  list: ListNoun,
): Promise<OperationInput> {
  const resolved = { ...input }
  for (const [name, { refersTo }] of Object.entries(properties)) {
    const value = input[name]
    if (refersTo === undefined || value === undefined) continue
    const isFilter = Array.isArray(value)
    const find = (given: unknown) => resolveName(refersTo, given, list, isFilter)
    if (isFilter) resolved[name] = await Promise.all(value.map(find))
    else resolved[name] = isObject(value) ? { ...value, id: await find(value.id) } : await find(value)
  }
  return resolved
}

/**
 * The id that `given` stands for; unchanged if it is an id, or stands for nothing. A filter may name what there is not.
 * @throws CofferError `usage` for one that stands for several, `not_found` for one that is close to a name
 */
export async function resolveName(noun: string, given: unknown, list: ListNoun, isFilter = false) {
  if (typeof given !== 'string' || given === '' || ID.test(given)) return given
  const all = (await list(noun).catch(listNothing)).map(identify)
  const begin = given.toLowerCase()
  const isBeginning = given.length >= LEAST_BEGINNING
  const [found = []] = [
    all.filter(({ names }) => names.includes(given)),
    all.filter(({ names }) => names.some((name) => name.toLowerCase() === begin)),
    all.filter(({ id }) => isBeginning && id.startsWith(begin)),
  ].filter(({ length }) => length > 0)
  const names = all.flatMap((each) => each.names.map(display))
  if (found.length === 0 && !isFilter) refuseMisspelled(noun, given, names)
  if (found.length < 2) return found[0]?.id ?? given
  const lines = found
    .slice(0, MOST_LISTED)
    .map(({ id, names }) => `\n  ${id}  ${names.map(display).join(', ')}`)
  const more = found.length > MOST_LISTED ? `\n  and ${found.length - MOST_LISTED} more` : ''
  const what = `"${display(given)}" stands for ${found.length} of: coffer ${noun} list. Give an id:`
  throw usage(`${what}${lines.join('')}${more}`)
}

function refuseMisspelled(noun: string, given: string, names: readonly string[]): void {
  const advice = suggestName(given, names)
  if (advice !== '') throw new CofferError('not_found', `There is no ${noun} "${display(given)}"${advice}`)
}

/** A caller that may not list has to give ids. */
function listNothing(error: unknown): readonly unknown[] {
  if (error instanceof CofferError && error.code === 'forbidden') return []
  throw error
}

/** The id and the names of a thing: `name`, and the address of an invitation or a member. */
export function identify(thing: unknown): { id: string; names: string[] } {
  const { id, name, email, user } = thing as Record<string, unknown>
  const address = isObject(user) ? user.email : email
  return { id: String(id), names: [name, address].filter((text) => typeof text === 'string') }
}
