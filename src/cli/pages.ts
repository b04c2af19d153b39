import { decideTransform, type Grants } from '../domain/access/access.js'
import { isObject } from '../domain/json/json.js'
import { CofferError, usage } from '../errors.js'
import type { OperationInput } from '../framework/context.js'
import { type CursorPage, type List, listOf, PAGE_PROPERTIES } from '../framework/page.js'
import type { NumberSchema } from '../framework/schema.js'
import type { Format } from '../global-flags.js'
import type { TokenView } from '../operations/token/token-attributes.js'
import { isList } from './output/fields.js'
import type { Task } from './task.js'

const LARGEST_PAGE = 1000
/** The page size of lists by cursor, in which late pages are as fast as the first page. */
const CURSOR_PAGE = 100
const NAMES_AT_ONCE = 50
const MAX_NAMES = 10_000
/** The limit for all pages together in a format that is not in `STREAMED`, because memory then contains all pages. */
const MAX_GATHERED_BYTES = 128 * 1024 * 1024
/** Added to the size of each page, so that endless empty pages reach the limit too. */
const PAGE_BYTES = 1024
const STREAMED: readonly Format[] = ['ndjson', 'id', 'value']

type AnyPage = List<unknown> | CursorPage<unknown>

/**
 * Prints all pages of a list. NDJSON, ids and values are printed while pages are read, other formats after the last
 * page.
 */
export async function printPages(task: Task): Promise<void> {
  const { context, definition, input, format } = task
  const { maximum = LARGEST_PAGE }: Partial<NumberSchema> = definition.input.properties?.size ?? {}
  const size = typeof input.size === 'number' ? input.size : Math.min(maximum, LARGEST_PAGE)
  const isEverything = Object.keys(input).every((name) => PAGE_PROPERTIES.includes(name))
  const pages =
    definition.name === 'token list' && isEverything
      ? walkPages(task, { size: CURSOR_PAGE }, context.signal, 'token list-after')
      : walkPages(task, { ...input, size }, context.signal)
  // A process with the role of a server lets other programs use the vault, for example the program that reads this
  // output.
  if (STREAMED.includes(format)) await task.withOpenVault(() => task.print(itemsOf(pages)), 'server')
  else await task.print(await task.withOpenVault(() => collectPages(pages, format)))
}

/** If a page exceeds the size limit, requests smaller pages. Ends early when `signal` is aborted. */
export async function* walkPages(
  { ask }: Pick<Task, 'ask'>,
  input: OperationInput & { size: number },
  signal?: AbortSignal,
  operation?: string,
): AsyncGenerator<AnyPage> {
  let { size } = input
  let next: string | undefined
  for (let done = 0; signal?.aborted !== true; ) {
    // A list by cursor ignores the page number of its first request.
    const place = next === undefined ? { page: done / size + 1 } : { start: next }
    try {
      const list = await ask({ ...input, size, ...place }, operation)
      if (!isList(list)) throw new CofferError('unavailable', 'The answer of the server is not a list.')
      yield list
      done += size
      const pagination: AnyPage['pagination'] = list.pagination
      if ('next' in pagination) next = pagination.next
      // An empty page is the last page, even if the server reports a larger total.
      const isLast = done >= list.pagination.total_items || list.data.length === 0
      if ('total_items' in pagination ? isLast : pagination.next === undefined) return
    } catch (error) {
      const isTooLarge = error instanceof CofferError && error.code === 'page_too_large'
      if (!isTooLarge || size === 1) throw error
      // The new size divides the old size, so that the next page begins where the last page ended.
      const before = size
      for (size = before >> 1; before % size !== 0; ) size--
    }
  }
}

async function* itemsOf(pages: AsyncIterable<AnyPage>): AsyncGenerator<unknown> {
  for await (const { data } of pages) yield* data
}

/** @throws CofferError `usage` for a list of more than {@link MAX_NAMES} records */
export async function listAll(task: Task, noun: string): Promise<unknown[]> {
  const found = new Map<unknown, unknown>()
  let pages = 0
  const things = walkPages(task, { size: NAMES_AT_ONCE }, task.context.signal, `${noun} list`)
  await task.withOpenVault(async () => {
    for await (const { data } of things) {
      for (const thing of data) found.set(isObject(thing) ? thing.id : thing, thing)
      if (++pages > MAX_NAMES / NAMES_AT_ONCE)
        throw usage(
          `\`coffer ${noun} list\` has more than ${MAX_NAMES} records, so names are not looked up. Give an id.`,
        )
    }
  })
  return [...found.values()]
}

async function collectPages(pages: AsyncIterable<AnyPage>, format: Format): Promise<List<unknown>> {
  const items: unknown[] = []
  let bytes = 0
  for await (const { data } of pages) {
    bytes += PAGE_BYTES + Buffer.byteLength(JSON.stringify(data))
    const limit = `${MAX_GATHERED_BYTES / 1024 / 1024} MiB, the limit of --all -o ${format}`
    if (bytes > MAX_GATHERED_BYTES)
      throw new CofferError('too_large', `The list has more than ${limit}. Print it line by line: -o ndjson`)
    for (const item of data) items.push(item)
  }
  return listOf(items, items.length, { page: 1, size: Math.max(1, items.length) })
}

export type IsMasked = (token: TokenView) => boolean

/**
 * Returns undefined for the owner with `--reveal`, who sees all data unmasked. If an application may not read its own
 * rules, all data counts as masked.
 */
export async function findMasked({ ask, key, options }: Task): Promise<IsMasked | undefined> {
  if (key === undefined) return options.reveal === true ? undefined : () => true
  const grants = (await ask({}, 'app whoami').catch(() => ({}))) as Partial<Grants> | null
  const { rules = [], permissions = [] } = grants ?? {}
  return (token) => decideTransform({ rules, permissions }, 'token:read', token) !== 'reveal'
}
