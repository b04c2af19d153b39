/**
 * An item of a seed is the input of the operation that creates the record, or an answer of the API. An answer
 * has additional attributes, and the form of some attributes differs from the input.
 */
import { isObject } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { addError } from '../../domain/property-errors.js'
import { suggestName } from '../../domain/text/nearest.js'
import type { PropertyErrors } from '../../errors.js'
import { type JsonSchema, type ObjectSchema, type Schema, toJsonSchema } from '../../framework/schema.js'
import { createApplication } from '../application/noun.js'
import { createFormula } from '../formula/noun.js'
import { createInvitation } from '../invite/noun.js'
import { memberOutput } from '../member/noun.js'
import { createProxy } from '../proxy/noun.js'
import { createReactor } from '../reactor/reactor.js'
import { createToken } from '../token/noun.js'
import { createWebhook } from '../webhook/noun.js'
import { type ListName, seedSchema } from './seed-schema.js'

export type Item = Readonly<Record<string, unknown>>

/** The emulated service returns these attributes. Coffer does not return all of them. */
const READ_ONLY =
  'id tenant_id state requested created_by created_at created_date modified_by modified_at modified_date _extras'

const ANSWERS: Readonly<Record<ListName, Schema | undefined>> = {
  applications: createApplication.output,
  formulas: createFormula.output,
  tokens: createToken.output,
  associations: undefined,
  reactors: createReactor.output,
  proxies: createProxy.output,
  webhooks: createWebhook.output,
  members: memberOutput,
  invitations: createInvitation.output,
}

/** Attributes of an answer that repeat an attribute of the seed under another name. */
const OTHER_FORMS: Partial<Record<ListName, readonly string[]>> = {
  proxies: ['application_id'],
}

const namesOf = (schema: Schema | undefined) =>
  Object.keys((schema as ObjectSchema | undefined)?.properties ?? {})

/** Returns the JSON Schema of a seed, for editors. Attributes that only answers have are read-only. */
export function describeSeed(): JsonSchema {
  const { properties, ...rest } = toJsonSchema(seedSchema) as JsonSchema & {
    properties: Record<string, JsonSchema>
  }
  const { tenants } = properties as { tenants: { items: { properties: Record<string, JsonSchema> } } }
  for (const place of [properties, tenants.items.properties])
    for (const list of Object.keys(ANSWERS) as ListName[]) place[list] = describeList(list)
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Seed of Coffer',
    ...rest,
    properties,
  }
}

function describeList(list: ListName): JsonSchema {
  const { items, ...rest } = toJsonSchema(seedSchema.properties[list]) as JsonSchema & { items: JsonSchema }
  const properties = items.properties as Record<string, JsonSchema>
  const onlyAnswered = answeredBy(list).filter((name) => !Object.hasOwn(properties, name))
  const ignored = onlyAnswered.map((name) => [name, { readOnly: true, description: 'Ignored in a seed.' }])
  return {
    ...rest,
    items: {
      ...items,
      properties: { ...properties, ...Object.fromEntries(ignored) },
      additionalProperties: false,
    },
  }
}

function answeredBy(list: ListName): string[] {
  return [...namesOf(ANSWERS[list]), ...READ_ONLY.split(' '), ...(OTHER_FORMS[list] ?? [])]
}

export function attributesOf(list: ListName): string[] {
  return namesOf(seedSchema.properties[list].items)
}

export function isKnownAttribute(list: ListName, name: string): boolean {
  return attributesOf(list).includes(name) || answeredBy(list).includes(name)
}

/** Adds one error for each unknown attribute of the list, however many items have the attribute. */
export function checkAttributes(
  list: ListName,
  items: readonly (Item | undefined)[],
  place: string,
  errors: PropertyErrors,
): void {
  const found = new Map<string, { at: number; count: number }>()
  for (const [at, item = {}] of items.entries()) {
    for (const name of Object.keys(item)) {
      const before = found.get(name)
      if (before !== undefined) before.count++
      else if (!isKnownAttribute(list, name)) found.set(name, { at, count: 1 })
    }
  }
  for (const [name, { at, count }] of found) {
    const others =
      count === 1 ? '' : `, nor in ${count - 1} other ${count === 2 ? 'item' : 'items'} of the list`
    const advice = suggestName(name, attributesOf(list))
    addError(errors, `${place}.${list}[${at}].${name}`, `is not known here${others}${advice}`)
  }
}

/** Removes the attributes that only answers have. */
export function readItem(list: ListName, item: Item): Item {
  const attributes = attributesOf(list)
  const given = Object.fromEntries(Object.entries(item).filter(([name]) => attributes.includes(name)))
  if (list === 'proxies') return readProxy(given, item)
  return list === 'members' ? readMember(given) : given
}

function readMember({ user, ...given }: Item): Item {
  if (!isObject(user)) return given
  const { email, first_name, last_name } = user
  return { ...omitUndefined({ email, first_name, last_name }), ...given }
}

function readProxy(given: Item, { application_id }: Item): Item {
  if (application_id == null || application_id === '' || given.application != null) return given
  return { ...given, application: { id: application_id } }
}

/** A tenant has its owner before the seed is applied, so the seed does not add the owner. */
export function isOwner(list: ListName, { role }: Item): boolean {
  return list === 'members' && role === 'OWNER'
}
