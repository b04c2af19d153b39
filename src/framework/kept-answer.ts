/** Removes the verification codes of cards from stored answers, because answers are kept longer than codes. */
import { canonicalJson, isObject } from '../domain/json/json.js'
import type { TokenRecord } from '../domain/records/records.js'
import { endsCode, withoutCode } from '../domain/token/card-code.js'
import type { StoreReader } from '../storage/store.js'

/** Returns the cards in `answer` that have a verification code with an expiry. Requires: `answer` is a JSON value. */
export async function findCards(store: StoreReader, tenant: number, answer: unknown): Promise<TokenRecord[]> {
  const cards: TokenRecord[] = []
  for (const id of new Set(listCardIds(answer))) {
    const record = await store.get('token', tenant, id)
    if (record !== undefined && endsCode(record)) cards.push(record)
  }
  return cards
}

function listCardIds(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.values(value).flatMap(listCardIds)
  return isObject(value) && value.type === 'card' && typeof value.id === 'string'
    ? [value.id, ...inner]
    : inner
}

/** Requires: `answer` is a JSON value. */
export function withoutCodes<T>(answer: T, cards: readonly TokenRecord[]): T {
  if (cards.length === 0) return answer
  const byId = new Map(cards.map((card) => [card.id, card]))
  const replace = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replace)
    if (!isObject(value)) return value
    const card = value.type === 'card' && typeof value.id === 'string' ? byId.get(value.id) : undefined
    if (card !== undefined && 'data' in value) return { ...value, data: lastingView(value.data, card) }
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replace(inner)]))
  }
  return replace(answer) as T
}

function lastingView(data: unknown, { data: whole, code }: TokenRecord): unknown {
  if (canonicalJson(data) === canonicalJson(whole)) return withoutCode(data)
  return code !== undefined && 'masked' in code ? code.masked : data
}

/**
 * Matches numbers of 3 or 4 digits, which may be verification codes. Does not match the fraction of a second in a date.
 */
const CODES = /(?<![\w.])\d{3,4}(?!\w)/g

/**
 * Returns when the first code of `cards` in the text expires, in ms since the epoch. Returns Infinity if the text
 * contains no code.
 */
export function firstEnd(store: StoreReader, text: string, cards: readonly TokenRecord[]): number {
  if (cards.length === 0) return Number.POSITIVE_INFINITY
  const words = new Set<string>(text.match(CODES))
  const ends = cards
    .filter(({ data }) => words.has((data as { cvc: string }).cvc))
    .map(({ code }) => store.now + code!.until! - store.codeTime)
  return Math.min(...ends)
}
