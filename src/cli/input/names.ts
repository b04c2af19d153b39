import { isObject } from '../../domain/json/json.js'
import { findNearest, suggestName } from '../../domain/text/nearest.js'
import { CofferError, usage } from '../../errors.js'
import type { OperationInput } from '../../framework/context.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import type { Schema } from '../../framework/schema.js'
import { describeMisspelled } from '../missing.js'
import { display, truncate } from '../output/display.js'
import { printWarning } from '../output/output.js'
import type { Terminal } from '../output/terminal.js'

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/**
 * If listing the records fails with one of these codes, the name stays unresolved, and the command itself reports the
 * error.
 */
const REFUSED: readonly string[] = ['forbidden', 'unauthenticated', 'not_found']
/** A text with fewer characters counts as a name, not as the beginning of an id. */
const MIN_BEGINNING = 4
/** Limits of messages: the number of records or warnings, and the columns of a property name. */
const MAX_TOLD = 10
const MAX_COLUMNS = 50

/**
 * If a noun may have very many records, lists only the records that match `given`. `input`: other values of the
 * command, such as the application whose keys are listed.
 */
export type ListNoun = (noun: string, given?: string, input?: OperationInput) => Promise<readonly unknown[]>

export async function resolveNames(definition: RegisteredOperation, input: OperationInput, list: ListNoun) {
  const resolved: OperationInput = { ...input }
  for (const [name, { refersTo }] of Object.entries<Schema>(definition.input.properties ?? {})) {
    const value = input[name]
    if (refersTo === undefined || value === undefined) continue
    const isFilter = Array.isArray(value)
    const listed: ListNoun = (noun, given) => list(noun, given, resolved)
    const find = (given: unknown) => resolveName(refersTo, given, listed, isFilter)
    if (isFilter) resolved[name] = await Promise.all(value.map(find))
    else resolved[name] = isObject(value) ? { ...value, id: await find(value.id) } : await find(value)
  }
  return resolved
}

/**
 * Returns the id of the record whose name is `given` or whose id begins with `given`. Returns `given` itself if no
 * record matches.
 * @throws CofferError `usage` if several records match, `not_found` if the name seems misspelled
 */
export async function resolveName(noun: string, given: unknown, list: ListNoun, isFilter = false) {
  if (typeof given !== 'string' || given === '' || ID.test(given)) return given
  // If the caller may not list the records, only ids can be given.
  const things = await list(noun, given).catch((error: unknown) => {
    if (error instanceof CofferError && REFUSED.includes(error.code)) return []
    throw error
  })
  const all = things.map(identify)
  if (all.some(({ id }) => id === given)) return given
  const begin = given.toLowerCase()
  const named = all.filter(({ names }) => names.some((name) => name.toLowerCase() === begin))
  const isBegun = ({ id }: { id: string }) => given.length >= MIN_BEGINNING && id.startsWith(begin)
  const found = named.length > 0 ? named : all.filter(isBegun)
  if (found.length === 1) return found[0]!.id
  const shown = display(given)
  if (found.length === 0) {
    const names = all.flatMap((each) => each.names.map(display))
    const near = isFilter ? undefined : findNearest(given, names)
    if (near === undefined) return given
    throw new CofferError('not_found', describeMisspelled(noun, given, near))
  }
  const lines = found.map(({ id, names }) => `${id}  ${names.map(display).join(', ')}`)
  const what = `"${shown}" matches ${found.length} records of \`coffer ${noun} list\`. Give an id:`
  throw usage([what, ...lines.slice(0, MAX_TOLD)].join('\n  '))
}

export function identify(thing: unknown): { id: string; names: string[] } {
  const { id, name, email, user } = thing as Record<string, unknown>
  const address = isObject(user) ? user.email : email
  return { id: String(id), names: [name, address].filter((text) => typeof text === 'string') }
}

/**
 * Warns about each ignored property once. Properties of answers cause no warning, so that an answer can be changed and
 * sent back.
 */
export function createUnknownWarning(terminal: Terminal, definition: RegisteredOperation) {
  const { name: command, input, output, http } = definition
  const sentBody = http?.body?.asSent
  const names = Object.keys(input.properties ?? {})
  const answered = Object.keys((output?.type === 'object' && output.properties) || {})
  const passed = new Set([...names, ...answered])
  let left = input.additionalProperties === true && sentBody === undefined ? MAX_TOLD : 0
  return async (bodies: readonly unknown[]): Promise<void> => {
    for (const name of bodies.flatMap((body) => (isObject(body) ? Object.keys(body) : []))) {
      if (passed.has(name) || left-- <= 0) continue
      passed.add(name)
      const shown = truncate(display(name), MAX_COLUMNS)
      const nearest = suggestName(name, names) || '.'
      await printWarning(terminal, `Ignored: ${command} takes no property "${shown}"${nearest}`)
    }
  }
}
