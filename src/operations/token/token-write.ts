/** Creates and updates tokens, for all operations that do. */

import { stricterTransform } from '../../domain/access/permissions.js'
import { Budget } from '../../domain/expression/budget.js'
import { countValues, MAX_JSON_VALUES } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { TenantRecord, TokenRecord } from '../../domain/records/records.js'
import { settingOf } from '../../domain/settings.js'
import {
  checkPatch,
  patchToken,
  prepareToken,
  type TokenDraft,
  type TokenRules,
} from '../../domain/token/token.js'
import type { GivenId } from '../../domain/token/token-rendering.js'
import { invalid } from '../../errors.js'
import type { CheckTools, Context } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { eachRecord } from '../../storage/pages.js'
import { purgeToken } from './expiry.js'
import {
  matchesId,
  recordToken,
  requireTransform,
  showDuplicate,
  viewWritten,
  whereGranted,
} from './token-access.js'
import { recordCreation, settleActivity } from './token-activity.js'
import type { TokenView } from './token-attributes.js'

const ID_DRAWS = 10
/** The most characters of JSON of a token's data after merging. */
const LARGEST_DATA = 4 * 1024 * 1024

/** @throws CofferError `validation`, `too_much_work` */
export async function checkNewToken(
  input: Readonly<Record<string, unknown>>,
  tools: CheckTools,
  budget = new Budget(tools.turns),
) {
  return prepareToken(input, await readRules(input, tools, budget))
}

/**
 * Validates update-token attributes, as far as that is possible without the token. Returns the budget that is left for
 * {@link updateFrom}. @throws CofferError `validation`, `too_much_work`
 */
export async function checkTokenPatch(patch: Readonly<Record<string, unknown>>, tools: CheckTools) {
  const budget = new Budget(tools.turns)
  await checkPatch(patch, await readRules(patch, tools, budget))
  return budget
}

/** Reads the time, which needs a read of the store, only to validate an expiry. */
async function readRules(
  { expires_at }: Readonly<Record<string, unknown>>,
  { expressions, now }: CheckTools,
  budget: Budget,
): Promise<TokenRules> {
  const isTimed = expires_at !== undefined && expires_at !== null
  return { expressions: await expressions(), budget, now: isTimed ? await now() : 0 }
}

/** Creates the token of a valid `draft`, or answers with its duplicate. @throws CofferError `forbidden`, `conflict` */
export async function createFrom(context: Context, draft: TokenDraft) {
  const { containers, type } = draft.record
  const given = draft.id?.kind === 'given' ? draft.id.id : undefined
  const transform = requireTransform(context, 'token:create', { id: given, containers })
  const fingerprint = await fingerprintOf(context, draft)
  const tenant = await context.tenant()
  if (isDeduplicated(tenant, draft)) {
    const original = await findByFingerprint(context, fingerprint)
    if (original !== undefined) return new Existing(await showDuplicate(context, original))
  }
  const { id, isFresh } =
    draft.id === undefined ? { id: context.createUuid(), isFresh: true } : await chooseId(context, draft.id)
  if (!isFresh) await purgeToken(context.store, context.caller.tenant, id, context.createUuid())
  const { expires } = draft
  const counts = (await recordCreation(context, { id, type, expires }, isFresh)) || undefined
  // Spread last: V8 gives an object that gets members after a spread a hidden class of its own, which costs microseconds.
  const record: TokenRecord = {
    id,
    tenant_id: tenant.id,
    fingerprint,
    created_by: context.caller.actor.id,
    created_at: context.date,
    counts,
    ...draft.record,
  }
  await context.store.insert('token', context.caller.tenant, record, { fresh: isFresh, ...putOptions(draft) })
  recordToken(context, record)
  return viewWritten(record, transform)
}

