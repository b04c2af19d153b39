/** Tokens: create, list, get, update, delete. What a token may look like is the domain's business. */

import { formatDate } from '../domain/dates.js'
import type { Permission, Transform } from '../domain/permissions.js'
import { stricterTransform } from '../domain/permissions.js'
import type { TokenRecord } from '../domain/records.js'
import {
  patchToken,
  prepareToken,
  redactDuplicate,
  type TokenDraft,
  type TokenView,
  viewToken,
} from '../domain/token.js'
import { metadataLookup } from '../domain/token-lookups.js'
import { TOKEN_TYPE_NAMES } from '../domain/token-types.js'
import { CofferError } from '../errors.js'
import type { Condition } from '../store/store.js'
import { type Context, Existing, operation } from './operation.js'
import { type List, listOf, pageInput } from './page.js'

const ID_DRAWS = 10
const MOST_FILTER_VALUES = 100
const COLUMNS = ['id', 'type', 'data', 'containers', 'created_at']

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

const id = { type: 'string', description: 'The id of the token.' } as const

/** Metadata in a filter may be asked for by any number of keys, each once. */
const filters = {
  type: {
    type: 'array',
    items: { type: 'string' },
    maxItems: MOST_FILTER_VALUES,
    description: 'Only tokens of this type.',
  },
  metadata: { ...metadata, description: 'Only tokens with this metadata; case does not count in the value.' },
} as const

export const createToken = operation({
  name: 'token create',
  summary: 'Store a value and return its token.',
  details:
    'Never put anything sensitive into the id: it is shown, logged and part of addresses.\n' +
    'Never put anything sensitive into metadata: it is shown to everybody who may read the token.',
  permissions: ['token:create'],
  route: 'POST /tokens',
  success: 201,
  input: {
    type: 'object',
    properties: {
      id: {
        type: 'string',
        description: 'An id of your own, or an expression for one; else a UUID is drawn.',
      },
      type: { type: 'string', enum: TOKEN_TYPE_NAMES, description: `One of ${TOKEN_TYPE_NAMES.join(', ')}.` },
      ...contents,
      metadata,
      expires_at,
    },
    required: ['type', 'data'],
    additionalProperties: true,
  },
  columns: COLUMNS,
  examples: [
    `echo '{"type":"card","data":{"number":"4242424242424242"}}' | coffer token create`,
    `coffer token create --type social_security_number --data @ssn.json --metadata customer=42`,
    `coffer token create --type token --data '{"name":"Ada"}' --mask '{"name":"{{ data.name | slice: 0 }}…"}'`,
  ],
  log: { operation: 'create', message: 'Token created' },
  async run(context, input) {
    const draft = await prepareToken(input, { expressions: await context.expressions(), now: context.now })
    const transform = requireTransform(context, 'token:create', draft.record.containers)
    const fingerprint = await fingerprintOf(context, draft)
    if (await isDeduplicated(context, input.deduplicate_token)) {
      const original = await findByFingerprint(context, fingerprint)
      if (original !== undefined) return new Existing(showDuplicate(context, original))
    }
    const { id: drawn, isFresh } = await drawId(context, draft)
    const record: TokenRecord = {
      ...draft.record,
      id: drawn,
      tenant_id: (await context.tenant()).id,
      fingerprint,
      created_by: context.caller.actor.id,
      created_at: formatDate(context.now),
    }
    await context.store.insert('token', context.caller.tenant, record, {
      search: draft.searchValues,
      fresh: isFresh,
      ...(draft.expires === undefined ? {} : { expires: draft.expires }),
    })
    reach(context, record)
    return viewToken(record, stricterTransform('mask', transform))
  },
})

export const listTokens = operation({
  name: 'token list',
  summary: 'List tokens, newest first.',
  permissions: ['token:read'],
  route: 'GET /tokens',
  success: 200,
  input: {
    type: 'object',
    properties: {
      id: {
        type: 'array',
        items: { type: 'string' },
        maxItems: MOST_FILTER_VALUES,
        description: 'Only the token with this id.',
      },
      ...filters,
      ...pageInput(100),
    },
    additionalProperties: true,
  },
  columns: COLUMNS,
  examples: ['coffer token list', 'coffer token list --type card --metadata customer=42 --size 50'],
  log: { operation: 'read', message: 'Token retrieved' },
  run(context, input) {
    const where = input.id === undefined ? [] : [{ ids: input.id }]
    return listMatching(context, [...where, ...filterConditions(input)], input)
  },
})

