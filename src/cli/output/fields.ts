import { isObject } from '../../domain/json/json.js'
import { neutralize, toCsvLine } from '../../domain/text/spreadsheet.js'
import { usage } from '../../errors.js'
import type { List } from '../../framework/page.js'
import type { Format } from '../../global-flags.js'
import { toJson } from './display.js'

export function isList(result: unknown): result is List<unknown> {
  return isObject(result) && Array.isArray(result.data) && isObject(result.pagination)
}

export function itemsOf(result: unknown): readonly unknown[] {
  if (isList(result)) return result.data
  return Array.isArray(result) ? result : [result]
}

/**
 * If a value on the path is an array, returns the values found in its members. If keys contain dots, uses the longest
 * matching key.
 */
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

/** Returns the longest own key that is equal to the path, or to the part of the path before a dot. */
function findKey(value: Record<string, unknown>, path: string): string | undefined {
  for (let end = path.length; end > 0; end = path.lastIndexOf('.', end - 1)) {
    const key = path.slice(0, end)
    if (Object.hasOwn(value, key)) return key
  }
  return undefined
}

/** Returns the text of a cell. A number is not changed, because no spreadsheet evaluates `-5`. */
export function toCsvCell(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? neutralize(value) : toJson(value)
}

export function pick(result: unknown, fields: readonly string[] | undefined): unknown {
  if (fields === undefined) return result
  return isList(result) ? { ...result, data: pickFields(result.data, fields) } : pickFields(result, fields)
}

/** For formats with one line for each item. `result`: an item, a list or a stream. @throws CofferError `usage` */
export async function* linesOf(
  result: unknown,
  format: Format,
  fields: readonly string[] | undefined,
  columns: readonly string[] | undefined,
): AsyncGenerator<string> {
  const items = itemsOf(result)
  if (format === 'csv') {
    const paths = choosePaths(items, fields ?? columns)
    yield toCsvLine(paths.map(neutralize))
    for (const item of items) yield toCsvLine(paths.map((path) => toCsvCell(readField(item, path))))
    return
  }
  const [path] = fields ?? []
  if (format === 'value' && (path === undefined || fields!.length > 1))
    throw usage('--output value prints one field: add --fields NAME.')
  const isStream = typeof result === 'object' && result !== null && Symbol.asyncIterator in result
  for await (const item of isStream ? (result as AsyncIterable<unknown>) : items) {
    const value =
      format === 'id' ? idOf(item) : format === 'value' ? readField(item, path!) : pick(item, fields)
    yield format !== 'ndjson' && typeof value === 'string' ? value : toJson(value ?? null)
  }
}

export function choosePaths(items: readonly unknown[], asked: readonly string[] = []): readonly string[] {
  if (asked.length > 0) return asked
  return [...new Set(items.flatMap((item) => (isObject(item) ? Object.keys(item) : [])))]
}

function idOf(item: unknown): string {
  const id = typeof item === 'string' ? item : readField(item, 'id')
  if (typeof id === 'string') return id
  throw usage('These results have no id. Choose another --output, such as json.')
}
