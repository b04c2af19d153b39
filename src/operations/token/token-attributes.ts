/** Attributes of tokens: input, filters of lists, and the view of a token under a transform. */

import type { Transform } from '../../domain/access/permissions.js'
import { type Lenient, omitUndefined } from '../../domain/omit-undefined.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { binLength, brandOf, CARD_BRANDS } from '../../domain/token/card-number.js'
import { TOKEN_TYPE_NAMES, TOKEN_TYPES } from '../../domain/token/token-types.js'
import { invalid } from '../../errors.js'
import {
  anyJson,
  audit,
  boolean,
  component,
  count,
  date,
  enumOf,
  object,
  text,
  textMap,
  texts,
  uuid,
} from '../../framework/output.js'
import { filterBy, type Infer } from '../../framework/schema.js'

export const tokenId = { type: 'string', isTokenId: true, description: 'The id of the token.' } as const

/** Types whose data is text; a generic token may have any JSON. */
const TEXT_TYPES = TOKEN_TYPES.filter(({ name, isStructured }) => !isStructured && name !== 'token')

const secret = { type: 'string', sensitive: true } as const
const integer = { type: 'integer' } as const

const contents = {
  data: {
    nullable: true,
    sensitive: true,
    membersWhere: {
      property: 'type',
      values: {
        card: { number: secret, expiration_month: integer, expiration_year: integer, cvc: secret },
        bank: { routing_number: { type: 'string' }, account_number: secret },
      },
    },
    textWhere: { type: TEXT_TYPES.map(({ name }) => name) },
    description: 'The value to store: any JSON.',
  },
  mask: {
    nullable: true,
    description: 'Shown instead of the data: any JSON, whose strings are expressions over the data.',
  },
  containers: {
    type: 'array',
    items: { type: 'string', suggestions: [...new Set(TOKEN_TYPES.flatMap(({ containers }) => containers))] },
    maxItems: 20,
    flag: 'container',
    description: 'A container of the token, such as /pci/high/.',
  },
  search_indexes: {
    type: 'array',
    items: { type: 'string' },
    maxItems: 20,
    flag: 'search-index',
    description: 'An expression whose value is searchable.',
  },
  fingerprint_expression: { type: 'string', description: 'The expression whose value is fingerprinted.' },
  deduplicate_token: {
    type: 'boolean',
    description: 'Return an existing token with the same fingerprint, if any.',
  },
} as const

const metadata = {
  type: 'object',
  additionalProperties: { type: 'string' },
  maxProperties: 50,
  description: 'Data that is not secret.',
} as const

const expires_at = {
  type: 'string',
  duration: 'ahead',
  description: 'When the token expires: M/D/YYYY, M/D/YYYY h:mm:ss AM +hh:mm, or ISO 8601.',
} as const

export const createAttributes = {
  id: { type: 'string', description: 'An id, or an expression for one; default: a random UUID.' },
  type: { type: 'string', enum: TOKEN_TYPE_NAMES, description: `One of ${TOKEN_TYPE_NAMES.join(', ')}.` },
  ...contents,
  metadata,
  expires_at,
} as const

/** The attributes of an update request, in which null removes a value. */
export const updateAttributes = {
  ...contents,
  containers: { ...contents.containers, nullable: false },
  search_indexes: { ...contents.search_indexes, nullable: true },
  fingerprint_expression: { ...contents.fingerprint_expression, nullable: true },
  deduplicate_token: { ...contents.deduplicate_token, nullable: true },
  metadata: {
    type: 'object',
    additionalProperties: { type: 'string', nullable: true },
    maxProperties: 100,
    nullable: true,
    description: 'Metadata to change; null removes a key.',
  },
  expires_at: { ...expires_at, nullable: true, description: `${expires_at.description} null: never.` },
} as const

/** The API's token object, its members in the documented order. */
export const tokenOutput = {
  ...component('Token', ['id', 'type', 'data', 'containers', 'created_at'], {
    id: text,
    tenant_id: uuid,
    type: text,
    'data?': anyJson('The data under the transform of the deciding access rule; absent if redacted.'),
    'mask?': anyJson('Any JSON whose strings are expressions over the data.'),
    fingerprint: text,
    containers: texts,
    'metadata?': textMap,
    ...audit,
    'search_indexes?': texts,
    'fingerprint_expression?': text,
    'deduplicate_token?': { type: 'boolean' },
    'expires_at?': date,
    'card?': {
      description: 'Of a card or card_number, unless its data is redacted.',
      ...object({
        bin: { ...text, description: 'The first 8 digits; 6 for a number of fewer than 16.' },
        last4: text,
        'expiration_month?': count,
        'expiration_year?': count,
        'brand?': enumOf(...CARD_BRANDS),
      }),
    },
    'bank?': {
      description: 'Of a bank, unless its data is redacted.',
      ...object({ routing_number: text, account_number_last4: text }),
    },
    '_extras?': {
      description: 'Only in answers to writing.',
      ...object({ deduplicated: boolean, 'deduplication_behavior?': enumOf('read_existing') }),
    },
  }),
  examples: [
    {
      id: 'b0b5e7ab-0b5f-4d4e-8a64-4a5c8a3f5a0e',
      tenant_id: '0d7f2bb0-52f5-4d6b-9f0d-6a6f7c1e2b3a',
      type: 'card_number',
      data: 'XXXXXXXXXXXX4242',
      mask: '{{ data | reveal_last: 4 }}',
      fingerprint: '9rQ7XkH7cJ3mVq1s8oYzWb2nTfLpRgUdEaKxMvCwBzFy',
      fingerprint_expression: '{{ data }}',
      containers: ['/pci/high/'],
      card: { bin: '42424242', last4: '4242', brand: 'visa' },
      created_by: '3f0c1c9e-8d0e-4c3f-9a8b-6f6f4e1a2d3c',
      created_at: '2030-08-27T02:23:57.000+00:00',
    },
  ],
} as const

