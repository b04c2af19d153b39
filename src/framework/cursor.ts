/** Lists by cursor: pages without totals, each found from the end of the one before, at the same cost at any depth. */
import type { Kind, RecordOf } from '../domain/records.js'
import { invalid } from '../errors.js'
import type { Condition, RecordLocation } from '../storage/store.js'
import type { Context, Session } from './operation.js'
import { arrayOf, component, count, object, text } from './output.js'
import { type Listing, pageInput, readItems } from './page.js'
import { filter } from './scan.js'
import type { Schema } from './schema.js'

/** One page of a list by cursor; `next` asks for the one after it. */
export interface CursorPage<T> {
  pagination: { page_size: number; next?: string }
  data: T[]
}

/** The output of an operation that answers with a {@link CursorPage}. */
export function cursorOutput<const S extends Schema>(item: S) {
  const pagination = component('CursorPagination', [], {
    page_size: count,
    'next?': { ...text, description: 'The `start` of the next page; absent on the last one.' },
  })
  return object({ pagination, data: arrayOf(item) })
}

export const cursorInput = {
  start: {
    type: 'string',
    maxLength: 200,
    flag: 'after',
    description: 'Where the page before ended: its `next`, under the same filters.',
  },
  size: pageInput(100).size,
} as const

export interface CursorListing<K extends Kind, View> extends Omit<Listing<K, View>, 'locate'> {
  kind: K
  /** What a cursor is bound to besides the tenant: the operation and its filters. */
  about: string
  where(context: Context): Promise<Condition | undefined>
  /** What the condition leaves open; with it, each record that is found is opened to be looked at. */
  matches?: ((record: RecordOf[K]) => boolean) | undefined
}

/**
 * Reads the page after the cursor `start`, newest first. Records that are created later are in no page that follows, and
 * removed ones move no other. @throws CofferError as {@link readItems}; `validation` for a `start` that is not a cursor of
 * this list
 */
export async function readByCursor<K extends Kind, View>(
  session: Session,
  { start, size = 20 }: { start?: string; size?: number },
  { kind, about, where, matches, ...listing }: CursorListing<K, View>,
): Promise<CursorPage<View>> {
  const { tenant } = session.caller
  /** At most one more than the page holds, which says that there is a next one. */
  const seek = async (context: Context, below?: number) => {
    const first =
      below ?? (start === undefined ? undefined : await context.store.openCursor(tenant, about, start))
    if (first === undefined && start !== undefined)
      throw invalid('start', 'must be the `next` of a page with the same filters')
    const condition = await where(context)
    const matching = condition === undefined ? {} : { where: condition }
    return context.store.seek(kind, tenant, { size: size + 1, below: first, ...matching })
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
  return readItems(session, { ...listing, locate }, (data, next) => ({
    pagination: { page_size: size, ...next },
    data,
  }))
}
