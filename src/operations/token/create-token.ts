/**
 * Creates tokens, also from token intents and from encrypted data. Each creation refuses a token before its first
 * write, because an import continues after a refused row.
 */
import { containerSetId } from '../../domain/access/container.js'
import type { Transform } from '../../domain/access/permissions.js'
import type { TenantRecord, TokenRecord } from '../../domain/records/records.js'
import { isGiven, prepareToken, type TokenDraft, type TokenRules } from '../../domain/token/token.js'
import type { GivenId } from '../../domain/token/token-rendering.js'
import { invalid } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { Existing } from '../../framework/outcome.js'
import { enrichCard } from './card-details.js'
import {
  type Conversion,
  type EncryptedToken,
  EXPRESSIONS,
  type NewToken,
  refuseExpressions,
} from './check-token.js'
import { startCode, stopTimer } from './code-timer.js'
import { fingerprintOf, putOptions } from './draft-row.js'
import { findDuplicate, isDeduplicated, showDuplicate } from './duplicates.js'
import { countCreation, purgeToken } from './lifetime.js'
import { logToken, requireTransform } from './token-access.js'
import { type TokenView, viewWritten } from './token-attributes.js'
import { mergeIntoDuplicate } from './update-token.js'

const ID_DRAWS = 10

type Named = Pick<TokenRecord, 'id' | 'type'> & Partial<Pick<TokenView, 'data' | '_extras'>>
type Show<T> = (context: Context, record: TokenRecord, transform: Transform) => T

/**
 * Creates the token and returns the result of `show`. If the token has a duplicate, returns the duplicate and creates
 * no token.
 * @throws CofferError `forbidden`, `conflict`, or `validation` for the token intent or the encrypted data
 */
export function createToken<T extends Named>(context: Context, wanted: NewToken, show: Show<T>) {
  if ('intent' in wanted) return convertIntent(context, wanted, show)
  if ('jwe' in wanted) return createEncrypted(context, wanted, show)
  return createDraft(context, wanted, show)
}

function createDraft<T extends Named>(context: Context, draft: TokenDraft, show: Show<T>) {
  const answer = (original: TokenRecord) => showDuplicate(context, original)
  return create(context, draft, show, { isInSameContainers: false, answer })
}

async function createEncrypted<T extends Named>(context: Context, wanted: EncryptedToken, show: Show<T>) {
  // Imported only here, because few clients encrypt tokens.
  const { openDraft, withoutData } = await import('./encrypted-token.js')
  const created = await createDraft(context, await openDraft(context, wanted), show)
  return created instanceof Existing ? new Existing(withoutData(created.result)) : withoutData(created)
}

/**
 * Creates a token from the intent, and removes the intent. If the token has a duplicate that the caller may update,
 * updates the duplicate instead of creating the token.
 */
async function convertIntent<T extends Named>(
  context: Context,
  { intent: id, given, budget }: Conversion,
  show: Show<T>,
) {
  const { store, caller, audit } = context
  const intent = await store.get('token_intent', caller.tenant, id)
  if (intent === undefined) throw invalid('token_intent_id', 'refers to a token intent that does not exist')
  if (isGiven(given.type) && given.type !== intent.type)
    throw invalid('type', 'must be the type of the token intent')
  const { token_intent_id: _, ...attributes } = given
  refuseExpressions(context, given, [...EXPRESSIONS, 'id'])
  // The intent of a card can contain a verification code. The token is created without this code.
  const { cvc, ...kept } = intent.type === 'card' ? (intent.data as { cvc?: string }) : {}
  const data = intent.type === 'card' ? kept : intent.data
  const rules = { expressions: await context.expressions(), budget, now: context.now }
  const draft = await prepareToken({ ...attributes, type: intent.type, data }, rules)
  const answer = (original: TokenRecord) => mergeIntoDuplicate(context, original, draft, rules)
  const created = await create(context, draft, show, { isInSameContainers: true, answer })
  // The intent is removed after all checks. An import continues after a refused row, whose intent must still exist.
  await store.remove('token_intent', caller.tenant, id)
  await stopTimer(store, caller.tenant, intent.code)
  audit.record('token_intent', id, {
    operation: 'delete',
    message: 'Token intent converted',
    derivesNoEvent: true,
  })
  const { id: tokenId, type } = created instanceof Existing ? created.result : created
  if (intent.network_token_id !== undefined) {
    // Imported only here, because few token intents have a network token.
    const { passToToken } = await import('../network-token/pass-to-token.js')
    await passToToken(context, intent, tokenId)
  }
  audit.emit({ type: 'token-intent.converted', about: intent, more: { token: { id: tokenId, type } } })
  return created
}

