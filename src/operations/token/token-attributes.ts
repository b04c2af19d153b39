import { stricterTransform, type Transform } from '../../domain/access/permissions.js'
import { FUNDINGS } from '../../domain/enrichment/card-enrichment.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { EntityType } from '../../domain/records/log-record.js'
import type { IntentRecord, TokenRecord } from '../../domain/records/records.js'
import { binLength, brandOf, CARD_BRANDS } from '../../domain/token/card-number.js'
import { isScaRequired } from '../../domain/token/test-cards.js'
import { TOKEN_TYPE_NAMES, TOKEN_TYPES } from '../../domain/token/token-types.js'
import type { Context } from '../../framework/context.js'
import { absent } from '../../framework/no-reveal.js'
import * as output from '../../framework/output.js'
import { type Infer, patchOf, type Schema } from '../../framework/schema.js'

const { anyJson, boolean, count, date, enumOf, object, text, textMap, texts, uuid } = output

export const CREATED = { operation: 'create', message: 'Token created' } as const
export const UPDATED = { operation: 'update', message: 'Token updated' } as const
export const READ = { operation: 'read', message: 'Token retrieved' } as const
export const readDeclaration = { isExplainable: true, plaintext: 'masked', log: READ } as const

/** How log messages name the kinds of records that are neither tokens nor token intents. */
const USED_NAMES = {
  network_token: 'Network token',
  google_pay: 'Google Pay',
  apple_pay: 'Apple Pay',
} as const satisfies Partial<Record<EntityType, string>>

/**
 * A record whose data is used as the data of a token. `entity`: the entity type in the log, if the record is neither a
 * token nor a token intent.
 */
export type UsedRecord = TokenRecord & { entity?: keyof typeof USED_NAMES | undefined }
type Named = Pick<UsedRecord, 'is_intent' | 'entity'>

export interface FoundRecord {
  /** Access rules decide about this record. The data of this record is secret. */
  record: UsedRecord
  output: Schema
  view(shown: Transform): object
  /** The reason why the record cannot be used, for example because it is a suspended network token. */
  fault?: string
}

export function entityTypeOf({ type, is_intent, entity }: Named & Pick<UsedRecord, 'type'>): EntityType {
  if (entity !== undefined) return entity
  if (is_intent) return 'token_intent'
  return type === 'card' || type === 'bank' ? type : 'token'
}

/** If the record is no token, replaces the word "Token" in the message by the name of the kind of record. */
export function messageAbout({ is_intent, entity }: Named, message: string): string {
  if (entity !== undefined) return message.replace('Token', USED_NAMES[entity])
  return is_intent ? message.replace('Token', 'Token intent') : message
}

export const tokenId = { type: 'string', refersTo: 'token', description: 'The id of the token.' } as const

/** The types whose data is text. The data of a generic token can be any JSON. */
const textTypes = TOKEN_TYPES.filter(({ name, isStructured }) => !isStructured && name !== 'token')

const secret = { type: 'string', sensitive: true } as const
const integer = { type: 'integer' } as const

