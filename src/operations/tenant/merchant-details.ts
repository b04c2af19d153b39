/** The details of a merchant: the schemas of input and output, and the part of an input that is stored. */
import {
  ADDRESS_TEXTS,
  CONTACT_TEXTS,
  MERCHANT_TEXTS,
  type MerchantDetails,
  NETWORK_TEXTS,
  REGISTRATION_TEXTS,
} from '../../domain/records/merchant-record.js'
import { component, object, text } from '../../framework/output.js'
import { mapMembers, type ObjectSchema, type Schema } from '../../framework/schema.js'

const MAX_TEXT = 1000

/** `nullable`: for a patch, in which null removes a text or an object. */
function detailsOf(nullable: boolean) {
  const isNullable = nullable ? { nullable } : {}
  const objectOf = (properties: Record<string, Schema>): ObjectSchema =>
    ({ type: 'object', properties, additionalProperties: true, ...isNullable }) as const
  const texts = (names: readonly string[]) =>
    Object.fromEntries(
      names.map((name) => [name, { type: 'string', maxLength: MAX_TEXT, ...isNullable }] as const),
    )
  const networks = Object.entries(NETWORK_TEXTS).map(([name, names]) => [name, objectOf(texts(names))])
  return objectOf({
    merchant: objectOf({
      ...texts(MERCHANT_TEXTS),
      registration: objectOf(texts(REGISTRATION_TEXTS)),
      contact: objectOf(texts(CONTACT_TEXTS)),
      address: objectOf(texts(ADDRESS_TEXTS)),
    }),
    card_network_info: objectOf(Object.fromEntries(networks)),
  })
}

const description = 'Data of the merchant for card networks, as JSON: merchant, card_network_info.'

/**
 * The type of the input is only `Record<string, unknown>`, because {@link readDetails} returns the details with their
 * exact type.
 */
export const detailsInput = { ...detailsOf(false), description } as ObjectSchema & { properties?: never }
export const detailsPatch = { ...detailsOf(true), description } as ObjectSchema & { properties?: never }

const optional = <const N extends readonly string[]>(names: N) =>
  Object.fromEntries(names.map((name) => [`${name}?`, text])) as {
    [Each in N[number] as `${Each}?`]: typeof text
  }

export const detailsOutput = component('MerchantDetails', [], {
  'merchant?': component('MerchantInfo', [], {
    ...optional(MERCHANT_TEXTS),
    'registration?': component('MerchantRegistration', [], optional(REGISTRATION_TEXTS)),
    'contact?': component('MerchantContact', [], optional(CONTACT_TEXTS)),
    'address?': component('MerchantAddress', [], optional(ADDRESS_TEXTS)),
  }),
  'card_network_info?': component('CardNetworkInfo', [], {
    'visa?': object(optional(NETWORK_TEXTS.visa)),
    'mastercard?': object(optional(NETWORK_TEXTS.mastercard)),
    'amex?': object(optional(NETWORK_TEXTS.amex)),
    'discover?': object(optional(NETWORK_TEXTS.discover)),
  }),
})

/** Returns the details without unknown properties. Requires: the details fit the schema of the input. */
export function readDetails(details: unknown): MerchantDetails {
  return dropUnknown(detailsOutput, details) as MerchantDetails
}

function dropUnknown(schema: Schema, value: unknown): unknown {
  const { properties = {} } = schema as ObjectSchema
  const kept = mapMembers(schema, value, dropUnknown)
  if (schema.type !== 'object') return kept
  return Object.fromEntries(
    Object.entries(kept as object).filter(([name]) => Object.hasOwn(properties, name)),
  )
}
