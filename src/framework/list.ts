/** Reads lists, by page or by cursor. A list uses several units of work, so that other requests run in between. */
import type { Kind, RecordOf } from '../domain/records/records.js'
import { invalid } from '../errors.js'
import type { Condition, RecordLocation, StoreReader } from '../storage/store.js'
import type { Context, Session } from './context.js'
import { EncodedJson, pageTooLarge } from './limits.js'
import { type CursorPage, type List, listOf, type PageRequest } from './page.js'

/** How many bytes one unit of work reads. A single record may be larger. */
const BYTES_AT_ONCE = 256 * 1024
const EVERYTHING = { page: 1, size: Number.MAX_SAFE_INTEGER }

/** The functions may run again, because the engine of a store may repeat a unit of work. */
export interface Listing<K extends Kind, View> {
  kind: K
  tenants?: readonly number[]
  where?(context: Context): Promise<Condition | undefined>
  /** For a condition that no index covers. Each record that the indexes find is decrypted for this check. */
  matches?: ((record: RecordOf[K], context: Context) => boolean) | undefined
  /** Returns undefined if the caller may no longer see the record. */
  show(context: Context, record: RecordOf[K]): View | undefined | Promise<View | undefined>
  /**
   * Returns a function that logs the record when the whole page is complete. The function must not hold the record in
   * memory.
   */
  log?(record: RecordOf[K]): (context: Context) => Promise<void>
}

/**
 * Newest first. If `session.limits.wantsEncoded` is set, returns JSON text. If a page is refused, for example because
 * the page is too large, the reads of its records are not logged.
 * @throws CofferError `validation`, `unavailable`
 */
export async function readList<K extends Kind, View>(
  session: Session,
  listing: Listing<K, View>,
  request: PageRequest,
): Promise<List<View> | EncodedJson> {
  const plan = await planPage(session, listing, request)
  return session.limits.wantsEncoded
    ? readEncoded(session, listing, plan)
    : readDecoded(session, listing, plan)
}

/** Like {@link readList}, for a handler that uses the items itself. */
export async function readPage<K extends Kind, View>(
  session: Session,
  listing: Listing<K, View>,
  request: PageRequest,
): Promise<List<View>> {
  return readDecoded(session, listing, await planPage(session, listing, request))
}

async function planPage<K extends Kind, View>(
  session: Session,
  listing: Listing<K, View>,
  { page = 1, size = 20 }: PageRequest,
): Promise<Plan<K, View, { total: number }, List<View>>> {
  const { kind, matches, tenants = [session.caller.tenant] } = listing
  const isIndexed = matches === undefined && tenants.length === 1
  const scanned = isIndexed ? undefined : await scan(session, listing, tenants)
  const locate = async (context: Context) => {
    if (scanned === undefined)
      return context.store.locate(kind, tenants[0]!, { page, size, ...(await queryOf(context, listing)) })
    return { locations: scanned.slice((page - 1) * size, page * size), total: scanned.length }
  }
  return { locate, form: (data, { total }) => listOf(data, total, { page, size }) }
}

/**
 * Newest first. A page far from the beginning costs no more than the first page. A cursor is valid only for its tenant
 * and its `about`.
 * @throws CofferError `validation` if `start` is not a valid cursor
 */
export async function readListByCursor<K extends Kind, View>(
  session: Session,
  { about, ...listing }: Listing<K, View> & { about: string },
  { start, size = 20 }: { start?: string; size?: number },
): Promise<CursorPage<View> | EncodedJson> {
  const { tenant } = session.caller
  const { kind, matches } = listing
  /** Finds up to one record more than the page holds. The additional record shows that there is a next page. */
  const seek = async (context: Context, last?: RecordLocation<K>) => {
    let below = last?.seq
    if (last === undefined && start !== undefined) {
      below = await context.store.openCursor(tenant, about, start)
      if (below === undefined) throw invalid('start', 'must be the `next` of a page with the same filters')
    }
    return context.store.seek(kind, tenant, { size: size + 1, below, ...(await queryOf(context, listing)) })
  }
  const scanned: RecordLocation<K>[] = []
  for (let last: RecordLocation<K> | undefined; matches !== undefined && scanned.length <= size; ) {
    const some = await session.inUnit((context) => seek(context, last))
    scanned.push(...(await filter(session, some, matches)))
    if (some.length <= size) break
    last = some.at(-1)
  }
  const locate = async (context: Context) => {
    const found = matches === undefined ? await seek(context) : scanned
    const locations = found.slice(0, size)
    if (found.length === locations.length) return { locations }
    return { locations, next: await context.store.sealCursor(tenant, about, locations.at(-1)!.seq) }
  }
  const form = (data: View[], next: { next?: string }) => ({ pagination: { page_size: size, ...next }, data })
  const plan = { locate, form }
  return session.limits.wantsEncoded
    ? readEncoded(session, listing, plan)
    : readDecoded(session, listing, plan)
}

async function queryOf<K extends Kind>(context: Context, { where }: Pick<Listing<K, unknown>, 'where'>) {
  const condition = await where?.(context)
  return condition === undefined ? {} : { where: condition }
}

