/**
 * Records by what no look-up knows, such as a part of a name: every record is looked at, a few in a unit of work. For
 * kinds that a tenant has few of.
 */
import type { Kind, RecordOf } from '../domain/records.js'
import type { Place } from '../storage/store.js'
import type { Session } from './operation.js'
import { type Asked, BYTES_AT_ONCE, type Listing, readPage } from './page.js'

const EVERYTHING = { page: 1, size: Number.MAX_SAFE_INTEGER }

/** The page of all that match in `tenants`, newest first, and their exact number. All match where `matches` is absent. */
export async function readScanned<K extends Kind, View>(
  session: Session,
  { kind, tenants, matches }: Scan<K>,
  { page = 1, size = 20 }: Asked,
  show: Listing<K, View>['show'],
) {
  const all = await session.inUnit(async ({ store }) => {
    const places: Place<K>[] = []
    for (const tenant of tenants) places.push(...(await store.locate(kind, tenant, EVERYTHING)).places)
    return places
  })
  const found = matches === undefined ? all : await filter(session, all, matches)
  found.sort((left, right) => right.seq - left.seq)
  const places = found.slice((page - 1) * size, page * size)
  return readPage(session, { page, size }, { locate: async () => ({ places, total: found.length }), show })
}

export interface Scan<K extends Kind> {
  kind: K
  tenants: readonly number[]
  matches?: ((record: RecordOf[K]) => boolean) | undefined
}

async function filter<K extends Kind>(
  { inUnit }: Session,
  places: readonly Place<K>[],
  matches: (record: RecordOf[K]) => boolean,
): Promise<Place<K>[]> {
  const found: Place<K>[] = []
  for (let next = 0; next < places.length; ) {
    await inUnit(async ({ store }) => {
      for (let bytes = 0; next < places.length && bytes < BYTES_AT_ONCE; next++) {
        const place = places[next]!
        const record = await store.open(place)
        if (record !== undefined && matches(record)) found.push(place)
        bytes += place.bytes
      }
    })
  }
  return found
}