/** The attributes that create and patch declare in the same way. `metadata` and `expires_at` differ in a patch. */
const commonAttributes = {
  data: {
    nullable: true,
    sensitive: true,
    cli: {
      textWhere: { type: textTypes.map(({ name }) => name) },
      membersWhere: {
        property: 'type',
        values: {
          card: { number: secret, expiration_month: integer, expiration_year: integer, cvc: secret },
          bank: { routing_number: { type: 'string' }, account_number: secret },
        },
      },
    },
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
  deduplicate_token: { type: 'boolean', description: 'Return an existing token with the same fingerprint.' },
} as const

export const metadata = {
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

export const valueAttributes = {
  type: { type: 'string', enum: TOKEN_TYPE_NAMES, description: `One of ${TOKEN_TYPE_NAMES.join(', ')}.` },
  data: commonAttributes.data,
} as const

export const encrypted = {
  type: 'string',
  description: 'Instead of data: a JWE of the data, for a key of coffer key create.',
} as const

export const createAttributes = {
  id: { type: 'string', description: 'An id, or an expression for one; default: a random UUID.' },
  type: { ...valueAttributes.type, requiredUnless: ['token_intent_id'] },
  ...commonAttributes,
  data: { ...commonAttributes.data, requiredUnless: ['token_intent_id', 'encrypted'] },
  token_intent_id: {
    type: 'string',
    description: 'The token gets the type and data of this token intent. The token intent is then deleted.',
  },
  metadata,
  expires_at,
  encrypted,
} as const

export const updateAttributes = patchOf(
  {
    ...commonAttributes,
    metadata: { ...metadata, maxProperties: 100, description: 'Metadata to change; null removes a key.' },
    expires_at: { ...expires_at, description: `${expires_at.description} null: never.` },
  } as const,
  ['containers'],
)

const ENRICHED =
  'Only for published test cards, if the setting enrichments.fake was true when the card was stored.'

const networkTokenIds = {
  ...texts,
  inNoReveal: absent,
  description: 'The network token of the card. Absent in answers to requests that write.',
} as const

const columns = ['id', 'type', 'data', 'containers', 'created_at', 'expires_at']
export const tokenOutput = output.component('Token', columns, {
  id: text,
  tenant_id: uuid,
  type: text,
  'data?': anyJson('The data as the access rule shows it. Absent if the data is redacted.'),
  'mask?': anyJson('Any JSON whose strings are expressions over the data.'),
  fingerprint: { ...text, inNoReveal: absent },
  containers: texts,
  'metadata?': textMap,
  'privacy?': {
    description: 'Derived from the first container and the mask.',
    ...object({ classification: text, impact_level: text, restriction_policy: enumOf('mask', 'redact') }),
  },
  ...output.audit,
  'search_indexes?': texts,
  'fingerprint_expression?': text,
  'deduplicate_token?': boolean,
  'expires_at?': date,
  'card?': {
    description: 'Only for a card or card_number whose data is not redacted.',
    ...object({
      bin: {
        ...text,
        description: 'The first 8 digits, or the first 6 of a number with fewer than 16 digits.',
      },
      last4: text,
      'expiration_month?': count,
      'expiration_year?': count,
      'brand?': enumOf(...CARD_BRANDS),
      'funding?': { ...enumOf(...FUNDINGS), description: ENRICHED },
      'authentication?': {
        ...enumOf('sca_required'),
        description: 'Only for documented test cards of 3-D Secure.',
      },
      'issuer_country?': {
        ...object({ alpha2: text, numeric: text, name: text }),
        description: ENRICHED,
      },
    }),
  },
  'bank?': {
    description: 'Only for a token of the type bank, if its data is not redacted.',
    ...object({ routing_number: text, account_number_last4: text }),
  },
  '_extras?': {
    description: 'In answers to requests that write, and for a card with a network token.',
    ...object({
      'deduplicated?': boolean,
      'deduplication_behavior?': enumOf('read_existing', 'update_existing'),
      'decrypted_payload?': { ...boolean, description: 'True if the data was given encrypted.' },
      'network_token_ids?': networkTokenIds,
    }),
  },
})

export type TokenView = Infer<typeof tokenOutput>

/**
 * The columns of exports and seeds: the attributes that `create` accepts. Programs rely on the order of the columns,
 * so add new attributes at the end.
 */
export const exportedAttributes = Object.keys(tokenOutput.properties).filter(
  (name) => name in createAttributes,
)

/**
 * Returns the token as the caller sees it. `data` is absent if the data is redacted, or if the data is masked and the
 * token has no mask. `data` is null if the result of the mask is null.
 */
export function viewToken(record: TokenRecord, transform: Transform) {
  const { card, bank } = transform === 'redact' ? NO_DETAILS : describeData(record)
  // One object literal is some microseconds faster than an object that is built from a list of names.
  const view: Record<keyof TokenView, unknown> = {
    id: record.id,
    tenant_id: record.tenant_id,
    type: record.type,
    data: visibleData(record, transform),
    mask: record.mask,
    fingerprint: record.fingerprint,
    containers: record.containers,
    metadata: record.metadata,
    privacy: describePrivacy(record),
    created_by: record.created_by,
    created_at: record.created_at,
    modified_by: record.modified_by,
    modified_at: record.modified_at,
    search_indexes: record.search_indexes,
    fingerprint_expression: record.fingerprint_expression,
    deduplicate_token: undefined,
    expires_at: record.expires_at,
    card,
    bank,
    _extras: undefined,
  }
  return omitUndefined(view) as TokenView
}

const PRIVACY = /^\/(general|bank|pci|pii)\/(low|moderate|high)\/$/

/** For clients that do not know containers. Returns undefined if the first container has no equivalent in `privacy`. */
function describePrivacy({ containers, mask }: TokenRecord): TokenView['privacy'] {
  const [, classification, impact_level] = PRIVACY.exec(containers[0]!) ?? []
  const restriction_policy = mask === undefined ? 'redact' : 'mask'
  return classification && impact_level ? { classification, impact_level, restriction_policy } : undefined
}

const NO_DETAILS: Pick<TokenView, 'card' | 'bank'> = {}

/** The answer to a write contains masked data, even if the access rule allows the caller to see the plaintext. */
export function viewWritten(_: Context, record: TokenRecord, transform: Transform): TokenView {
  const view = viewToken(record, stricterTransform('mask', transform))
  return addExtras(view, { deduplicated: false })
}

/** Adds `_extras` to `view` itself, because a copy would cost a microsecond. */
export function addExtras(view: TokenView, _extras: NonNullable<TokenView['_extras']>): TokenView {
  return Object.assign(view, { _extras })
}

function describeData({ type, data, card_details }: TokenRecord): Pick<TokenView, 'card' | 'bank'> {
  if (type === 'card_number') return { card: describeCard({ number: data as string }, card_details) }
  if (type === 'card') return { card: describeCard(data as StoredCard, card_details) }
  if (type !== 'bank') return NO_DETAILS
  const { routing_number, account_number } = data as { routing_number: string; account_number: string }
  return { bank: { routing_number, account_number_last4: account_number.slice(-4) } }
}

interface StoredCard {
  number: string
  expiration_month?: number
  expiration_year?: number
}

function describeCard(card: StoredCard, details: TokenRecord['card_details']) {
  const { number, expiration_month, expiration_year } = card
  const bin = number.slice(0, binLength(number.length))
  const authentication = isScaRequired(number) ? ('sca_required' as const) : undefined
  const { funding, issuer_country } = details ?? {}
  const brand = brandOf(number)
  const rest = { expiration_month, expiration_year, brand, funding, authentication, issuer_country }
  return { bin, last4: number.slice(-4), ...omitUndefined(rest) }
}

function visibleData(record: TokenRecord, transform: Transform): unknown {
  if (transform === 'reveal') return record.data
  if (transform === 'redact' || record.mask === undefined) return undefined
  return record.masked ?? null
}

const { card, bank } = tokenOutput.properties

export const tspDetails = object({
  tsp: text,
  auth_method: text,
  message_id: text,
  eci_indicator: text,
  assurance_details: object({ account_verified: boolean, card_holder_authenticated: boolean }),
})

export const intentOutput = output.component('TokenIntent', ['id', 'type', 'created_at', 'expires_at'], {
  id: uuid,
  tenant_id: uuid,
  type: text,
  'card?': card,
  'bank?': bank,
  fingerprint: { ...text, inNoReveal: absent },
  created_by: uuid,
  created_at: date,
  expires_at: date,
  '_extras?': object({
    'network_token_ids?': networkTokenIds,
    'tsp_details?': { description: 'Only for a card that came from a wallet.', ...tspDetails },
  }),
})

type IntentView = Infer<typeof intentOutput>

/** The view does not contain data, not even masked data. */
export function viewIntent(record: IntentRecord): IntentView {
  const { data: _, ...view } = viewIntentData(record, 'mask')
  return view
}

/** Expressions refer to this view, which contains the data of the intent. */
export function viewIntentData(
  record: TokenRecord & Pick<IntentRecord, 'tsp_details'>,
  transform: Transform,
) {
  const { tsp_details } = record
  const view = viewToken(record, transform)
  const { id, tenant_id, type, data, card, bank, fingerprint, created_by, created_at } = view
  const optional = omitUndefined({ data, card, bank })
  return {
    id,
    tenant_id,
    type,
    ...optional,
    fingerprint,
    created_by,
    created_at,
    expires_at: record.expires_at!,
    ...omitUndefined({ _extras: tsp_details && { tsp_details } }),
  }
}
