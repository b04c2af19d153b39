/**
 * Reads the configuration of a tenant over the API, as a seed. Reads no tokens, no people and no keys. The server may
 * be hostile, so everything that it sends has a limit.
 */
import { isObject } from '../domain/json/json.js'
import { CofferError } from '../errors.js'
import { attributesOf, type Item, isKnownAttribute, readItem } from '../operations/seed/seed-items.js'
import type { ListName } from '../operations/seed/seed-schema.js'
import { MAX_SEEDED_OTHERS } from '../operations/seed/seed-schema.js'
import { LISTENER_NAME } from '../operations/webhook/listener.js'

const PAGE = 100
export const MAX_ANSWER_MIB = 16
/** The limit for all records together, as characters of JSON. */
const MAX_CHARACTERS = 16 * 1024 * 1024
const MAX_MS = 10 * 60_000
const MAX_NAMES = 100
const SHOWN_CHARACTERS = 100

/** The parts of a tenant in the order of the requests. `pages`: whether the list has pages. */
export const PARTS = [
  { part: 'settings', operation: 'tenant get', permission: 'tenant:read', pages: false },
  { part: 'applications', operation: 'app list', permission: 'application:read', pages: true },
  { part: 'formulas', operation: 'formula list', permission: 'reactor:read', pages: true },
  { part: 'reactors', operation: 'reactor list', permission: 'reactor:read', pages: true },
  { part: 'proxies', operation: 'proxy list', permission: 'proxy:read', pages: true },
  { part: 'webhooks', operation: 'webhook list', permission: 'webhook:read', pages: false },
] as const

type PulledList = Exclude<(typeof PARTS)[number]['part'], 'settings'>
export type PulledSeed = { name?: string; settings?: object } & Partial<Record<PulledList, Item[]>>

export interface PulledTenant {
  seed: PulledSeed
  unread: { part: string; status: number; permission: string }[]
  /** Attributes that Coffer does not know, as `list.attribute`. */
  unknown: string[]
  unresolved: string[]
}

interface Effects {
  ask(operation: string, input: Readonly<Record<string, unknown>>): Promise<unknown>
  /** ms since the epoch. */
  clock(): number
  show(count: number): Promise<void>
}

/** The first page is 1. */
export function pageInputOf({ pages }: { pages: boolean }, page: number): Record<string, unknown> {
  return pages ? { page, size: PAGE } : {}
}

/**
 * @throws CofferError `too_large`, `unavailable`, `request_timeout`, and errors of requests except 403, 404, 405 and
 * 501
 */
export async function readTenant(effects: Effects): Promise<PulledTenant> {
  const reader = new TenantReader(effects)
  await reader.read()
  return reader.result
}

class TenantReader {
  readonly result: PulledTenant = { seed: {}, unread: [], unknown: [], unresolved: [] }
  readonly #effects: Effects
  readonly #startedMs: number
  #characters = 0
  #count = 0

  constructor(effects: Effects) {
    this.#effects = effects
    this.#startedMs = effects.clock()
  }

