/** Writing tokens: the one way a token comes to be, whichever operation asked for it, and the one way it changes. */
import { stricterTransform } from '../../domain/permissions.js'
import type { TokenRecord } from '../../domain/records.js'
import {
  checkPatch,
  patchToken,
  prepareToken,
  type TokenDraft,
  type TokenRules,
} from '../../domain/token/token.js'
import { invalid } from '../../errors.js'
import { type CheckTools, type Context, Existing } from '../../framework/operation.js'
import { purgeToken } from './expiry.js'
import { entityTypeOf, reachNewToken, requireTransform, showDuplicate, viewWritten } from './token-access.js'
import type { TokenView } from './token-attributes.js'

const ID_DRAWS = 10
/** Of the data of a token, after merging. */
const LARGEST_DATA = 4 * 1024 * 1024

/** Judges create-token attributes, which needs no right yet. @throws CofferError `validation` */
export async function checkNewToken(
  input: Readonly<Record<string, unknown>>,
  tools: CheckTools,
): Promise<TokenDraft> {
  return prepareToken(input, await readRules(input, tools))
}

/** Judges update-token attributes, whatever token they are for. @throws CofferError `validation` */
export async function checkTokenPatch(
  patch: Readonly<Record<string, unknown>>,
  tools: CheckTools,
): Promise<void> {
  return checkPatch(patch, await readRules(patch, tools))
}

/** Nothing but an expiry is judged by the time, which inputSchema a read of the store. */
async function readRules(
  { expires_at }: Readonly<Record<string, unknown>>,
  { expressions, now }: CheckTools,
): Promise<TokenRules> {
  const isTimed = expires_at !== undefined && expires_at !== null
  return { expressions: await expressions(), now: isTimed ? await now() : 0 }
}

/**
 * Creates the token of a checked `draft`, or answers with the one that it would duplicate.
 * @throws CofferError `forbidden`, `conflict`
 */
export async function createFrom(
  context: Context,
  draft: TokenDraft,
): Promise<TokenView | Existing<TokenView>> {
  const transform = requireTransform(context, 'token:create', draft.record.containers)
  const fingerprint = await fingerprintOf(context, draft)
  if (await isDeduplicated(context, draft)) {
    const original = await findByFingerprint(context, fingerprint)
    if (original !== undefined) return new Existing(await showDuplicate(context, original))
  }
  const { id, isFresh } = await drawId(context, draft)
  const record: TokenRecord = {
    ...draft.record,
    id,
    tenant_id: (await context.tenant()).id,
    fingerprint,
    created_by: context.caller.actor.id,
    created_at: context.date,
  }
  if (!isFresh) await purgeToken(context.store, context.caller.tenant, id, context.createUuid())
  await context.store.insert('token', context.caller.tenant, record, { ...putOptions(draft), fresh: isFresh })
  await reachNewToken(context, record, isFresh)
  return viewWritten(record, transform)
}

/**
 * Applies a checked merge patch, or answers with the token that the result would duplicate and leaves this one as it was.
 * @throws CofferError `validation`, `forbidden`
 */
export async function updateFrom(
  context: Context,
  before: TokenRecord,
  patch: Readonly<Record<string, unknown>>,
): Promise<TokenView> {
  const transform = requireTransform(context, 'token:update', before.containers)
  const containers = (patch.containers as string[] | undefined) ?? before.containers
  const after = requireTransform(context, 'token:update', containers)
  const draft = await patchToken(before, patch, {
    expressions: await context.expressions(),
    now: context.now,
  })
  const fingerprint = await fingerprintOf(context, draft)
  if (await isDeduplicated(context, draft)) {
    const original = await findByFingerprint(context, fingerprint, before.id)
    if (original !== undefined) return showDuplicate(context, original)
  }
  // Patch after patch could grow a token without end; a request is bounded by its door.
  if (JSON.stringify(draft.record.data).length > LARGEST_DATA) {
    throw invalid(
      'data',
      `must have at most ${LARGEST_DATA.toLocaleString('en')} characters as JSON once it is merged`,
    )
  }
  const record: TokenRecord = {
    ...draft.record,
    id: before.id,
    tenant_id: before.tenant_id,
    fingerprint,
    created_by: before.created_by,
    created_at: before.created_at,
    modified_by: context.caller.actor.id,
    modified_at: context.date,
  }
  await context.store.replace('token', context.caller.tenant, record, putOptions(draft))
  // To change a token is no use of it, so the usage report does not hear of it.
  context.reached(entityTypeOf(record), record.id)
  return viewWritten(record, stricterTransform(transform, after))
}

function putOptions({ searchValues, expires }: TokenDraft) {
  return { search: searchValues, ...(expires === undefined ? {} : { expires }) }
}

function fingerprintOf(context: Context, { fingerprintText }: TokenDraft): Promise<string> {
  return context.store.fingerprint(context.caller.tenant, fingerprintText)
}

/** What the token says counts, else the tenant's setting. */
async function isDeduplicated(context: Context, { record }: TokenDraft): Promise<boolean> {
  return record.deduplicate_token ?? (await context.tenant()).settings.deduplicate_tokens === 'true'
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

/** The id asked for, one drawn by its alias expression, or a UUID where neither gives one that is free. */
async function drawId(context: Context, draft: TokenDraft): Promise<{ id: string; isFresh: boolean }> {
  const { id: wanted } = draft
  if (wanted?.kind === 'given') return { id: wanted.id, isFresh: false }
  for (let draw = 0; wanted !== undefined && draw < ID_DRAWS; draw++) {
    const id = wanted.draw()
    if ((await context.store.get('token', context.caller.tenant, id)) === undefined)
      return { id, isFresh: false }
  }
  return { id: context.createUuid(), isFresh: true }
}
