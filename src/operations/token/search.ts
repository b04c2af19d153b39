/** Token search: translates a query into a condition on the indexes of tokens. */
import { parseLogDate } from '../../domain/dates.js'
import { collect, refuseErrors } from '../../domain/property-errors.js'
import { metadataLookups, searchField } from '../../domain/records/index-fields.js'
import { settingOf } from '../../domain/settings.js'
import {
  MAX_QUERY_LENGTH,
  parseSearchQuery,
  type RangeTerm,
  type SearchField,
  type SearchQuery,
  type SearchTerm,
} from '../../domain/token/search-query.js'
import { type PropertyErrors, validationError } from '../../errors.js'
import { decideBy } from '../../framework/caller/caller.js'
import { type Context, operation } from '../../framework/operation.js'
import { listOutput, pageInput } from '../../framework/page.js'
import { inputSchema } from '../../framework/schema.js'
import type { Condition } from '../../storage/store.js'
import { inContainer, listTokensWhere, whereContainers } from './token-access.js'
import { tokenOutput } from './token-attributes.js'

const DAY_MS = 24 * 60 * 60 * 1000
const METADATA = 'metadata.'

export const query = {
  type: 'string',
  maxLength: MAX_QUERY_LENGTH,
  description: 'The query; without one, every token matches.',
} as const

export const searchTokens = operation({
  name: 'token search',
  summary: 'Find tokens by their search indexes, metadata and other attributes.',
  details: [
    'Terms are field:value, combined with AND, OR, NOT (also ! and -) and parentheses; quote values with spaces.',
    'Fields: id, type, data (a search index), fingerprint, container (a trailing * matches what follows),',
    'metadata.<key>, created_by, modified_by; created_at and modified_at as [a TO b], {a TO b} or a day. A date without',
    'a time is the whole day, in UTC. With the setting search.masked_data false, data and fingerprint match only',
    'tokens whose data you may see in the clear.',
  ].join('\n'),
  permissions: ['token:search'],
  route: 'POST /tokens/search',
  input: inputSchema([], {
    query,
    ...pageInput(100),
  }),
  positionals: ['query'],
  output: listOutput(tokenOutput),
  isExplainable: true,
  isRevealable: true,
  examples: [
    `coffer token search 'type:card'`,
    `coffer token search 'data:6789 AND NOT type:card'`,
    `coffer token search --query 'container:/pii/* AND created_at:[2026-01-01 TO *]'`,
  ],
  log: { operation: 'read', message: 'Token retrieved' },
  check: ({ query = '' }) => checkQuery(query),
  async runDetached(session, input, query) {
    const toConditions = async (context: Context) =>
      query === undefined ? [] : [await toCondition(context, query)]
    return listTokensWhere(session, input, toConditions, ['token:search'])
  },
})

/** Parses the query and its dates. @throws CofferError `validation` */
function checkQuery(text: string): SearchQuery | undefined {
  const query = parseSearchQuery(text)
  const errors: PropertyErrors = {}
  for (const term of query === undefined ? [] : listTerms(query))
    if (term.kind === 'range') collect(errors, 'query', () => toRange(term))
  refuseErrors(errors)
  return query
}

function listTerms(query: SearchQuery): SearchTerm[] {
  if ('parts' in query) return query.parts.flatMap(listTerms)
  return query.kind === 'not' ? listTerms(query.part) : [query]
}

async function toCondition(context: Context, query: SearchQuery): Promise<Condition> {
  if (query.kind === 'equals') return toLookup(context, query)
  if (query.kind === 'range') return toRange(query)
  if (query.kind === 'not') return { not: await toCondition(context, query.part) }
  const parts: Condition[] = []
  for (const part of query.parts) parts.push(await toCondition(context, part))
  return query.kind === 'and' ? { and: parts } : { or: parts }
}

export async function toLookup(context: Context, { field, value }: SearchField): Promise<Condition> {
  if (field === 'id') return { ids: [value] }
  if (field === 'data') return whereRevealed(context, searchField(value))
  if (field === 'fingerprint') return whereRevealed(context, { field, value })
  if (field.startsWith(METADATA)) return { or: metadataLookups(field.slice(METADATA.length), value) }
  return field === 'container' ? inContainer(context, value) : { field, value }
}

/**
 * If search.masked_data is false, restricts `condition` to tokens whose data is revealed to the caller. Otherwise a
 * search would disclose masked data, also by negation. For a caller whose rules depend on the id of a token it matches
 * nothing, because containers do not tell which data is revealed.
 */
async function whereRevealed(context: Context, condition: Condition): Promise<Condition> {
  const { values = {} } = (await context.store.get('settings', 0, 'vault')) ?? {}
  const { grants: [first, ...others] = [], dependsOnId } = context.caller
  if (settingOf(values, 'search.masked_data') || first === undefined) return condition
  if (dependsOnId === true) return { or: [] }
  // The caller itself would note these decisions in an explanation.
  const { transform } = decideBy(first, ...others)
  const isRevealed = (containers: readonly string[]) => transform('token:read', { containers }) === 'reveal'
  return { and: [condition, await whereContainers(context, isRevealed)] }
}

function toRange({ field, from, to, isInclusive, column }: RangeTerm): Condition {
  const range = field === 'created_at' ? 'created' : 'modified'
  const start = from === undefined ? undefined : readDate(from, column)
  const end = to === undefined ? undefined : readDate(to, column)
  return {
    range,
    ...(start === undefined ? {} : { from: isInclusive ? start.first : start.last + 1 }),
    ...(end === undefined ? {} : { below: isInclusive ? end.last + 1 : end.first }),
  }
}

/** The first and last ms of a day; equal for a date with a time. */
function readDate(text: string, column: number): { first: number; last: number } {
  try {
    const first = parseLogDate(text)
    const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
    return { first, last: isDay ? first + DAY_MS - 1 : first }
  } catch (cause) {
    const message = `needs ISO 8601 dates such as 2030-01-31 (column ${column})`
    throw validationError(`query: ${message}`, { cause, errors: { query: [message] } })
  }
}
