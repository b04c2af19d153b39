/**
 * Reads lists, by page or by cursor, in several units of work, so that other calls are served in between, up to the size
 * limit of an answer.
 */
import type { Kind, RecordOf } from '../domain/records/records.js'
import { invalid } from '../errors.js'
import type { Condition, RecordLocation } from '../storage/store.js'
import type { Context, Session } from './operation.js'
import { type CursorPage, type List, listOf, type PageRequest } from './page.js'
import { JsonText, refuseOne, refusePage } from './recipient.js'

/** Bytes that one unit of work reads; a single record may be larger. */
const BYTES_AT_ONCE = 256 * 1024
const EVERYTHING = { page: 1, size: Number.MAX_SAFE_INTEGER }

/** How the records of a list are found, shown and logged. An engine may repeat the unit of work that calls these. */
export interface Listing<K extends Kind, View> {
  kind: K
  /** Default: the caller's. */
  tenants?: readonly number[]
  /** Default: all records. */
  where?(context: Context): Promise<Condition | undefined>
  /** Decides what no index tells: each record that is found is opened for it. */
  matches?: ((record: RecordOf[K]) => boolean) | undefined
  /** Returns the record as the caller sees it; undefined if the caller may no longer see it. */
  show(context: Context, record: RecordOf[K]): View | undefined | Promise<View | undefined>
  /** Returns the logging of a record, called after the whole page was accepted. Contract: it references nothing large. */
  log?(record: RecordOf[K]): (context: Context) => Promise<void>
}

/**
 * Returns a page of the records, newest first, with their exact number. Records that are removed meanwhile are missing
 * from it. A refused page is not logged.
 * @throws CofferError `validation` for a page that is too large, `unavailable`
 */
export async function readList<K extends Kind, View>(
  session: Session,
  listing: Listing<K, View>,
  { page = 1, size = 20 }: PageRequest,
): Promise<List<View>> {
  const { kind, matches, tenants: [tenant = session.caller.tenant, ...others] = [] } = listing
  const isIndexed = matches === undefined && others.length === 0
  const scanned = isIndexed ? undefined : await scan(session, listing, [tenant, ...others])
  const locate = async (context: Context) => {
    if (scanned === undefined)
      return context.store.locate(kind, tenant, { page, size, ...(await conditionOf(context, listing)) })
    return { locations: scanned.slice((page - 1) * size, page * size), total: scanned.length }
  }
  return readItems(session, listing, locate, (data, { total }) => listOf(data, total, { page, size }))
}

/**
 * Returns the page after the cursor `start`, newest first, at the same cost at any depth. Records that are created later
 * are in no page that follows, and removed ones move no other. `about`: what a cursor is bound to besides the tenant.
 * @throws CofferError as {@link readList}; `validation` for a `start` that is not a cursor of this list
 */
export async function readListByCursor<K extends Kind, View>(
  session: Session,
  listing: Listing<K, View> & { about: string },
  { start, size = 20 }: { start?: string; size?: number },
): Promise<CursorPage<View>> {
  const { tenant } = session.caller
  const { kind, about, matches } = listing
  /** Finds at most one record more than the page holds, which says that there is a next page. */
  const seek = async (context: Context, from?: number) => {
    const below =
      from ?? (start === undefined ? undefined : await context.store.openCursor(tenant, about, start))
    if (below === undefined && start !== undefined)
      throw invalid('start', 'must be the `next` of a page with the same filters')
    return context.store.seek(kind, tenant, {
      size: size + 1,
      below,
      ...(await conditionOf(context, listing)),
    })
  }
  const scanned: RecordLocation<K>[] = []
  for (let below: number | undefined; matches !== undefined && scanned.length <= size; ) {
    const some = await session.inUnit((context) => seek(context, below))
    scanned.push(...(await filter(session, some, matches)))
    if (some.length <= size) break
    below = some.at(-1)!.seq
  }
  const locate = async (context: Context) => {
    const found = matches === undefined ? await seek(context) : scanned
    const locations = found.slice(0, size)
    if (found.length === locations.length) return { locations }
    return { locations, next: await context.store.sealCursor(tenant, about, locations.at(-1)!.seq) }
  }
  return readItems(session, listing, locate, (data, next) => ({
    pagination: { page_size: size, ...next },
    data,
  }))
}

