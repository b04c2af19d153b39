import type { Transform } from '../../domain/access/permissions.js'
import { maskNumber } from '../../domain/network-token/number.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { NetworkTokenRecord } from '../../domain/records/records.js'
import { binLength, brandOf, CARD_BRANDS } from '../../domain/token/card-number.js'
import type { Caller } from '../../framework/caller/caller.js'
import { absent } from '../../framework/no-reveal.js'
import { audit, boolean, component, count, enumOf, object, text, uuid } from '../../framework/output.js'
import { type Infer, lenientInput } from '../../framework/schema.js'
import { tokenId } from '../token/token-attributes.js'

export const STATUSES = ['active', 'suspended', 'inactive'] as const

/** In expressions, access rules treat a network token, which has no container, like a token in this container. */
export const CONTAINERS = ['/pci/high/']

const MAX_TEXT = 500

const cardText = { type: 'string', maxLength: MAX_TEXT } as const

export const networkTokenId = {
  type: 'string',
  refersTo: 'network token',
  description: 'The id of the network token.',
} as const

export const createAttributes = {
  data: {
    sensitive: true,
    requiredUnless: ['token_id', 'token_intent_id'],
    description: 'The card: number, expiration_month, expiration_year, and perhaps cvc.',
  },
  token_id: { ...tokenId, description: 'Instead of data: a token of the type card.' },
  token_intent_id: { type: 'string', description: 'Instead of data: a token intent of the type card.' },
  expiration_month: {
    type: 'integer',
    minimum: 1,
    maximum: 12,
    description: 'Used instead of the month of the card.',
  },
  expiration_year: {
    type: 'integer',
    minimum: 1000,
    maximum: 9999,
    description: 'Used instead of the year of the card.',
  },
  cardholder_info: {
    ...lenientInput([], {
      name: cardText,
      address: lenientInput([], {
        line1: cardText,
        line2: cardText,
        line3: cardText,
        postal_code: cardText,
        city: cardText,
        state_code: cardText,
        country_code: cardText,
      }),
    }),
    description: 'Accepted, and neither stored nor shown.',
  },
  merchant_id: { type: 'string', description: 'Accepted, without effect.' },
} as const

const month = { ...count, minimum: 1, maximum: 12 } as const

const columns = ['id', 'status', 'card.last4', 'network_token.brand', 'created_at']
export const networkTokenOutput = component('NetworkToken', columns, {
  id: uuid,
  tenant_id: uuid,
  status: enumOf(...STATUSES),
  'data?': {
    description: 'The number is masked, unless the caller has the permission network-token:reveal.',
    ...object({ number: text, expiration_month: month, expiration_year: count }),
  },
  network_token: object({
    bin: text,
    last4: text,
    expiration_month: month,
    expiration_year: count,
    'brand?': enumOf(...CARD_BRANDS),
  }),
  card: object({ last4: text, expiration_month: month, expiration_year: count }),
  par: {
    ...text,
    description: 'The account behind the card: the same value for each network token of the card.',
    inNoReveal: absent,
  },
  'token_id?': text,
  'token_intent_id?': text,
  ...audit,
  '_extras?': {
    description: 'Only in the answer to the creation.',
    ...object({
      deduplicated: { ...boolean, description: 'True if the card had this network token already.' },
    }),
  },
})

export type NetworkTokenView = Infer<typeof networkTokenOutput>

export function viewNetworkToken(record: NetworkTokenRecord, transform: Transform): NetworkTokenView {
  const { number, expiration_month, expiration_year } = record
  const date = { expiration_month, expiration_year }
  const data = { number: transform === 'reveal' ? number : maskNumber(number), ...date }
  const bin = number.slice(0, binLength(number.length))
  const view = {
    id: record.id,
    tenant_id: record.tenant_id,
    status: record.status,
    data: transform === 'redact' ? undefined : data,
    network_token: { bin, last4: number.slice(-4), ...date, ...omitUndefined({ brand: brandOf(number) }) },
    card: record.card,
    par: record.par,
    token_id: record.token_id,
    token_intent_id: record.token_intent_id,
    created_by: record.created_by,
    created_at: record.created_at,
    modified_by: record.modified_by,
    modified_at: record.modified_at,
  }
  return omitUndefined(view) as NetworkTokenView
}

/** Only a caller with `network-token:reveal` gets the number. The owner of the vault also needs the flag `--reveal`. */
export function transformFor(caller: Caller): Transform {
  const permission = 'network-token:reveal'
  if (caller.isNoReveal === true || !caller.holds(permission)) return 'mask'
  if (caller.grants !== undefined) return 'reveal'
  return caller.transform(permission, { containers: CONTAINERS }) ?? 'mask'
}
