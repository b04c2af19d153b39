/** Items of a seed refer to other records by name or by id. */
import { isObject } from '../../domain/json/json.js'
import { addError } from '../../domain/property-errors.js'
import { invalid, type PropertyErrors } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { readAll } from '../../storage/store.js'
import { VAULT_TENANT } from '../formula/noun.js'
import type { Item } from './seed-items.js'

type Kind = 'application' | 'formula' | 'reactor'
type Reference = { readonly id: string } | { readonly name: string }
type Find = (kind: Kind, reference: Reference, path: string) => Promise<string>

/** The operations take `{ id }` in these attributes, and the id as text in the attributes of `IDS`. */
const OBJECTS = ['application', 'formula'] as const
const IDS = ['request_reactor_id', 'response_reactor_id'] as const
export const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export function checkReferences(item: Item, place: string, errors: PropertyErrors): void {
  for (const name of OBJECTS) {
    const given = item[name]
    if (given !== undefined && typeof given !== 'string' && !isObject(given))
      addError(errors, `${place}.${name}`, 'must be a name, or an object with an id or a name')
  }
}

/** Returns the item with ids instead of names. */
export async function refer(item: Item, find: Find): Promise<Item> {
  const referred: Record<string, unknown> = { ...item }
  for (const property of OBJECTS) {
    const { reference, path = property } = readObject(property, item[property])
    if (reference !== undefined) referred[property] = { id: await find(property, reference, path) }
    else delete referred[property]
  }
  for (const property of IDS) {
    const given = item[property]
    if (typeof given !== 'string' || given === '') continue
    referred[property] = await find('reactor', UUID.test(given) ? { id: given } : { name: given }, property)
  }
  return referred
}

function readObject(property: string, given: unknown): { reference?: Reference; path?: string } {
  const { id, name } = isObject(given) ? given : { id: undefined, name: given }
  if (typeof id === 'string' && id !== '') return { reference: { id }, path: `${property}.id` }
  return typeof name === 'string' && name !== '' ? { reference: { name } } : {}
}

/** Keeps the name, for the check of an item that refers to a record which does not exist yet. */
export const keepName: Find = async (_, reference) => ('id' in reference ? reference.id : reference.name)

/**
 * Finds records that the tenant had before the seed, or that the seed has created. No item refers to a record of its
 * own kind. Therefore the names of a kind are read only once, after all records of this kind were created.
 * @throws CofferError `validation`
 */
export function createFinder({ store, caller }: Context) {
  const known = new Map<Kind, Promise<Map<string, string[]>>>()
  const readNames = async (kind: Kind) => {
    const ids = new Map<string, string[]>()
    const add = (name: string, id: string) => ids.set(name, [...(ids.get(name) ?? []), id])
    for (const { id, name } of await readAll(store, kind, caller.tenant)) add(name, id)
    if (kind !== 'formula') return ids
    // A formula of the tenant has precedence over an official formula with the same name.
    for (const { id, name } of await readAll(store, kind, VAULT_TENANT)) if (!ids.has(name)) add(name, id)
    return ids
  }
  const find: Find = async (kind, reference, path) => {
    if ('id' in reference) {
      const tenants = kind === 'formula' ? [caller.tenant, VAULT_TENANT] : [caller.tenant]
      for (const tenant of tenants)
        if ((await store.get(kind, tenant, reference.id)) !== undefined) return reference.id
      throw invalid(path, `no ${kind} has this id`)
    }
    const reading = known.get(kind) ?? readNames(kind)
    known.set(kind, reading)
    const [id, ...others] = (await reading).get(reference.name) ?? []
    if (others.length > 0) throw invalid(path, `several ${kind}s have this name; refer to one by its id`)
    if (id === undefined) throw invalid(path, `no ${kind} has this name`)
    return id
  }
  return find
}