async function conditionOf<K extends Kind>(context: Context, { where }: Pick<Listing<K, unknown>, 'where'>) {
  const condition = await where?.(context)
  return condition === undefined ? {} : { where: condition }
}

/** Reads every record. For kinds of which a tenant has few. */
async function scan<K extends Kind>(
  session: Session,
  listing: Listing<K, unknown>,
  tenants: readonly number[],
) {
  const { kind, matches } = listing
  const all = await session.inUnit(async (context) => {
    const query = { ...EVERYTHING, ...(await conditionOf(context, listing)) }
    const locations: RecordLocation<K>[] = []
    for (const tenant of tenants)
      locations.push(...(await context.store.locate(kind, tenant, query)).locations)
    return locations
  })
  const found = matches === undefined ? all : await filter(session, all, matches)
  return found.sort((left, right) => right.seq - left.seq)
}

async function filter<K extends Kind>(
  { inUnit }: Session,
  locations: readonly RecordLocation<K>[],
  matches: (record: RecordOf[K]) => boolean,
): Promise<RecordLocation<K>[]> {
  const found: RecordLocation<K>[] = []
  for (let first = 0; first < locations.length; ) {
    const part = await inUnit(async ({ store }) => {
      const matching: RecordLocation<K>[] = []
      let next = first
      for (let bytes = 0; next < locations.length && bytes < BYTES_AT_ONCE; next++) {
        const location = locations[next]!
        const record = await store.open(location)
        if (record !== undefined && matches(record)) matching.push(location)
        bytes += location.bytes
      }
      return { matching, next }
    })
    found.push(...part.matching)
    first = part.next
  }
  return found
}

interface Progress<K extends Kind, View, Found> {
  items: View[]
  logs: ((context: Context) => Promise<void>)[]
  /** Length of the page so far, as JSON. */
  bytes: number
  left: readonly RecordLocation<K>[]
  found: Found
}

/** Reads what `locate` finds; `form` makes a page of the items and of what else was found. */
async function readItems<K extends Kind, View, Found extends { locations: RecordLocation<K>[] }, Page>(
  { inUnit, recipient }: Session,
  { show, log }: Listing<K, View>,
  locate: (context: Context) => Promise<Found>,
  form: (items: View[], found: Omit<Found, 'locations'>) => Page,
): Promise<Page> {
  type State = Progress<K, View, Omit<Found, 'locations'>>
  const { mostBytes, isStrict, wantsText } = recipient
  const begin = async (context: Context): Promise<State> => {
    const { locations: left, ...found } = await locate(context)
    return { items: [], logs: [], bytes: new JsonText(form([], found)).bytes, left, found }
  }
  let progress: State | undefined
  const readSome = async (context: Context): Promise<State> => {
    const { left, found, ...before } = progress ?? (await begin(context))
    // Copies: the unit of work may be repeated.
    const items = [...before.items]
    const logs = [...before.logs]
    let { bytes } = before
    recipient.reserve(
      Math.min(
        mostBytes,
        left.reduce((sum, location) => sum + location.bytes, bytes),
      ),
    )
    let next = 0
    for (let done = 0; next < left.length && done < BYTES_AT_ONCE; next++) {
      const location = left[next]!
      const record = await context.store.open(location)
      const view = record === undefined ? undefined : await show(context, record)
      if (record === undefined || view === undefined) continue
      const json = new JsonText(view)
      items.push(wantsText ? (json as View) : view)
      bytes += json.bytes + 1
      done += Math.max(location.bytes, json.bytes)
      const isAlone = items.length === 1 && next === left.length - 1
      if (bytes > mostBytes && (isStrict || !isAlone))
        throw isAlone ? refuseOne(recipient) : refusePage(recipient)
      if (log !== undefined) logs.push(log(record))
    }
    if (next === left.length) {
      recipient.reserve(bytes)
      for (const each of logs) await each(context)
    }
    return { items, logs, bytes, left: left.slice(next), found }
  }
  do progress = await inUnit(readSome)
  while (progress.left.length > 0)
  return form(progress.items, progress.found)
}