/** Applies a merge patch, or changes nothing and returns the duplicate. @throws CofferError `validation`, `forbidden` */
export async function updateFrom(
  context: Context,
  before: TokenRecord,
  patch: Readonly<Record<string, unknown>>,
  budget: Budget,
): Promise<TokenView> {
  const transform = requireTransform(context, 'token:update', before)
  const containers = (patch.containers as string[] | undefined) ?? before.containers
  const after = requireTransform(context, 'token:update', { id: before.id, containers })
  const draft = await patchToken(before, patch, {
    expressions: await context.expressions(),
    budget,
    now: context.now,
  })
  const fingerprint = await fingerprintOf(context, draft)
  if (isDeduplicated(await context.tenant(), draft)) {
    const original = await findByFingerprint(context, fingerprint, before.id)
    if (original !== undefined) return showDuplicate(context, original)
  }
  // Repeated patches could grow a token without limit; only a single request is limited.
  if (JSON.stringify(draft.record.data).length > LARGEST_DATA)
    throw invalid(
      'data',
      `must have at most ${LARGEST_DATA.toLocaleString('en')} characters as JSON once it is merged`,
    )
  if (patch.data !== undefined && countValues(draft.record.data) > MAX_JSON_VALUES)
    throw invalid(
      'data',
      `must have at most ${MAX_JSON_VALUES.toLocaleString('en')} values and property names once it is merged`,
    )
  const record: TokenRecord = {
    id: before.id,
    tenant_id: before.tenant_id,
    fingerprint,
    created_by: before.created_by,
    created_at: before.created_at,
    modified_by: context.caller.actor.id,
    modified_at: context.date,
    counts: before.counts && draft.expires === undefined ? true : undefined,
    ...draft.record,
  }
  await context.store.replace('token', context.caller.tenant, record, putOptions(draft))
  if (record.counts === undefined) await settleActivity(context, before)
  recordToken(context, record)
  return viewWritten(record, stricterTransform(transform, after))
}

function putOptions({ searchValues, expires }: TokenDraft) {
  return { search: searchValues, ...omitUndefined({ expires }) }
}

function fingerprintOf(context: Context, { fingerprintText }: TokenDraft): Promise<string> {
  return context.store.fingerprint(context.caller.tenant, fingerprintText)
}

/** The token's attribute overrides the tenant's setting. */
function isDeduplicated({ settings }: TenantRecord, { record }: TokenDraft): boolean {
  return record.deduplicate_token ?? settings.deduplicate_tokens === 'true'
}

/**
 * The oldest token with this fingerprint. If the setting deduplicate.reveals_existing is false, only tokens that the caller
 * may read are considered, so that the answer does not depend on other tokens.
 */
async function findByFingerprint(
  context: Context,
  value: string,
  except?: string,
): Promise<TokenRecord | undefined> {
  const others = except === undefined ? [] : [{ not: { ids: [except] } }]
  const conditions = [{ field: 'fingerprint', value }, ...others]
  const { values = {} } = (await context.store.get('settings', 0, 'vault')) ?? {}
  const isAny = settingOf(values, 'deduplicate.reveals_existing')
  const where = isAny ? { and: conditions } : await whereGranted(context, conditions, [])
  const isReadable = isAny ? undefined : matchesId(context.caller, [])
  const find = async (page: number, size: number) =>
    context.store.find('token', context.caller.tenant, { where: where!, page, size })
  const { records, total } = await find(1, 1)
  // The index has short digests, so the fingerprint is compared as well.
  const isEqual = ({ fingerprint }: TokenRecord) => fingerprint === value
  if (isReadable === undefined) {
    const oldest = total > 1 ? (await find(total, 1)).records : records
    return oldest.find(isEqual)
  }
  let oldest: TokenRecord | undefined
  for await (const record of eachRecord(context.store, 'token', context.caller.tenant, where))
    if (isEqual(record) && isReadable(record)) oldest = record
  return oldest
}

/** The requested id, a free one from the alias expression, or else a UUID. */
async function chooseId(context: Context, wanted: GivenId): Promise<{ id: string; isFresh: boolean }> {
  if (wanted.kind === 'given') return { id: wanted.id, isFresh: false }
  for (let draw = 0; draw < ID_DRAWS; draw++) {
    const id = wanted.draw()
    if ((await context.store.get('token', context.caller.tenant, id)) === undefined)
      return { id, isFresh: false }
  }
  return { id: context.createUuid(), isFresh: true }
}
