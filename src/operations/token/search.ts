/**
 * Lists and searches tokens, by query and by cursor. Translates the terms of queries into conditions on the
 * indexes of tokens.
 */
import { isContainerPath } from '../../domain/access/container.js'
import type { Permission } from '../../domain/access/permissions.js'
import { addError, refuseErrors } from '../../domain/property-errors.js'
import { metadataLookups, searchField } from '../../domain/records/index-fields.js'
import {
  MAX_QUERY_LENGTH,
  METADATA,
  parseJoinedTerms,
  parseSearchQuery,
  type SearchField,
  type SearchQuery,
} from '../../domain/token/search-query.js'
import { isShortId, SHORT_LENGTH } from '../../domain/token/short-id.js'
import { TOKEN_TYPE_NAMES } from '../../domain/token/token-types.js'
import { CofferError, noRevealError, type PropertyErrors } from '../../errors.js'
import { decideBy } from '../../framework/caller/caller.js'
import type { Context, Session } from '../../framework/context.js'
import { requires } from '../../framework/declaration.js'
import { readList, readListByCursor } from '../../framework/list.js'
import { list } from '../../framework/operation.js'
import { object, text as plainText } from '../../framework/output.js'
import { cursorInput, cursorOutput, listOutput, pageInput } from '../../framework/page.js'
import { closedInput, inputSchema, onlyOf } from '../../framework/schema.js'
import type { Condition } from '../../storage/store.js'
import { inContainers, listGranted, whereAllowed } from './token-access.js'
import { readDeclaration, tokenOutput } from './token-attributes.js'
import { tokenFilters } from './token-filters.js'

const text = { type: 'string', minLength: 1 } as const
const query = {
  type: 'string',
  maxLength: MAX_QUERY_LENGTH,
  description: 'The query. Without a query, every token matches.',
} as const

export const searchTokens = list({
  ...readDeclaration,
  name: 'token search',
  summary: 'Find tokens by their search indexes, metadata and other attributes.',
  details: [
    'Terms are field:value, combined with AND, OR, NOT (also ! and -) and parentheses; quote values with spaces.',
    'Fields: id (for a UUID also its first 8 characters and *), type, data (a search index), fingerprint, container (a',
    'trailing * matches what follows), metadata.<key>, created_by, modified_by; created_at and modified_at as',
    '[a TO b], {a TO b} or a day (UTC). With the setting search.masked_data false, data and fingerprint match only',
    'tokens whose data you may see in plaintext.',
  ].join('\n'),
  access: requires('token:search'),
  route: 'POST /tokens/search',
  input: inputSchema([], { query, ...pageInput(100) }),
  output: listOutput(tokenOutput),
  cli: { positionals: ['query'] },
  examples: [
    `coffer token search 'type:card'`,
    `coffer token search 'data:6789 AND NOT type:card'`,
    `coffer token search --query 'container:/pii/* AND created_at:[2026-01-01 TO *]'`,
  ],
  check: ({ query = '' }) => parseSearchQuery(query),
  run: (session, input, query) => {
    const toConditions = async (context: Context) => (query ? [await toCondition(context, query)] : [])
    return readList(session, listGranted(session.caller, toConditions, ['token:search']), input)
  },
})

/** The operation returns only ids and no data, so the access is not logged. */
export const findTokens = list({
  name: 'token find',
  summary: 'Find tokens by id, or by the first 8 characters of the id.',
  access: requires('token:read'),
  input: closedInput(['id'], { id: text }),
  output: listOutput(object({ id: plainText })),
  cli: { isInternal: true },
  examples: [],
  run: (session, { id }) => {
    const or: Condition[] = [
      { ids: [id] },
      { field: 'short_id', value: id.slice(0, SHORT_LENGTH).toLowerCase() },
    ]
    const { log: _, ...listing } = listGranted(session.caller, async () => [{ or }])
    return readList(session, { ...listing, show: (_, { id }) => ({ id }) }, { size: 100 })
  },
})

export const listTokensByCursor = list({
  ...readDeclaration,
  name: 'token list-after',
  summary: 'List tokens by cursor, newest first. Every page takes the same time. Totals are not counted.',
  details: 'Give at most one of type, fingerprint and metadata. Each can be combined with container.',
  access: requires('token:read'),
  route: 'GET /v2/tokens',
  input: inputSchema([], {
    type: { ...text, ...onlyOf(TOKEN_TYPE_NAMES), description: 'Only tokens of this type.' },
    container: { ...text, description: 'Only tokens in this container or below it.' },
    fingerprint: { ...text, description: 'Only tokens with this fingerprint.' },
    metadata: {
      ...tokenFilters.metadata,
      maxProperties: 1,
      description: 'Only tokens with this metadata, also as JSON; the value is compared case-sensitively.',
    },
    ...cursorInput,
  }),
  output: cursorOutput(tokenOutput),
  cli: { form: { command: 'token list', flag: 'after' } },
  examples: ['coffer token list --after', 'coffer token list --after --container /pci/ --type card --all'],
  check({ type, container, fingerprint, metadata = {} }) {
    const entries = Object.entries(metadata).map(([key, value]) => [METADATA + key, value] as const)
    const given = [...Object.entries({ container, type, fingerprint }), ...entries]
    const fields = given.flatMap(([field, value]) => (value === undefined ? [] : { field, value }))
    return checkFields(fields, (field) => (field.startsWith(METADATA) ? 'metadata' : field))
  },
  run: (session, input, fields) => listByCursor(session, 'token:read', input, fields),
})

