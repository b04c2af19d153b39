/** What callers say about tokens: the pieces of input schemas that several operations share. */
import type { Lenient } from '../../domain/omit-undefined.js'
import { TOKEN_TYPE_NAMES } from '../../domain/token/token-types.js'
import { invalid } from '../../errors.js'
import { filterBy } from '../../framework/schema.js'

/** What a terminal's table shows of tokens. */
export const TOKEN_COLUMNS = ['id', 'type', 'data', 'containers', 'created_at']

/** A token's id in a path. */
export const tokenId = { type: 'string', description: 'The id of the token.' } as const

const contents = {
  data: { nullable: true, sensitive: true, description: 'The value to keep: any JSON.' },
  mask: {
    nullable: true,
    description: 'What is shown instead of the data: any JSON, its strings expressions over data.',
  },
  containers: {
    type: 'array',
    items: { type: 'string' },
    maxItems: 20,
    flag: 'container',
    description: 'Where the token belongs, such as /pci/high/.',
  },
  search_indexes: {
    type: 'array',
    items: { type: 'string' },
    maxItems: 20,
    flag: 'search-index',
    description: 'An expression whose value the token can be searched by.',
  },
  fingerprint_expression: { type: 'string', description: 'The expression whose value is fingerprinted.' },
  deduplicate_token: {
    type: 'boolean',
    description: 'Return the token that has this fingerprint already, if there is one.',
  },
} as const

const metadata = {
  type: 'object',
  additionalProperties: { type: 'string' },
  maxProperties: 50,
  description: 'Notes that are not secret.',
} as const

const expires_at = {
  type: 'string',
  description: 'When it is deleted: M/D/YYYY, M/D/YYYY h:mm:ss AM +hh:mm, or ISO 8601.',
} as const

/** The attributes of a create request. */
export const createAttributes = {
  id: { type: 'string', description: 'An id of your own, or an expression for one; else a UUID is drawn.' },
  type: { type: 'string', enum: TOKEN_TYPE_NAMES, description: `One of ${TOKEN_TYPE_NAMES.join(', ')}.` },
  ...contents,
  metadata,
  expires_at,
} as const

/** The attributes of an update request: null means something in each that may be null. */
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
    description: 'Notes to change; null removes one.',
  },
  expires_at: { ...expires_at, nullable: true, description: `${expires_at.description} null: never.` },
} as const

/** Filters of a list of tokens. */
export const tokenFilters = {
  id: filterBy('Only the token with this id.'),
  type: filterBy('Only tokens of this type.'),
  types: filterBy('Only tokens of these types, separated by commas.'),
  metadata: {
    ...metadata,
    minProperties: 1,
    description: 'Only tokens with this metadata, also as JSON; case does not count in the value.',
  },
} as const

/** @throws CofferError `validation` for types with nothing between two commas. */
export function checkFilters({ types = [] }: Lenient<Pick<TokenFilters, 'types'>>): void {
  if (types.some((text) => text !== undefined && splitTypes(text).includes('')))
    throw invalid('types', 'must be types separated by commas')
}

export interface TokenFilters {
  id?: string[]
  type?: string[]
  types?: string[]
  metadata?: Record<string, string>
}

/** Every type that a list is filtered by; undefined where it is by none. */
export function wantedTypes({ type, types }: TokenFilters): string[] | undefined {
  return type === undefined && types === undefined
    ? undefined
    : [...(type ?? []), ...(types ?? []).flatMap(splitTypes)]
}

function splitTypes(text: string): string[] {
  return text.split(',').map((type) => type.trim())
}