/**
 * Creates the token of a card that replaces another card. If the token has a duplicate that the caller may update,
 * updates and returns the duplicate. `deduplicates`: the default is the setting of the tenant.
 */
export function createReplacement(
  context: Context,
  draft: TokenDraft,
  rules: TokenRules,
  deduplicates: boolean | undefined,
) {
  const answer = (original: TokenRecord) => mergeIntoDuplicate(context, original, draft, rules)
  return create(context, draft, viewWritten, { isInSameContainers: false, answer, deduplicates })
}

interface Found {
  transform: Transform
  tenant: TenantRecord
  fingerprint: string
  /** A token with an equal fingerprint, which can be a duplicate of the new token. */
  original: TokenRecord | undefined
}

/** `isFresh`: the id is new and random, so no other token had this id before. */
interface ChosenId {
  id: string
  isFresh: boolean
}

interface OnDuplicate {
  /** Whether only a token in the same containers counts as a duplicate. */
  isInSameContainers: boolean
  /** Returns the answer to the caller, or undefined if the request must not use `original` as a duplicate. */
  answer(original: TokenRecord): Promise<TokenView | undefined>
  /** If set, replaces the attribute `deduplicate_token` of the draft, and is not stored. */
  deduplicates?: boolean | undefined
}

async function create<T extends Named>(
  context: Context,
  draft: TokenDraft,
  show: Show<T>,
  onDuplicate: OnDuplicate,
): Promise<T | Existing<TokenView>> {
  const found = await gather(context, draft, onDuplicate)
  const { original, transform } = found
  const answer = original && (await onDuplicate.answer(original))
  if (answer !== undefined) return new Existing(answer)
  const chosen = await chooseId(context, draft.id)
  const record = createRecord(context, draft, found, chosen.id)
  await write(context, draft, record, chosen)
  return show(context, record, transform)
}

async function gather(
  context: Context,
  draft: TokenDraft,
  { isInSameContainers, deduplicates }: OnDuplicate,
): Promise<Found> {
  const { containers } = draft.record
  const id = draft.id?.kind === 'given' ? draft.id.id : undefined
  const transform = requireTransform(context, 'token:create', { id, containers })
  const fingerprint = await fingerprintOf(context, draft)
  const tenant = await context.tenant()
  const found = { transform, fingerprint, tenant, original: undefined }
  if (!isDeduplicated(context, tenant, draft, deduplicates)) return found
  const inSame = isInSameContainers ? [{ field: 'containers', value: containerSetId(containers) }] : []
  return { ...found, original: await findDuplicate(context, fingerprint, inSame) }
}

function createRecord(context: Context, draft: TokenDraft, found: Found, id: string): TokenRecord {
  // The spread is the last member. If members followed the spread, V8 would give each object its own hidden class,
  // which costs microseconds.
  return {
    id,
    tenant_id: found.tenant.id,
    fingerprint: found.fingerprint,
    created_by: context.caller.actor.id,
    created_at: context.date,
    ...draft.record,
  }
}

/** @throws CofferError `conflict` if a token has the id */
async function write(
  context: Context,
  draft: TokenDraft,
  record: TokenRecord,
  { id, isFresh }: ChosenId,
): Promise<void> {
  const { store, caller, containerSets } = context
  const storeSet = await containerSets.prepare(record.containers)
  if (!isFresh && (await store.isUsed('token', caller.tenant, id))) {
    await purgeExpired(context, id)
    // An import continues after a refused row, so the row must be refused before the timer of its code is stored.
    await store.requireFree('token', caller.tenant, id)
  }
  if (draft.code !== undefined)
    record.code = await startCode(context, { holder: 'token', holder_id: id }, draft.code)
  const details = await enrichCard(context, record)
  if (details !== undefined) record.card_details = details
  await store.insert('token', caller.tenant, record, { fresh: true, ...putOptions(draft) })
  await storeSet?.()
  if (!isFresh || draft.expires !== undefined) await countCreation(context, record, 'new')
  logToken(context, record)
}

async function purgeExpired(context: Context, id: string): Promise<void> {
  const { store, createUuid, caller, containerSets } = context
  const release = (containers: readonly string[]) => containerSets.release(containers)
  context.enqueue(await purgeToken({ store, createUuid, release }, caller.tenant, id))
}

/** Returns the requested id, a free id from the alias expression, or a UUID. */
async function chooseId(
  { store, caller, createUuid }: Context,
  wanted: GivenId | undefined,
): Promise<ChosenId> {
  if (wanted?.kind === 'given') return { id: wanted.id, isFresh: false }
  for (let draw = 0; wanted !== undefined && draw < ID_DRAWS; draw++) {
    const id = wanted.draw()
    if ((await store.get('token', caller.tenant, id)) === undefined) return { id, isFresh: false }
  }
  return { id: createUuid(), isFresh: true }
}