  async read(): Promise<void> {
    const { seed, unread } = this.result
    const lists = new Map<PulledList, Item[]>()
    for (const { part, operation, permission, pages } of PARTS) {
      try {
        if (part === 'settings') this.#readSettings(await this.#ask(operation, {}))
        else lists.set(part, await this.#readList(part, operation, pages))
      } catch (error) {
        if (!isUnreadable(error)) throw error
        unread.push({ part, status: error.status, permission })
      }
    }
    if (unread.length === PARTS.length)
      throw new CofferError('forbidden', 'This key can read nothing of the tenant. Use a management key.')
    const formulas = lists.get('formulas')
    if (formulas !== undefined)
      lists.set('formulas', this.#chooseFormulas(formulas, lists.get('reactors') ?? []))
    // The webhook of a listener is left out, because this webhook is deleted when the listener ends.
    const webhooks = lists.get('webhooks')
    if (webhooks !== undefined)
      lists.set(
        'webhooks',
        webhooks.filter(({ name }) => name !== LISTENER_NAME),
      )
    // A list of the server begins with the newest record. A seed begins with the oldest record.
    for (const [list, items] of lists)
      seed[list] = items.toReversed().map((item) => this.#toSeedItem(list, item, lists))
  }

  #readSettings(answer: unknown): void {
    if (!isObject(answer)) throw notAList('settings')
    const { name, settings } = answer
    const { seed } = this.result
    if (typeof name === 'string') seed.name = name
    if (!isObject(settings)) return
    const known = ['deduplicate_tokens', 'disable_ephemeral_proxy']
    seed.settings = Object.fromEntries(Object.entries(settings).filter(([each]) => known.includes(each)))
    for (const each of Object.keys(settings)) if (!known.includes(each)) this.#noteUnknown('settings', each)
  }

  async #readList(list: PulledList, operation: string, pages: boolean): Promise<Item[]> {
    const items = new Map<string, Item>()
    for (let page = 1; ; page++) {
      const answer = await this.#ask(operation, pageInputOf({ pages }, page))
      const { data, pagination } = isObject(answer) ? answer : {}
      if (!Array.isArray(data) || !data.every(isObject)) throw notAList(list)
      const before = items.size
      for (const item of data as Item[]) {
        if (typeof item.id !== 'string') throw notAList(list)
        items.set(item.id, item)
      }
      if (items.size > MAX_SEEDED_OTHERS)
        throw new CofferError(
          'too_large',
          `The server has more than ${MAX_SEEDED_OTHERS} ${list}, the limit of a seed.`,
        )
      this.#count += items.size - before
      await this.#effects.show(this.#count)
      const last = isObject(pagination) ? pagination.total_pages : undefined
      const isLast = typeof last === 'number' ? page >= last : data.length < PAGE
      if (!pages || data.length === 0 || isLast) return [...items.values()]
      if (items.size === before)
        throw new CofferError('unavailable', `The server sends the same page of ${list} again and again.`)
    }
  }

  async #ask(operation: string, input: Readonly<Record<string, unknown>>): Promise<unknown> {
    if (this.#effects.clock() - this.#startedMs > MAX_MS)
      throw new CofferError('request_timeout', `The tenant was not read within ${MAX_MS / 60_000} minutes.`)
    const answer = await this.#effects.ask(operation, input)
    this.#characters += JSON.stringify(answer ?? null).length
    if (this.#characters > MAX_CHARACTERS)
      throw new CofferError(
        'too_large',
        `The records of the server have more than ${MAX_CHARACTERS.toLocaleString('en')} characters, which is the limit.`,
      )
    return answer
  }

  /** Drops official formulas that no reactor runs, because official formulas belong to the service. */
  #chooseFormulas(formulas: readonly Item[], reactors: readonly Item[]): Item[] {
    const used = new Set(reactors.map(({ formula }) => (isObject(formula) ? formula.id : undefined)))
    return formulas.filter(({ id, type }) => type !== 'official' || used.has(id))
  }

  #toSeedItem(list: PulledList, item: Item, lists: ReadonlyMap<PulledList, readonly Item[]>): Item {
    for (const name of Object.keys(item)) if (!isKnownAttribute(list, name)) this.#noteUnknown(list, name)
    const { key: _, ...given } = readItem(list, item)
    const shown: Record<string, unknown> = {}
    for (const name of attributesOf(list)) {
      const value = given[name]
      if (value === null || value === undefined || value === '') continue
      shown[name] = value
    }
    if (list === 'proxies')
      for (const each of ['request_transform', 'response_transform']) preferList(shown, each)
    const label = `${list}: ${String(item.name ?? item.id).slice(0, SHOWN_CHARACTERS)}`
    this.#resolve(shown, 'application', { label, known: lists.get('applications') })
    this.#resolve(shown, 'formula', { label, known: lists.get('formulas') })
    this.#resolve(shown, 'request_reactor_id', { label, known: lists.get('reactors') })
    this.#resolve(shown, 'response_reactor_id', { label, known: lists.get('reactors') })
    return shown
  }

  /** Replaces an embedded record by its id. Removes the reference if the record is not part of the seed. */
  #resolve(
    item: Record<string, unknown>,
    name: string,
    { label, known = [] }: { label: string; known?: readonly Item[] | undefined },
  ): void {
    const given = item[name]
    if (given === undefined) return
    const id = isObject(given) ? given.id : given
    if (id === undefined || known.some((each) => each.id === id)) {
      if (id === undefined) delete item[name]
      else if (isObject(given)) item[name] = { id }
      return
    }
    delete item[name]
    this.result.unresolved.push(`${label}: ${name}`)
  }

  #noteUnknown(list: ListName | 'settings', name: string): void {
    const { unknown } = this.result
    const text = `${list}.${name.slice(0, SHOWN_CHARACTERS)}`
    if (unknown.length < MAX_NAMES && !unknown.includes(text)) unknown.push(text)
  }
}

/** If a record contains a transform both as a single value and as a list, removes the single value. */
function preferList(item: Record<string, unknown>, single: string): void {
  if (item[`${single}s`] !== undefined) delete item[single]
}

const UNREADABLE = [403, 404, 405, 501]

function isUnreadable(error: unknown): error is CofferError {
  return error instanceof CofferError && error.code !== 'usage' && UNREADABLE.includes(error.status)
}

function notAList(part: string): CofferError {
  return new CofferError(
    'unavailable',
    `The answer of the server for ${part} does not have the form of the API. Check --url.`,
  )
}