async function scan<K extends Kind>(
  session: Session,
  listing: Listing<K, unknown>,
  tenants: readonly number[],
): Promise<RecordLocation<K>[]> {
  const { kind, matches } = listing
  let found: RecordLocation<K>[] = []
  for (const tenant of tenants) {
    const { locations } = await session.inUnit(async (context) =>
      context.store.locate(kind, tenant, { ...EVERYTHING, ...(await queryOf(context, listing)) }),
    )
    found = found.concat(matches === undefined ? locations : await filter(session, locations, matches))
  }
  return found.sort((left, right) => right.seq - left.seq)
}

async function filter<K extends Kind>(
  session: Session,
  locations: readonly RecordLocation<K>[],
  matches: NonNullable<Listing<K, unknown>['matches']>,
): Promise<RecordLocation<K>[]> {
  const found: RecordLocation<K>[] = []
  for (let left = locations; left.length > 0; ) {
    const part = await session.inUnit(async (context) => {
      const matching: RecordLocation<K>[] = []
      const rest = await openSome(context.store, left, (record, location) => {
        if (matches(record, context)) matching.push(location)
        return 0
      })
      return { matching, rest }
    })
    found.push(...part.matching)
    left = part.rest
  }
  return found
}

/**
 * Opens records until {@link BYTES_AT_ONCE} bytes are read, and returns the remaining locations. `take` returns the
 * size of its result in bytes.
 */
async function openSome<K extends Kind>(
  store: StoreReader,
  locations: readonly RecordLocation<K>[],
  take: (record: RecordOf[K], location: RecordLocation<K>, isLast: boolean) => number | Promise<number>,
): Promise<readonly RecordLocation<K>[]> {
  let next = 0
  for (let done = 0; next < locations.length && done < BYTES_AT_ONCE; next++) {
    const location = locations[next]!
    const record = await store.open(location)
    const made = record === undefined ? 0 : await take(record, location, next === locations.length - 1)
    done += Math.max(location.bytes, made)
  }
  return locations.slice(next)
}

interface Plan<K extends Kind, View, Rest, Page> {
  locate(context: Context): Promise<{ locations: RecordLocation<K>[] } & Rest>
  /** Requires: the items are the last member of the page. */
  form(items: View[], rest: Rest): Page
}

async function readDecoded<K extends Kind, View, Rest, Page>(
  session: Session,
  listing: Listing<K, View>,
  plan: Plan<K, View, Rest, Page>,
): Promise<Page> {
  const { items, rest } = await readItems(session, listing, plan, (view) => view)
  return plan.form(items, rest)
}

/** Keeps the JSON of each item instead of the item, so that a large page is encoded in parts. */
async function readEncoded<K extends Kind, View, Rest, Page>(
  session: Session,
  listing: Listing<K, View>,
  plan: Plan<K, View, Rest, Page>,
): Promise<EncodedJson> {
  const { items, rest } = await readItems(session, listing, plan, (_, { text }) => text)
  const around = JSON.stringify(plan.form([], rest)).slice(0, -']}'.length)
  return new EncodedJson(undefined, `${around}${items.join(',')}]}`)
}

/** `keep` converts an item to the form that stays in memory until the page is complete. */
async function readItems<K extends Kind, View, Rest, Page, Kept>(
  { inUnit, limits, present }: Session,
  { show, log }: Listing<K, View>,
  { locate, form }: Plan<K, View, Rest, Page>,
  keep: (view: View, json: EncodedJson) => Kept,
): Promise<{ items: Kept[]; rest: Rest }> {
  const { maxBytes, isStrict } = limits
  const begin = async (context: Context) => {
    const { locations, ...others } = await locate(context)
    const rest = others as unknown as Rest
    const logs: ((context: Context) => Promise<void>)[] = []
    const left: readonly RecordLocation<K>[] = locations
    const { bytes } = new EncodedJson(form([], rest))
    return { items: [] as Kept[], logs, bytes, left, rest }
  }
  let progress: Awaited<ReturnType<typeof begin>> | undefined
  do
    progress = await inUnit(async (context) => {
      const before = progress ?? (await begin(context))
      // The items and logs are copied, because the engine may repeat the unit of work from the state `before`.
      const [items, logs] = [[...before.items], [...before.logs]]
      let { bytes } = before
      const most = before.left.reduce((sum, location) => sum + location.bytes, bytes)
      limits.reserve(Math.min(maxBytes, most))
      const left = await openSome(context.store, before.left, async (record, _, isLast) => {
        const view = await show(context, record)
        if (view === undefined) return 0
        const presented = present(view)
        const json = new EncodedJson(presented)
        items.push(keep(presented, json))
        bytes += json.bytes + 1
        const isAlone = items.length === 1 && isLast
        if (bytes > maxBytes && (isStrict || !isAlone)) throw pageTooLarge(limits, isAlone)
        if (log !== undefined) logs.push(log(record))
        return json.bytes
      })
      if (left.length === 0) {
        limits.reserve(bytes)
        for (const each of logs) await each(context)
      }
      return { items, logs, bytes, left, rest: before.rest }
    })
  while (progress.left.length > 0)
  return { items: progress.items, rest: progress.rest }
}
