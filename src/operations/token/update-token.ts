/** Changes tokens: applies a patch, or merges a token intent into the token that is its duplicate. */
import { containerSetId } from '../../domain/access/container.js'
import { stricterTransform } from '../../domain/access/permissions.js'
import type { Budget } from '../../domain/expression/budget.js'
import { countValues, MAX_JSON_VALUES } from '../../domain/json/json.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { fingerprintTextBy, patchToken, type TokenDraft, type TokenRules } from '../../domain/token/token.js'
import { invalid } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { enrichCard, isSameCard } from './card-details.js'
import { EXPRESSIONS, type Given, refuseExpressions } from './check-token.js'
import { keepCode, startCode, stopTimer } from './code-timer.js'
import { fingerprintOf, putOptions } from './draft-row.js'
import { findDuplicate, isDeduplicated, showDuplicate } from './duplicates.js'
import { countCreation } from './lifetime.js'
import { logToken, requireTransform } from './token-access.js'
import { type TokenView, UPDATED, viewWritten } from './token-attributes.js'

/** The maximum size of the data of a token after an update, in characters of JSON. */
const LARGEST_DATA = 4 * 1024 * 1024
const MERGED_LIMITS =
  'must have at most 4,194,304 characters as JSON, and at most 50,000 values and property names together, once it is merged'

/**
 * Applies a merge patch. If the patched token has a duplicate, changes nothing and returns the duplicate.
 * @throws CofferError `validation`, `forbidden`
 */
export async function updateToken(context: Context, before: TokenRecord, patch: Given, budget: Budget) {
  const transform = requireTransform(context, 'token:update', before)
  refuseExpressions(context, patch, EXPRESSIONS)
  const containers = (patch.containers as string[] | undefined) ?? before.containers
  const after = requireTransform(context, 'token:update', { id: before.id, containers })
  const rules = { expressions: await context.expressions(), budget, now: context.now }
  const draft = await patchToken(before, patch, rules)
  const fingerprint = await fingerprintOf(context, draft)
  if (isDeduplicated(context, await context.tenant(), draft)) {
    const original = await findDuplicate(context, fingerprint, [{ not: { ids: [before.id] } }])
    if (original !== undefined) return showDuplicate(context, original)
  }
  const record = await putPatched(context, before, patch, draft, fingerprint)
  logToken(context, record)
  return viewWritten(context, record, stricterTransform(transform, after))
}

/**
 * Merges only the data and metadata of the draft into the original. If the caller has no permission to update the
 * original, changes nothing. Returns undefined if the original is a duplicate only because of the draft's fingerprint
 * expression. The caller can choose that expression, so the expression must not decide which token is changed.
 */
export async function mergeIntoDuplicate(
  context: Context,
  original: TokenRecord,
  draft: TokenDraft,
  rules: TokenRules,
): Promise<TokenView | undefined> {
  const text = await fingerprintTextBy(original, draft.record, rules)
  if (
    text === undefined ||
    (await context.store.fingerprint(context.caller.tenant, text)) !== original.fingerprint
  )
    return undefined
  // The update changes no containers, so one decision covers the token before and after the change.
  if (context.caller.transform('token:update', original) === undefined)
    return showDuplicate(context, original)
  const { data, metadata } = draft.record
  const patch = { data, metadata }
  const merged = await patchToken(original, patch, rules)
  const record = await putPatched(context, original, patch, merged, await fingerprintOf(context, merged))
  return showDuplicate(context, record, UPDATED, 'update_existing')
}

async function putPatched(
  context: Context,
  before: TokenRecord,
  patch: Given,
  draft: TokenDraft,
  fingerprint: string,
): Promise<TokenRecord> {
  // Without this check, repeated patches could make a token arbitrarily large.
  const { data } = draft.record
  const isTooLarge = () => JSON.stringify(data).length > LARGEST_DATA || countValues(data) > MAX_JSON_VALUES
  if (patch.data !== undefined && isTooLarge()) throw invalid('data', MERGED_LIMITS)
  const record: TokenRecord = {
    id: before.id,
    tenant_id: before.tenant_id,
    fingerprint,
    created_by: before.created_by,
    created_at: before.created_at,
    modified_by: context.caller.actor.id,
    modified_at: context.date,
    ...draft.record,
  }
  const isMoved = containerSetId(record.containers) !== containerSetId(before.containers)
  const storeSet = isMoved ? await context.containerSets.prepare(record.containers) : undefined
  await putCode(context, record, before.code, draft.code)
  if (isSameCard(record, before)) record.network_token_id = before.network_token_id
  const details = await enrichCard(context, record, before)
  if (details !== undefined) record.card_details = details
  await context.store.replace('token', context.caller.tenant, record, putOptions(draft))
  await storeSet?.()
  if (isMoved) context.containerSets.release(before.containers)
  if (record.expires_at !== before.expires_at) await countCreation(context, record, 'changed')
  return record
}

async function putCode(
  context: Context,
  record: TokenRecord,
  before: TokenRecord['code'],
  draft: TokenDraft['code'],
): Promise<void> {
  if (draft?.sets === false) {
    record.code = keepCode(before, draft)
    return
  }
  await stopTimer(context.store, context.caller.tenant, before)
  if (draft !== undefined)
    record.code = await startCode(context, { holder: 'token', holder_id: record.id }, draft)
}
