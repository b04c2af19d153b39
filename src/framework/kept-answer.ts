/** Answers that are kept longer than the codes of the cards that they show. */
import { canonicalJson, isObject } from '../domain/json/json.js'
import type { TokenRecord } from '../domain/records/records.js'
import { withoutCode } from '../domain/token/card-code.js'
import type { StoreReader } from '../storage/store.js'

/**
 * The answer without the codes of cards that the vault will delete. Contract: `answer` is JSON. A code that a reactor has put
 * elsewhere than into a token stays.
 */
export async function withoutCodes(store: StoreReader, tenant: number, answer: unknown): Promise<unknown> {
  const cards = new Map<string, TokenRecord>()
  for (const id of new Set(listCards(answer))) {
    const record = await store.get('token', tenant, id)
    if (record?.code?.until !== undefined) cards.set(id, record)
  }
  return cards.size === 0 ? answer : replaceCards(answer, cards)
}

function* listCards(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  if (isObject(value) && value.type === 'card' && typeof value.id === 'string') yield value.id
  for (const inner of Object.values(value)) yield* listCards(inner)
}

function replaceCards(value: unknown, cards: ReadonlyMap<string, TokenRecord>): unknown {
  if (Array.isArray(value)) return value.map((each) => replaceCards(each, cards))
  if (!isObject(value)) return value
  const record = value.type === 'card' && typeof value.id === 'string' ? cards.get(value.id) : undefined
  if (record !== undefined && 'data' in value) return { ...value, data: lastingView(value.data, record) }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replaceCards(inner, cards)]))
}

/** `data` as an answer shows it: whole, or by the mask. */
function lastingView(data: unknown, { data: whole, code }: TokenRecord): unknown {
  if (canonicalJson(data) === canonicalJson(whole)) return withoutCode(data)
  return code !== undefined && 'masked' in code ? code.masked : data
}
