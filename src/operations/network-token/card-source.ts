/** Finds the card for a new network token: in the request, in a token or in a token intent. */
import { explainRefusal, type RefusalCode } from '../../domain/network-token/refusals.js'
import type { Lenient } from '../../domain/omit-undefined.js'
import { addError, collect, refuseErrors } from '../../domain/property-errors.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { isGiven } from '../../domain/token/token.js'
import { findTokenType, readData } from '../../domain/token/token-types.js'
import { CofferError, invalid, type PropertyErrors } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import type { Infer, inputSchema } from '../../framework/schema.js'
import { logTokenUse, requireTransform } from '../token/token-access.js'
import type { createAttributes } from './attributes.js'

type Request = Infer<ReturnType<typeof inputSchema<typeof createAttributes, []>>>

interface CardDate {
  expiration_month: number
  expiration_year: number
}

type GivenCard = { number: string } & Partial<CardDate>

export type Card = { number: string } & CardDate

/** `holder`: the token or token intent that contains the card. */
export interface CardSource {
  card: Card
  holder?: TokenRecord
}

const SOURCES = ['data', 'token_id', 'token_intent_id'] as const
const ONLY_ONE = `must be given alone; give only one of ${SOURCES.join(', ')}`

/**
 * Reads no stored data. Returns the card if the request contains the data of the card.
 * @throws CofferError `validation`
 */
export function checkRequest(request: Lenient<Request>): Card | undefined {
  const errors: PropertyErrors = {}
  const given = SOURCES.filter((name) => isGiven(request[name]))
  if (given.length > 1) for (const name of given) addError(errors, name, ONLY_ONE)
  if (given.length === 0) addError(errors, 'data', 'is required, unless token_id or token_intent_id is given')
  refuseErrors(errors)
  if (!given.includes('data')) return undefined
  const data = collect(errors, 'data', () => readData(findTokenType('card'), request.data)) as GivenCard
  refuseErrors(errors)
  const card = withDate(data, request)
  for (const name of ['expiration_month', 'expiration_year'] as const)
    if (card[name] === undefined) addError(errors, `data.${name}`, 'is required')
  refuseErrors(errors)
  return card as Card
}

/**
 * Reads the card from the token or token intent, and logs the use of this record.
 * @throws CofferError `validation` if the record does not exist, `forbidden` or `card_refused`
 */
export async function readHolder(context: Context, request: Request): Promise<CardSource> {
  const holder = await requireHolder(context, request)
  requireTransform(context, 'network-token:create', holder)
  await logTokenUse(context, holder, { operation: 'use', message: 'Token used' })
  if (holder.type !== 'card') throw cardRefused('CARD_DATA_MISSING')
  const card = withDate(holder.data as GivenCard, request)
  if (card.expiration_month === undefined || card.expiration_year === undefined)
    throw cardRefused('CARD_DATA_MISSING')
  return { card: card as Card, holder }
}

export function cardRefused(code: RefusalCode): CofferError {
  return new CofferError('card_refused', explainRefusal(code), { refusal: code })
}

async function requireHolder({ store, caller }: Context, request: Request): Promise<TokenRecord> {
  const { token_id, token_intent_id = '' } = request
  if (token_id !== undefined) {
    const token = await store.get('token', caller.tenant, token_id)
    if (token !== undefined) return token
    throw invalid('token_id', 'refers to a token that does not exist')
  }
  const intent = await store.get('token_intent', caller.tenant, token_intent_id)
  if (intent !== undefined) return intent
  throw invalid('token_intent_id', 'refers to a token intent that does not exist')
}

function withDate(
  { number, expiration_month: month, expiration_year: year }: GivenCard,
  { expiration_month = month, expiration_year = year }: Lenient<Partial<CardDate>>,
): GivenCard {
  return { number, expiration_month, expiration_year } as GivenCard
}
