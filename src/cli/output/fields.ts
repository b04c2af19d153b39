/**
 * Picking fields out of the API's objects by path (`id`, `data.number`, `metadata.a.b`), and writing them as CSV.
 * Pure; it knows nothing of terminals or of what any field means.
 */
import { toJson } from './display.js'

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * The value at a path, undefined when there is none. An array on the way is asked member by member, and a key that
 * itself holds dots is found too, the longest one first.
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

/** That there is no field at a path whose first `level` names there are, and which `names` there are instead. */
export function describeUnknown(path: string, level: number, names: readonly string[]): string {
  const above = path.split('.').slice(0, level).join('.')
  const there = names.length === 0 ? 'no fields' : names.join(', ')
  return `There is no field "${path}". ${above === '' ? 'There are' : `Below ${above} there are`}: ${there}.`
}

/** The object with nothing but the fields asked for, in that order, at the places where they were. */
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

/** The longest own key that is the path or starts it, up to a dot. */
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

/** What a spreadsheet would take for a formula, the full-width spellings included. */
const FORMULA_START = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/

/** Text that a spreadsheet shows instead of running it: an apostrophe stands before whatever looks like a formula. */
export function neutralize(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text
}

/** The text of a cell. Numbers are left alone: no spreadsheet takes a `-5` for anything but itself. */
export function toCsvCell(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? neutralize(value) : toJson(value)
}
