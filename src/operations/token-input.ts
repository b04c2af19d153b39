/** What callers say about tokens: the pieces of input schemas that several operations share. */
import { TOKEN_TYPE_NAMES } from '../domain/token-types.js'

const MOST_FILTER_VALUES = 100

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
  containers: { ...contents.containers, nullable: true },
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
  id: {
    type: 'array',
    items: { type: 'string' },
    maxItems: MOST_FILTER_VALUES,
    description: 'Only the token with this id.',
  },
  type: {
    type: 'array',
    items: { type: 'string' },
    maxItems: MOST_FILTER_VALUES,
    description: 'Only tokens of this type.',
  },
  metadata: { ...metadata, description: 'Only tokens with this metadata; case does not count in the value.' },
} as const
