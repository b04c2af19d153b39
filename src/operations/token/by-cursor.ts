/** Lists and searches of tokens by cursor: pages without totals, at the same cost however many tokens there are. */
import { isContainerPath } from '../../domain/access/container.js'
import type { Permission } from '../../domain/access/permissions.js'
import { addError, refuseErrors } from '../../domain/property-errors.js'
import { metadataLookups } from '../../domain/records/index-fields.js'
import { parseJoinedTerms, type SearchField } from '../../domain/token/search-query.js'
import { CofferError, type PropertyErrors } from '../../errors.js'
import { readListByCursor } from '../../framework/list.js'
import { type Context, operation, type Session } from '../../framework/operation.js'
import { type CursorPage, cursorInput, cursorOutput } from '../../framework/page.js'
import { inputSchema } from '../../framework/schema.js'
import type { Condition } from '../../storage/store.js'
import { query, toLookup } from './search.js'
import { matchesId, SHOWN_TOKENS, whereGranted } from './token-access.js'
import { type TokenView, tokenFilters, tokenOutput } from './token-attributes.js'

const METADATA = 'metadata.'
const text = { type: 'string', minLength: 1 } as const

export const listTokensByCursor = operation({
  name: 'token list-after',
  form: { command: 'token list', flag: 'after' },
  summary: 'List tokens by cursor, newest first: flat in cost, without totals.',
  details: 'At most one of type, fingerprint and metadata; each may be together with container.',
  permissions: ['token:read'],
  route: 'GET /v2/tokens',
  input: inputSchema([], {
    type: { ...text, description: 'Only tokens of this type.' },
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
  isExplainable: true,
  isRevealable: true,
  examples: ['coffer token list --after', 'coffer token list --after --container /pci/ --type card --all'],
  log: { operation: 'read', message: 'Token retrieved' },
  check({ type, container, fingerprint, metadata = {} }) {
    const notes = Object.entries(metadata).map(([key, value]) => [METADATA + key, value] as const)
    const given = Object.entries({ container, type, fingerprint, ...Object.fromEntries(notes) })
    const fields = given.flatMap(([field, value]) => (value === undefined ? [] : { field, value }))
    return checkFields(fields, (field) => (field.startsWith(METADATA) ? 'metadata' : field))
  },
  runDetached: (session, input, fields) => listByCursor(session, 'token:read', input, fields),
})

export const searchTokensByCursor = operation({
  name: 'token search-after',
  form: { command: 'token search', flag: 'after' },
  summary: 'Find tokens by cursor, newest first: flat in cost, without totals.',
  details:
    'Terms are field:value, joined by AND: container (and below), and at most one of type, fingerprint, data (a search\n' +
    'index) and metadata.<key>, whose value is compared case-sensitively.',
  permissions: ['token:search'],
  route: 'POST /v2/tokens/search',
  input: inputSchema([], {
    query,
    ...cursorInput,
  }),
  output: cursorOutput(tokenOutput),
  isExplainable: true,
  isRevealable: true,
  examples: [`coffer token search --after --query 'container:/pii/ AND data:6789'`],
  log: { operation: 'read', message: 'Token retrieved' },
  check({ query = '' }) {
    const fields = ['container', 'type', 'fingerprint', 'metadata', 'data']
    return checkFields(parseJoinedTerms(query, fields), () => 'query')
  },
  runDetached: (session, input, fields) => listByCursor(session, 'token:search', input, fields),
})

/** Sorts the fields, so that a cursor fits equal filters. `pathOf`: the property under which an error of a field is. */
function checkFields(fields: readonly SearchField[], pathOf: (field: string) => string): SearchField[] {
  const errors: PropertyErrors = {}
  for (const { field, value } of fields)
    if (field === 'container' && !isContainerPath(value))
      addError(
        errors,
        pathOf(field),
        'container must be a path such as /pci/, which stands for what is below it too',
      )
  const others = fields.filter(({ field }) => field !== 'container')
  if (fields.length - others.length > 1) addError(errors, 'query', 'may name a container only once')
  for (const { field } of others.slice(1))
    addError(errors, pathOf(field), `cannot be together with ${others[0]!.field}`)
  refuseErrors(errors)
  return fields.map(({ field, value }) => ({ field, value })).sort((a, b) => (a.field < b.field ? -1 : 1))
}

/** @throws CofferError `forbidden` for a container on which the caller lacks `permission` */
function listByCursor(
  session: Session,
  permission: Permission,
  page: { start?: string; size?: number },
  fields: readonly SearchField[],
): Promise<CursorPage<TokenView>> {
  const listing = {
    ...SHOWN_TOKENS,
    about: JSON.stringify([permission, fields]),
    async where(context: Context) {
      const conditions: Condition[] = []
      for (const field of fields) conditions.push(await toCondition(context, permission, field))
      return whereGranted(context, conditions, [permission])
    },
    matches: matchesId(session.caller, [permission]),
  }
  return readListByCursor(session, listing, page)
}

async function toCondition(context: Context, permission: Permission, { field, value }: SearchField) {
  if (field.startsWith(METADATA)) return { or: metadataLookups(field.slice(METADATA.length), value, true) }
  if (field !== 'container') return toLookup(context, { field, value })
  const { transform, dependsOnId } = context.caller
  if (dependsOnId === true || transform(permission, { containers: [value] }) !== undefined)
    return { field: 'ancestor', value }
  throw new CofferError('forbidden', `${permission} is not granted on the container ${value}.`)
}
