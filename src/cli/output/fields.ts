import { isObject } from '../../domain/json/json.js'
import type { List } from '../../framework/page.js'
import { toJson } from './display.js'

export function isList(result: unknown): result is List<unknown> {
  return isObject(result) && Array.isArray(result.data) && isObject(result.pagination)
}

/** Items that are read while they are printed, such as those of all pages. */
export function isStream(result: unknown): result is AsyncIterable<unknown> {
  return typeof result === 'object' && result !== null && Symbol.asyncIterator in result
}

export function itemsOf(result: unknown): readonly unknown[] {
  if (isList(result)) return result.data
  return Array.isArray(result) ? result : [result]
}

export function namesOf(items: readonly unknown[]): string[] {
  return [...new Set(items.flatMap((item) => (isObject(item) ? Object.keys(item) : [])))]
}

/** The value at a path, if any; of an array, those of its members. Keys may have dots: the longest that fits is used. */
export function readField(value: unknown, path: string): unknown {
  if (Array.isArray(value)) {
    const found = value.map((member) => readField(member, path)).filter((member) => member !== undefined)
    return found.length === 0 ? undefined : found
  }
  if (!isObject(value)) return undefined
  const key = findKey(value, path)
  if (key === undefined) return undefined
  return key === path ? value[key] : readField(value[key], path.slice(key.length + 1))
}

/** The object with only these fields, in this order and nested as before. */
export function pickFields(value: unknown, paths: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((member) => pickFields(member, paths))
  if (!isObject(value)) return value
  const below = new Map<string, string[]>()
  for (const path of paths) {
    const key = findKey(value, path)
    if (key === undefined || readField(value, path) === undefined) continue
    below.set(key, [...(below.get(key) ?? []), path.slice(key.length + 1)])
  }
  return Object.fromEntries(
    [...below].map(([key, rests]) => [key, rests.includes('') ? value[key] : pickFields(value[key], rests)]),
  )
}

/** The longest own key that equals the path or a prefix of it before a dot. */
function findKey(value: Record<string, unknown>, path: string): string | undefined {
  for (let end = path.length; end > 0; end = path.lastIndexOf('.', end - 1)) {
    const key = path.slice(0, end)
    if (Object.hasOwn(value, key)) return key
  }
  return undefined
}

/** One line of CSV (RFC 4180, but with `\n`), without its line break; every cell is quoted. */
export function toCsvLine(cells: readonly string[]): string {
  return cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',')
}

/** Characters that start a formula in spreadsheets, full-width forms included; so that `restore` is exact, after apostrophes too. */
const FORMULA_START = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/

/** Prefixes text that looks like a formula with an apostrophe, so that a spreadsheet does not evaluate it. */
export function neutralize(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text
}

/** The text that {@link neutralize} was given. */
export function restore(text: string): string {
  return text.startsWith("'") && FORMULA_START.test(text) ? text.slice(1) : text
}

/** The text of a cell. Numbers are unchanged, because a spreadsheet does not evaluate `-5`. */
export function toCsvCell(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? neutralize(value) : toJson(value)
}