export const getToken = operation({
  name: 'token get',
  summary: 'Get a token by its id.',
  permissions: ['token:read'],
  route: 'GET /tokens/{id}',
  success: 200,
  input: { type: 'object', properties: { id }, required: ['id'], additionalProperties: true },
  columns: COLUMNS,
  examples: ['coffer token get my-token', 'coffer token get my-token --reveal --fields data'],
  log: { operation: 'read', message: 'Token retrieved' },
  async run(context, input) {
    const record = await requireToken(context, input.id)
    const transform = requireTransform(context, 'token:read', record.containers)
    reach(context, record)
    return viewToken(record, transform)
  },
})

export const updateToken = operation({
  name: 'token update',
  summary: 'Change a token: data, mask and metadata are merged, the rest is replaced.',
  details:
    'A merge patch (RFC 7386): what is named is changed, null removes it, everything else stays.\n' +
    'Containers, search indexes and the fingerprint expression are replaced as a whole.',
  permissions: ['token:update'],
  route: 'PATCH /tokens/{id}',
  success: 200,
  contentType: 'application/merge-patch+json',
  input: {
    type: 'object',
    properties: {
      id,
      ...contents,
      metadata: {
        type: 'object',
        additionalProperties: { type: 'string', nullable: true },
        maxProperties: 100,
        nullable: true,
        description: 'Notes to change; null removes one.',
      },
      expires_at: { ...expires_at, nullable: true, description: `${expires_at.description} null: never.` },
    },
    required: ['id'],
    additionalProperties: true,
  },
  columns: COLUMNS,
  examples: [
    `coffer token update my-token --metadata customer=43`,
    `echo '{"data":{"expiration_year":2032},"expires_at":null}' | coffer token update my-token`,
  ],
  log: { operation: 'update', message: 'Token updated' },
  async run(context, input) {
    const before = await requireToken(context, input.id)
    const transform = requireTransform(context, 'token:update', before.containers)
    const draft = await patchToken(before, input, {
      expressions: await context.expressions(),
      now: context.now,
    })
    const after = requireTransform(context, 'token:update', draft.record.containers)
    const fingerprint = await fingerprintOf(context, draft)
    if (await isDeduplicated(context, draft.record.deduplicate_token)) {
      const original = await findByFingerprint(context, fingerprint, before.id)
      if (original !== undefined) return showDuplicate(context, original)
    }
    const record: TokenRecord = {
      ...draft.record,
      id: before.id,
      tenant_id: before.tenant_id,
      fingerprint,
      created_by: before.created_by,
      created_at: before.created_at,
      modified_by: context.caller.actor.id,
      modified_at: formatDate(context.now),
    }
    await context.store.replace('token', context.caller.tenant, record, {
      search: draft.searchValues,
      ...(draft.expires === undefined ? {} : { expires: draft.expires }),
    })
    reach(context, record)
    return viewToken(record, stricterTransform('mask', stricterTransform(transform, after)))
  },
})

export const deleteToken = operation({
  name: 'token delete',
  summary: 'Delete a token; its data is gone for ever, its log stays.',
  permissions: ['token:delete'],
  route: 'DELETE /tokens/{id}',
  success: 204,
  input: { type: 'object', properties: { id }, required: ['id'], additionalProperties: true },
  columns: [],
  examples: ['coffer token delete my-token --yes'],
  destroys: 'This deletes the data of token',
  log: { operation: 'delete', message: 'Token deleted' },
  async run(context, input) {
    const record = await requireToken(context, input.id)
    requireTransform(context, 'token:delete', record.containers)
    await context.store.remove('token', context.caller.tenant, record.id)
    reach(context, record)
    return undefined
  },
})

