/** Recognizes the forms of an answer. Pure. */
import { isObject } from '../../domain/json/json.js'
import type { List } from '../../framework/page.js'

export function isList(result: unknown): result is List<unknown> {
  return isObject(result) && Array.isArray(result.data) && isObject(result.pagination)
}

/** Items that are read while they are printed, such as those of all pages. */
export function isStream(result: unknown): result is AsyncIterable<unknown> {
  return typeof result === 'object' && result !== null && Symbol.asyncIterator in result
}

/** The items of a list or an array; any other value is the only item. */
export function itemsOf(result: unknown): readonly unknown[] {
  if (isList(result)) return result.data
  return Array.isArray(result) ? result : [result]
}
