/**
 * Pagination: the input and output schemas of lists, and reading a page in several units of work, so that other calls
 * are served in between, up to the size limit of an answer.
 */
import type { Kind, RecordOf } from '../domain/records.js'
import type { RecordLocation } from '../storage/store.js'
import type { Context, Session } from './operation.js'
import { arrayOf, component, count, object } from './output.js'
import { JsonText, refuseOne, refusePage } from './recipient.js'
import { type Infer, memberOf, type NumberSchema, type ObjectSchema, type Schema } from './schema.js'

/** Bytes that one unit of work reads; a single record may be larger. */
export const BYTES_AT_ONCE = 256 * 1024

export interface List<T> {
  pagination: Infer<typeof paginationOutput>
  data: T[]
}

const paginationOutput = component('Pagination', [], {
  total_items: count,
  page_number: count,
  page_size: count,
  total_pages: count,
})

export function listOutput<const S extends Schema>(item: S) {
  return object({ pagination: paginationOutput, data: arrayOf(item) })
}

/** The schema of the members of a list or an array; for any other output, the output itself. */
export function itemOutput(output: Schema): Schema {
  const { pagination, data } = (output.type === 'object' && output.properties) || {}
  return memberOf(pagination === undefined || data === undefined ? output : data)
}

export interface PageRequest {
  page?: number
  size?: number
}

/** `page` and `size` for a list whose pages hold at most `largest` items. */
export function pageInput<const L extends number>(largest: L) {
  return {
    page: { type: 'integer', minimum: 1, default: 1, description: 'The number of the page, from 1.' },
    size: {
      type: 'integer',
      minimum: 1,
      maximum: largest,
      default: 20,
      description: `Items per page, at most ${largest}.`,
    },
  } as const satisfies Record<string, NumberSchema>
}

export const PAGE_PROPERTIES: readonly string[] = Object.keys(pageInput(1))

export function isPaged({ properties = {} }: ObjectSchema): boolean {
  return PAGE_PROPERTIES.every((property) => Object.hasOwn(properties, property))
}

/** The page number `page` of `total` items; beyond the last page `data` is empty. */
export function listOf<T>(data: T[], total: number, { page, size }: Required<PageRequest>): List<T> {
  return {
    pagination: {
      total_items: total,
      page_number: page,
      page_size: size,
      total_pages: Math.ceil(total / size),
    },
    data,
  }
}

/** The locations of a page's records, and the number of all that match. */
export interface Located<K extends Kind> {
  locations: RecordLocation<K>[]
  total: number
}

/** How the records of a page are found and shown. An engine may repeat the unit of work that calls these. */
export interface Listing<K extends Kind, View, Found = Located<K>> {
  locate(context: Context): Promise<Found>
  /** The record as the caller sees it; undefined if the caller may no longer see it. */
  show(context: Context, record: RecordOf[K]): View | undefined | Promise<View | undefined>
  /** The logging of a record, called after the whole page was accepted. Contract: it references nothing large. */
  note?(record: RecordOf[K]): (context: Context) => Promise<void>
}

interface Progress<K extends Kind, View, Found> {
  items: View[]
  notes: ((context: Context) => Promise<void>)[]
  /** Length of the page so far, as JSON. */
  bytes: number
  left: readonly RecordLocation<K>[]
  found: Found
}

/**
 * Reads a page, a large one in several units of work; records removed in between are missing from it. A refused page
 * is not logged.
 * @throws CofferError `validation` for a page that is too large, `unavailable`
 */
export async function readPage<K extends Kind, View>(
  session: Session,
  { page = 1, size = 20 }: PageRequest,
  listing: Listing<K, View>,
): Promise<List<View>> {
  return readItems(session, listing, (data, { total }) => listOf(data, total, { page, size }))
}

/** The same for pages of any form: `form` makes one of its items and of what was found. */
export async function readItems<K extends Kind, View, Found extends Pick<Located<K>, 'locations'>, Page>(
  { inUnit, recipient }: Session,
  { locate, show, note }: Listing<K, View, Found>,
  form: (items: View[], found: Omit<Found, 'locations'>) => Page,
): Promise<Page> {
  type State = Progress<K, View, Omit<Found, 'locations'>>
  const { mostBytes, isStrict, wantsText } = recipient
  const begin = async (context: Context): Promise<State> => {
    const { locations: left, ...found } = await locate(context)
    const { bytes } = new JsonText(form([], found))
    return { items: [], notes: [], bytes, left, found }
  }
  let progress: State | undefined
  const readSome = async (context: Context): Promise<State> => {
    const before = progress ?? (await begin(context))
    const { left, found } = before
    const items = [...before.items]
    const notes = [...before.notes]
    let { bytes } = before
    const wanted = left.reduce((sum, location) => sum + location.bytes, bytes)
    recipient.reserve(Math.min(mostBytes, wanted))
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
      if (note !== undefined) notes.push(note(record))
    }
    if (next === left.length) {
      recipient.reserve(bytes)
      for (const each of notes) await each(context)
    }
    return { items, notes, bytes, left: left.slice(next), found }
  }
  do progress = await inUnit(readSome)
  while (progress.left.length > 0)
  return form(progress.items, progress.found)
}
