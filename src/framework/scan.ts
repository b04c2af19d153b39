/**
 * Lists filtered by something that is not indexed, such as a part of a name: reads every record, in several units of
 * work. For kinds of which a tenant has few records.
 */
import type { Kind, RecordOf } from '../domain/records.js'
import type { Condition, RecordLocation } from '../storage/store.js'
import type { Context, Session } from './operation.js'
import { BYTES_AT_ONCE, type Listing, type PageRequest, readPage } from './page.js'

const EVERYTHING = { page: 1, size: Number.MAX_SAFE_INTEGER }

/** A page of the records of `tenants` that `matches` holds for (default: all), newest first, and their exact number. */
export async function readScanned<K extends Kind, View>(
  session: Session,
  { kind, tenants, narrow, matches }: Scan<K>,
  { page = 1, size = 20 }: PageRequest,
  listing: Omit<Listing<K, View>, 'locate'>,
) {
  const all = await session.inUnit(async (context) => {
    const query = { ...EVERYTHING, ...(await narrow?.(context)) }
    const locations: RecordLocation<K>[] = []
    for (const tenant of tenants)
      locations.push(...(await context.store.locate(kind, tenant, query)).locations)
    return locations
  })
  const found = matches === undefined ? all : await filter(session, all, matches)
  found.sort((left, right) => right.seq - left.seq)
  const locations = found.slice((page - 1) * size, page * size)
  return readPage(
    session,
    { page, size },
    { locate: async () => ({ locations, total: found.length }), ...listing },
  )
}

export interface Scan<K extends Kind> {
  kind: K
  tenants: readonly number[]
  /** What is read of the records at all; default: everything. */
  narrow?: (context: Context) => Promise<{ where?: Condition }>
  matches?: ((record: RecordOf[K]) => boolean) | undefined
}

/** Those of the records for which `matches` holds, read in several units of work. */
export async function filter<K extends Kind>(
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
