import { containerSetId } from '../../domain/access/container.js'
import { stricterTransform, type Transform } from '../../domain/access/permissions.js'
import { Budget } from '../../domain/expression/budget.js'
import { countValues, MAX_JSON_VALUES } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { TenantRecord, TokenRecord } from '../../domain/records/records.js'
import {
  checkPatch,
  fingerprintTextBy,
  isGiven,
  patchToken,
  prepareToken,
  type TokenDraft,
  type TokenRules,
} from '../../domain/token/token.js'
import type { GivenId } from '../../domain/token/token-rendering.js'
import { invalid, noRevealError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import type { CheckTools, LogEntry } from '../../framework/declaration.js'
import { Existing } from '../../framework/outcome.js'
import { type Condition, eachRecord } from '../../storage/store.js'
import { keepCode, startCode, stopTimer } from './code-timer.js'
import { countCreation, purgeToken } from './lifetime.js'
import { logToken, matchesId, requireTransform, whereGranted } from './token-access.js'
import { READ, type TokenView, UPDATED, viewToken } from './token-attributes.js'

const ID_DRAWS = 10
/** Attributes whose expressions may tell the data of a token digit by digit. */
const EXPRESSIONS = ['mask', 'search_indexes', 'fingerprint_expression']
/** Characters of JSON. */
const LARGEST_DATA = 4 * 1024 * 1024
const MERGED_LIMITS =
  'must have at most 4,194,304 characters as JSON, and 50,000 values and property names, once it is merged'

type Given = Readonly<Record<string, unknown>>
type Named = Pick<TokenRecord, 'id' | 'type'>
type Show<T> = (context: Context, record: TokenRecord, transform: Transform) => T

export type NewToken = Awaited<ReturnType<typeof checkNewToken>>

/** A token, or the request for that of an `intent`, which is read when it is created. @throws CofferError `validation`, `too_much_work` */
export async function checkNewToken(input: Given, tools: CheckTools, budget = new Budget(tools.turns)) {
  const draft = await prepareToken(input, await readRules(input, tools, budget))
  const intent = input.token_intent_id ?? undefined
  return intent === undefined ? draft : { intent: intent as string, given: input, budget }
}

/** Returns the budget that is left for {@link updateFrom}. @throws CofferError `validation`, `too_much_work` */
export async function checkTokenPatch(patch: Given, tools: CheckTools) {
  const budget = new Budget(tools.turns)
  await checkPatch(patch, await readRules(patch, tools, budget))
  return budget
}

async function readRules({ expires_at }: Given, tools: CheckTools, budget: Budget): Promise<TokenRules> {
  // The time takes a read of the store, so it is read only to validate an expiry.
  const now = expires_at === undefined || expires_at === null ? 0 : await tools.now()
  return { expressions: await tools.expressions(), budget, now }
}

/** Creates the token and returns what `show` makes of it, or answers with its duplicate. @throws CofferError `forbidden`, `conflict`, `validation` for its intent */
export function createFrom<T extends Named>(context: Context, wanted: NewToken, show: Show<T>) {
  return 'intent' in wanted ? createFromIntent(context, wanted, show) : create(context, wanted, show)
}

/** Creates the token of the intent, or updates its duplicate, and removes the intent. */
async function createFromIntent<T extends Named>(
  context: Context,
  { intent: id, given, budget }: Exclude<NewToken, TokenDraft>,
  show: Show<T>,
) {
  const { store, caller, audit } = context
  const intent = await store.get('token_intent', caller.tenant, id)
  if (intent === undefined) throw invalid('token_intent_id', 'refers to a token intent that does not exist')
  if (isGiven(given.type) && given.type !== intent.type)
    throw invalid('type', 'must be that of the token intent')
  const { token_intent_id: _, ...attributes } = given
  refuseExpressions(context, given, [...EXPRESSIONS, 'id'])
  // A token keeps no code that verifies a card.
  const { cvc, ...kept } = intent.type === 'card' ? (intent.data as { cvc?: string }) : {}
  const data = intent.type === 'card' ? kept : intent.data
  const rules = { expressions: await context.expressions(), budget, now: context.now }
  const draft = await prepareToken({ ...attributes, type: intent.type, data }, rules)
  const created = await create(context, draft, show, (original) =>
    mergeIntoDuplicate(context, original, draft, rules),
  )
  // Last, because an import goes on after a row that is refused.
  await store.remove('token_intent', caller.tenant, id)
  await stopTimer(store, caller.tenant, intent.code)
  audit.record('token_intent', id, {
    operation: 'delete',
    message: 'Token intent converted',
    derivesNoEvent: true,
  })
  const { id: tokenId, type } = created instanceof Existing ? created.result : created
  audit.emit({ type: 'token-intent.converted', about: intent, more: { token: { id: tokenId, type } } })
  return created
}

/**
 * Without `merge`, a duplicate is answered as it is. With `merge`, only a token in the same containers can be a duplicate, and
 * `merge` returns the answer, or undefined if the token is no duplicate.
 */
async function create<T extends Named>(
  context: Context,
  draft: TokenDraft,
  show: Show<T>,
  merge?: (original: TokenRecord) => Promise<TokenView | undefined>,
): Promise<T | Existing<TokenView>> {
  const { containers } = draft.record
  const given = draft.id?.kind === 'given' ? draft.id.id : undefined
  const transform = requireTransform(context, 'token:create', { id: given, containers })
  const fingerprint = await fingerprintOf(context, draft)
  const tenant = await context.tenant()
  if (isDeduplicated(context, tenant, draft)) {
    const inSame = merge && [{ field: 'containers', value: containerSetId(containers) }]
    const original = await findByFingerprint(context, fingerprint, inSame)
    const answer = original && (await (merge ?? ((found) => showDuplicate(context, found)))(original))
    if (answer !== undefined) return new Existing(answer)
  }
  const chosen = draft.id && (await chooseId(context, draft.id))
  const isFresh = chosen === undefined
  const id = chosen ?? context.createUuid()
  const storeSet = await context.containerSets.prepare(containers)
  if (!isFresh) await purgeExpired(context, id)
  // Spread last: V8 gives an object that gets members after a spread a hidden class of its own, which costs microseconds.
  const record: TokenRecord = {
    id,
    tenant_id: tenant.id,
    fingerprint,
    created_by: context.caller.actor.id,
    created_at: context.date,
    ...draft.record,
  }
  const { code } = draft
  if (code !== undefined) record.code = await startCode(context, { holder: 'token', holder_id: id }, code)
  await context.store.insert('token', context.caller.tenant, record, { fresh: isFresh, ...putOptions(draft) })
  await storeSet?.()
  if (!isFresh || draft.expires !== undefined) await countCreation(context, record, 'new')
  logToken(context, record)
  return show(context, record, transform)
}

/** Applies a merge patch, or changes nothing and returns the duplicate. @throws CofferError `validation`, `forbidden` */
export async function updateFrom(context: Context, before: TokenRecord, patch: Given, budget: Budget) {
  const transform = requireTransform(context, 'token:update', before)
  refuseExpressions(context, patch, EXPRESSIONS)
  const containers = (patch.containers as string[] | undefined) ?? before.containers
  const after = requireTransform(context, 'token:update', { id: before.id, containers })
  const rules = { expressions: await context.expressions(), budget, now: context.now }
  const draft = await patchToken(before, patch, rules)
  const fingerprint = await fingerprintOf(context, draft)
  if (isDeduplicated(context, await context.tenant(), draft)) {
    const original = await findByFingerprint(context, fingerprint, [{ not: { ids: [before.id] } }])
    if (original !== undefined) return showDuplicate(context, original)
  }
  const record = await putPatched(context, before, patch, draft, fingerprint)
  logToken(context, record)
  return viewWritten(context, record, stricterTransform(transform, after))
}

/** In no-reveal mode data that a caller did not give is in no expression of theirs. @throws CofferError `forbidden` */
function refuseExpressions({ caller }: Context, given: Given, names: readonly string[]): void {
  const name = caller.isNoReveal && names.find((each) => given[each] !== undefined)
  if (name) throw noRevealError(`${name} here, which may show data`)
}

/**
 * Merges the data and metadata of the draft into the original if the caller may update that token, else changes nothing.
 * Undefined if only the expression of the draft makes the original its duplicate: the caller can choose that expression, so
 * it must not decide which token is changed. Other attributes of the draft describe a new token and are not merged.
 */
async function mergeIntoDuplicate(
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
  // The containers stay the same, so one decision covers the token before and after the change.
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
  // Repeated patches could grow a token without limit; only a single request is limited.
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

function putOptions({ searchValues, expires }: TokenDraft) {
  return { search: searchValues, ...omitUndefined({ expires }) }
}

function fingerprintOf(context: Context, { fingerprintText }: TokenDraft): Promise<string> {
  return context.store.fingerprint(context.caller.tenant, fingerprintText)
}

/** In no-reveal mode nothing is, because a duplicate confirms a guess. */
function isDeduplicated({ caller }: Context, { settings }: TenantRecord, { record }: TokenDraft): boolean {
  if (caller.isNoReveal) return false
  return record.deduplicate_token ?? settings.deduplicate_tokens === 'true'
}

/** The oldest. If deduplicate.reveals_existing is false, only of tokens that the caller may read. */
async function findByFingerprint(context: Context, value: string, more: readonly Condition[] = []) {
  const { store, caller } = context
  const conditions = [{ field: 'fingerprint', value }, ...more]
  // The index has short digests, so the fingerprint is compared as well.
  const isEqual = ({ fingerprint }: TokenRecord) => fingerprint === value
  if (await context.setting('deduplicate.reveals_existing')) {
    const find = (page: number) =>
      store.find('token', caller.tenant, { where: { and: conditions }, page, size: 1 })
    const { records, total } = await find(1)
    return (total > 1 ? (await find(total)).records : records).find(isEqual)
  }
  const isReadable = matchesId(caller, [])
  const where = await whereGranted(context, conditions, [])
  let oldest: TokenRecord | undefined
  for await (const record of eachRecord(store, 'token', caller.tenant, where))
    if (isEqual(record) && isReadable?.(record, context) !== false) oldest = record
  return oldest
}

/** Frees the id of an expired token. */
async function purgeExpired(context: Context, id: string): Promise<void> {
  const { store, createUuid, caller, containerSets } = context
  const release = (containers: readonly string[]) => containerSets.release(containers)
  context.enqueue(await purgeToken({ store, createUuid, release }, caller.tenant, id))
}

/** The requested id, or a free one from the alias expression; undefined for a UUID. */
async function chooseId({ store, caller }: Context, wanted: GivenId): Promise<string | undefined> {
  if (wanted.kind === 'given') return wanted.id
  for (let draw = 0; draw < ID_DRAWS; draw++) {
    const id = wanted.draw()
    if ((await store.get('token', caller.tenant, id)) === undefined) return id
  }
  return undefined
}

/** The answer to a write: masked, even if the rule reveals. */
export function viewWritten({ caller }: Context, record: TokenRecord, transform: Transform): TokenView {
  const view = viewToken(record, stricterTransform('mask', transform), caller)
  return addExtras(view, { deduplicated: false })
}

const VISIBLE_WITHOUT_READ: ReadonlySet<string> = new Set(
  'id tenant_id type fingerprint containers created_by created_at modified_by modified_at expires_at'.split(
    ' ',
  ),
)

/** The original of a duplicate. A caller without token:read gets {@link VISIBLE_WITHOUT_READ} alone. */
async function showDuplicate(
  context: Context,
  original: TokenRecord,
  log: LogEntry = READ,
  deduplication_behavior: 'read_existing' | 'update_existing' = 'read_existing',
): Promise<TokenView> {
  const transform = context.caller.transform('token:read', original)
  const shown = stricterTransform('mask', transform ?? 'redact')
  logToken(context, original, log, shown)
  const view = viewToken(original, shown)
  const names = Object.keys(view).filter((name) => transform !== undefined || VISIBLE_WITHOUT_READ.has(name))
  const told = Object.fromEntries(names.map((name) => [name, view[name as keyof TokenView]])) as TokenView
  return addExtras(told, { deduplicated: true, deduplication_behavior })
}

/** A copy of an object whose members were set one by one would cost a microsecond. */
function addExtras(view: TokenView, _extras: NonNullable<TokenView['_extras']>): TokenView {
  return Object.assign(view, { _extras })
}