/** The name a token has in the log: cards and banks go by their own. */
export function entityTypeOf({ type }: Pick<TokenRecord, 'type'>): string {
  return type === 'card' || type === 'bank' ? type : 'token'
}

function reach(context: Context, record: TokenRecord): void {
  context.reached(entityTypeOf(record), record.id)
}

/** @throws CofferError `not_found` */
async function requireToken(context: Context, tokenId: string): Promise<TokenRecord> {
  const record = await context.store.get('token', context.caller.tenant, tokenId)
  if (record === undefined) throw new CofferError('not_found', 'There is no token with this id.')
  return record
}

/** @throws CofferError `forbidden` when no rule grants `permission` on all of `containers`. */
function requireTransform(
  context: Context,
  permission: Permission,
  containers: readonly string[],
): Transform {
  const transform = context.caller.transform(permission, containers)
  if (transform !== undefined) return transform
  throw new CofferError('forbidden', `${permission} is not granted on the containers of this token.`)
}

function filterConditions(input: { type?: string[]; metadata?: Record<string, string> }): Condition[] {
  const { type, metadata: pairs = {} } = input
  const types = type === undefined ? [] : [{ or: type.map((value) => ({ field: 'type', value })) }]
  const notes = Object.entries(pairs).map(([key, value]) => metadataLookup(key, value))
  return [...types, ...notes]
}

async function listMatching(
  context: Context,
  conditions: readonly Condition[],
  page: { page?: number; size?: number },
): Promise<List<TokenView>> {
  const asked = { page: page.page ?? 1, size: page.size ?? 20 }
  const where = conditions.length === 0 ? {} : { where: { and: conditions } }
  const { records, total } = await context.store.find('token', context.caller.tenant, { ...asked, ...where })
  for (const record of records) reach(context, record)
  const views = records.map((record) =>
    viewToken(record, requireTransform(context, 'token:read', record.containers)),
  )
  return listOf(views, total, asked)
}

function fingerprintOf(context: Context, { fingerprintText }: TokenDraft): Promise<string> {
  return context.store.fingerprint(context.caller.tenant, fingerprintText)
}

/** What the request says counts, else the tenant's setting. */
async function isDeduplicated(context: Context, asked: boolean | undefined): Promise<boolean> {
  return asked ?? (await context.tenant()).settings.deduplicate_tokens === 'true'
}

/** The oldest token with this fingerprint, the one that later ones are duplicates of. */
async function findByFingerprint(
  context: Context,
  value: string,
  except?: string,
): Promise<TokenRecord | undefined> {
  const others = except === undefined ? [] : [{ not: { ids: [except] } }]
  const where = { and: [{ field: 'fingerprint', value }, ...others] }
  const find = (page: number) => context.store.find('token', context.caller.tenant, { where, page, size: 1 })
  const newest = await find(1)
  const { records } = newest.total > 1 ? await find(newest.total) : newest
  // Keys are short digests; what must be exact is compared.
  return records.find(({ fingerprint }) => fingerprint === value)
}

/** The original, to somebody who asked for a duplicate of it: redacted where they may not read it. */
function showDuplicate(context: Context, original: TokenRecord): TokenView {
  context.reached(entityTypeOf(original), original.id, { operation: 'read', message: 'Token retrieved' })
  const transform = context.caller.transform('token:read', original.containers)
  if (transform === undefined) return redactDuplicate(viewToken(original, 'redact'))
  return viewToken(original, stricterTransform('mask', transform))
}

/** The id asked for, one drawn by its alias expression, or a UUID where neither gives one that is free. */
async function drawId(context: Context, draft: TokenDraft): Promise<{ id: string; isFresh: boolean }> {
  const { id: wanted } = draft
  if (wanted?.kind === 'given') return { id: wanted.id, isFresh: false }
  if (wanted?.kind === 'alias') {
    for (let draw = 0; draw < ID_DRAWS; draw++) {
      const candidate = wanted.draw()
      if ((await context.store.get('token', context.caller.tenant, candidate)) === undefined)
        return { id: candidate, isFresh: false }
    }
  }
  return { id: context.createUuid(), isFresh: true }
}
