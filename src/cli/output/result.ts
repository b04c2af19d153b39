/** The shapes in which an operation's answer arrives, and the items in it. Pure; it knows nothing of printing. */
import { isObject } from './fields.js'

/** A list as the API answers it. */
export interface List {
  pagination: { total_items: number; page_number: number; page_size: number; total_pages: number }
  data: readonly unknown[]
}

export function isList(result: unknown): result is List {
  return isObject(result) && Array.isArray(result.data) && isObject(result.pagination)
}

/** Items that come as they are found, such as those of all pages. */
export function isStream(result: unknown): result is AsyncIterable<unknown> {
  return typeof result === 'object' && result !== null && Symbol.asyncIterator in result
}

/** The items of a list or an array; anything else is the one item itself. */
export function itemsOf(result: unknown): readonly unknown[] {
  if (isList(result)) return result.data
  return Array.isArray(result) ? result : [result]
}

/** The items, to be taken one by one. */
export function sourceOf(result: unknown): AsyncIterable<unknown> | readonly unknown[] {
  return isStream(result) ? result : itemsOf(result)
}

/** The items once all of them are there. */
export async function collect(result: unknown): Promise<readonly unknown[]> {
  if (!isStream(result)) return itemsOf(result)
  const items: unknown[] = []
  for await (const item of result) items.push(item)
  return items
}
