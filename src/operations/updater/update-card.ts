/** Asks the account updater about one stored card. If the card was replaced, creates a token for the new card. */
import { Budget } from '../../domain/expression/budget.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { prepareToken } from '../../domain/token/token.js'
import type { CardChange } from '../../domain/updater/cards.js'
import type { ResultCode } from '../../domain/updater/result-codes.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { Context } from '../../framework/context.js'
import { Existing } from '../../framework/outcome.js'
import { createReplacement } from '../token/create-token.js'
import { logTokenUse } from '../token/token-access.js'
import { CREATED, type TokenView } from '../token/token-attributes.js'

export interface CardRequest {
  token_id: string
  /** Used instead of the expiration date in the token. NaN stands for an invalid month or year in a file. */
  expiration_month?: number | undefined
  expiration_year?: number | undefined
  isBatch: boolean
  /** Default: the setting of the tenant. */
  deduplicates?: boolean | undefined
}

export interface CardUpdate {
  code: ResultCode
  /** The token of the new card, masked. */
  token?: TokenView
  change?: CardChange
}

interface StoredCard {
  number: string
  expiration_month?: number
  expiration_year?: number
}

/** Adds all rights on tokens, because the updater needs no permissions on containers. */
export function updaterCaller({ grants: _, dependsOnId: __, source: ___, ...caller }: Caller): Caller {
  return { ...caller, ...ALL_RIGHTS }
}

export const ALL_RIGHTS: Pick<Caller, 'holds' | 'holdsEverywhere' | 'transform'> = {
  holds: () => true,
  holdsEverywhere: () => true,
  transform: () => 'reveal',
}

/** Requires: the caller of `context` is an {@link updaterCaller}. */
export async function updateCard(context: Context, request: CardRequest): Promise<CardUpdate> {
  const token = await context.store.get('token', context.caller.tenant, request.token_id)
  if (token?.type !== 'card') return { code: 'ERR_INVALID_TOKEN' }
  await logTokenUse(context, token, { operation: 'use', message: 'Token used' })
  const stored = token.data as StoredCard
  const { expiration_month = stored.expiration_month, expiration_year = stored.expiration_year } = request
  if (!isGiven(expiration_month) || !isGiven(expiration_year)) return { code: 'ERR_INVALID_EXP_DATE' }
  // Imported only here, because this module contains the whole table of test cards.
  const { askNetwork } = await import('../../domain/updater/cards.js')
  const change = askNetwork(stored.number, request)
  if (change.code !== 'UPD_PAN' && change.code !== 'UPD_EXP_DATE') return { code: change.code }
  const data = {
    number: change.new_number ?? stored.number,
    expiration_month: change.new_expiration_month ?? expiration_month,
    expiration_year: change.new_expiration_year ?? expiration_year,
  }
  return { code: change.code, token: await createNewToken(context, token, data, request), change }
}

function isGiven(value: number | undefined): value is number {
  return value !== undefined && !Number.isNaN(value)
}

async function createNewToken(
  context: Context,
  old: TokenRecord,
  data: StoredCard,
  { deduplicates }: CardRequest,
): Promise<TokenView> {
  const rules = {
    expressions: await context.expressions(),
    budget: new Budget(context.turns),
    now: context.now,
  }
  const { containers, metadata, mask = null, search_indexes, fingerprint_expression } = old
  const copied = { containers, mask, fingerprint_expression, ...omitUndefined({ metadata, search_indexes }) }
  const draft = await prepareToken({ type: 'card', data, ...copied }, rules)
  const created = await createReplacement(context.as(context.caller, CREATED), draft, rules, deduplicates)
  return created instanceof Existing ? created.result : created
}