export const searchTokensByCursor = list({
  ...readDeclaration,
  name: 'token search-after',
  summary: 'Find tokens by cursor, newest first. Every page takes the same time. Totals are not counted.',
  details:
    'Terms are field:value, joined by AND: container (and below), and at most one of type, fingerprint, data (a search\n' +
    'index) and metadata.<key>, whose value is compared case-sensitively.',
  access: requires('token:search'),
  route: 'POST /v2/tokens/search',
  input: inputSchema([], { query, ...cursorInput }),
  output: cursorOutput(tokenOutput),
  cli: { form: { command: 'token search', flag: 'after' } },
  examples: [`coffer token search --after --query 'container:/pii/ AND data:6789'`],
  check({ query = '' }) {
    const fields = ['container', 'type', 'fingerprint', 'metadata', 'data']
    const terms = parseJoinedTerms(query, fields, BY_PAGE)
    return checkFields(terms, () => 'query', BY_PAGE)
  },
  run: (session, input, fields) => listByCursor(session, 'token:search', input, fields),
})

async function toCondition(context: Context, query: SearchQuery): Promise<Condition> {
  if (query.kind === 'equals') return toLookup(context, query)
  if (query.kind === 'range') {
    const { kind: _, ...condition } = query
    return condition
  }
  if (query.kind === 'not') return { not: await toCondition(context, query.part) }
  const parts: Condition[] = []
  for (const part of query.parts) parts.push(await toCondition(context, part))
  return query.kind === 'and' ? { and: parts } : { or: parts }
}

async function toLookup(context: Context, { field, value }: SearchField): Promise<Condition> {
  if (field === 'id') {
    const short = value.slice(0, -1).toLowerCase()
    const isShort = value.endsWith('*') && isShortId(short) && !short.includes('-')
    return isShort ? { field: 'short_id', value: short } : { ids: [value] }
  }
  if (field === 'data') return whereRevealed(context, searchField(value))
  if (field === 'fingerprint') return whereRevealed(context, { field, value })
  if (field.startsWith(METADATA)) return { or: metadataLookups(field.slice(METADATA.length), value) }
  return field === 'container' ? inContainers(context, [value]) : { field, value }
}

/**
 * If `search.masked_data` is false, restricts `condition` to tokens whose plaintext the caller is allowed to see.
 * Without this restriction, the results of a search could disclose masked data.
 */
async function whereRevealed(context: Context, condition: Condition): Promise<Condition> {
  if (context.caller.isNoReveal)
    throw noRevealError('the search terms data and fingerprint, which confirm guesses')
  const { grants: [first, ...others] = [], dependsOnId } = context.caller
  if (first === undefined || (await context.setting('search.masked_data'))) return condition
  if (dependsOnId === true) return { or: [] }
  // `decideBy` is used instead of `caller.transform`, because `caller.transform` would add these decisions to
  // an explanation.
  const { transform } = decideBy(first, ...others)
  const isRevealed = (containers: readonly string[]) => transform('token:read', { containers }) === 'reveal'
  return { and: [condition, await whereAllowed(context, ['token:read'], isRevealed)] }
}

/** The end of the error message about a query that the search by cursor does not support. */
const BY_PAGE = '; POST /tokens/search takes more'

/**
 * Sorts the fields, so that equal filters give equal cursors. `pathOf` returns the property of the input to which an
 * error about a field belongs. `advice`: the end of the error message about fields that cannot be combined.
 */
function checkFields(
  fields: readonly SearchField[],
  pathOf: (field: string) => string,
  advice = '',
): SearchField[] {
  const errors: PropertyErrors = {}
  const containers = fields.filter(({ field }) => field === 'container')
  const [first, ...others] = fields.filter(({ field }) => field !== 'container')
  if (containers.some(({ value }) => !isContainerPath(value))) {
    const message = 'container must be a path such as /pci/, which includes what is below it'
    addError(errors, pathOf('container'), message)
  }
  if (containers.length > 1) addError(errors, 'query', 'may name a container only once')
  for (const { field } of others) {
    const named = pathOf(field) === 'query' ? `${field} ` : ''
    addError(errors, pathOf(field), `${named}cannot be combined with ${first!.field}${advice}`)
  }
  refuseErrors(errors)
  return fields.map(({ field, value }) => ({ field, value })).sort((a, b) => (a.field < b.field ? -1 : 1))
}

function listByCursor(
  session: Session,
  permission: Permission,
  page: { start?: string; size?: number },
  fields: readonly SearchField[],
) {
  const toConditions = async (context: Context) => {
    const conditions: Condition[] = []
    for (const field of fields) conditions.push(await toExactLookup(context, permission, field))
    return conditions
  }
  const listing = listGranted(session.caller, toConditions, [permission])
  return readListByCursor(session, { ...listing, about: JSON.stringify([permission, fields]) }, page)
}

async function toExactLookup(context: Context, permission: Permission, { field, value }: SearchField) {
  if (field.startsWith(METADATA)) return { or: metadataLookups(field.slice(METADATA.length), value, true) }
  if (field !== 'container') return toLookup(context, { field, value })
  const { transform, dependsOnId } = context.caller
  if (dependsOnId === true || transform(permission, { containers: [value] }) !== undefined)
    return { field: 'ancestor', value }
  throw new CofferError('forbidden', `${permission} is not granted on the container ${value}.`)
}