export type TokenView = Infer<typeof tokenOutput>

/**
 * The token object under a transform: `reveal` shows the data, `mask` the mask over it (no `data` when there is no
 * mask, `data: null` when the mask yields null), `redact` leaves `data` out. Attributes without a value are absent;
 * `deduplicate_token` is never shown.
 */
export function viewToken(record: TokenRecord, transform: Transform): TokenView {
  const details = transform === 'redact' ? undefined : DETAILS.get(record.type)?.(record.data)
  // One literal: an object made from a list of names costs reads and creations microseconds.
  const view: Record<keyof TokenView, unknown> = {
    id: record.id,
    tenant_id: record.tenant_id,
    type: record.type,
    data: visibleData(record, transform),
    mask: record.mask,
    fingerprint: record.fingerprint,
    containers: record.containers,
    metadata: record.metadata,
    created_by: record.created_by,
    created_at: record.created_at,
    modified_by: record.modified_by,
    modified_at: record.modified_at,
    search_indexes: record.search_indexes,
    fingerprint_expression: record.fingerprint_expression,
    deduplicate_token: undefined,
    expires_at: record.expires_at,
    card: details?.card,
    bank: details?.bank,
    _extras: undefined,
  }
  return omitUndefined(view) as TokenView
}

/** The parts of a type's data that a view shows even if it is masked. */
const DETAILS = new Map<string, (data: unknown) => Pick<TokenView, 'card' | 'bank'>>([
  ['card', (data) => ({ card: describeCard(data as CardData) })],
  ['card_number', (data) => ({ card: describeCard({ number: data as string }) })],
  [
    'bank',
    (data) => {
      const { routing_number, account_number } = data as { routing_number: string; account_number: string }
      return { bank: { routing_number, account_number_last4: account_number.slice(-4) } }
    },
  ],
])

interface CardData {
  number: string
  expiration_month?: number
  expiration_year?: number
}

function describeCard({ number, expiration_month, expiration_year }: CardData): TokenView['card'] & object {
  const bin = number.slice(0, binLength(number.length))
  const rest = omitUndefined({ expiration_month, expiration_year, brand: brandOf(number) })
  return { bin, last4: number.slice(-4), ...rest }
}

/** The token object as answered to a create or update request; `deduplicated`: it is an existing token. */
export function addExtras(view: TokenView, deduplicated: boolean): TokenView {
  const behavior = deduplicated ? ({ deduplication_behavior: 'read_existing' } as const) : {}
  // A copy of an object whose members were set one by one would cost a microsecond.
  return Object.assign(view, { _extras: { deduplicated, ...behavior } })
}

/** The token object without the attributes that require token:read. */
export function redactDuplicate(view: TokenView): TokenView {
  const { data, metadata, fingerprint_expression, search_indexes, mask, card, bank, ...rest } = view
  return rest
}

function visibleData(record: TokenRecord, transform: Transform): unknown {
  if (transform === 'reveal') return record.data
  if (transform === 'redact' || record.mask === undefined) return undefined
  return record.masked ?? null
}

export const tokenFilters = {
  id: filterBy('Only the token with this id.'),
  type: filterBy('Only tokens of this type.'),
  types: filterBy('Only tokens of these types, separated by commas.'),
  container: filterBy('Only tokens in this container; a trailing * matches what follows: /pci/*.'),
  metadata: {
    ...metadata,
    minProperties: 1,
    description: 'Only tokens with this metadata, also as JSON; values are compared case-insensitively.',
  },
} as const

/** @throws CofferError `validation` for an empty type */
export function checkFilters({ types = [] }: Lenient<Pick<TokenFilters, 'types'>>): void {
  if (types.some((text) => text !== undefined && splitTypes(text).includes('')))
    throw invalid('types', 'must be types separated by commas')
}

export type TokenFilters = Infer<{ type: 'object'; properties: typeof tokenFilters }>

/** The types of the filter; undefined if there is none. */
export function wantedTypes({ type, types }: TokenFilters): string[] | undefined {
  return type === undefined && types === undefined
    ? undefined
    : [...(type ?? []), ...(types ?? []).flatMap(splitTypes)]
}

function splitTypes(text: string): string[] {
  return text.split(',').map((type) => type.trim())
}
