/**
 * The allowed filters of standard Liquid and their numbers of arguments. Most are the library's; those that it lacks or
 * whose result would depend on the machine are implemented here.
 */
import { CofferError } from '../../errors.js'
import { canonicalJson } from '../json/json.js'
import { FILTERS, type FilterRule, ORDERED_FILTERS } from './filters.js'
import { formatDateFilter } from './strftime.js'

/**
 * The operands of a library filter. The library would render objects as `[object Object]`. Therefore objects and arrays
 * (`text`), or the members of an array (`list`), are converted to canonical JSON first. The argument of a `property`
 * filter is the path of a property.
 */
export type FilterKind = 'text' | 'list' | 'property' | 'any'

/** The allowed filters of the library, without its extensions to standard Liquid. */
export const LIBRARY_FILTERS: ReadonlyMap<string, readonly [kind: FilterKind, least: number, most: number]> =
  new Map([
    ['abs', ['any', 0, 0]],
    ['append', ['text', 1, 1]],
    ['at_least', ['any', 1, 1]],
    ['at_most', ['any', 1, 1]],
    ['base64_decode', ['text', 0, 0]],
    ['base64_encode', ['text', 0, 0]],
    ['capitalize', ['text', 0, 0]],
    ['ceil', ['any', 0, 0]],
    ['compact', ['any', 0, 0]],
    ['concat', ['any', 1, 1]],
    ['default', ['any', 0, 2]],
    ['divided_by', ['any', 1, 1]],
    ['downcase', ['text', 0, 0]],
    ['escape', ['text', 0, 0]],
    ['escape_once', ['text', 0, 0]],
    ['find', ['property', 1, 2]],
    ['find_index', ['property', 1, 2]],
    ['first', ['any', 0, 0]],
    ['floor', ['any', 0, 0]],
    ['has', ['property', 1, 2]],
    ['join', ['list', 0, 1]],
    ['last', ['any', 0, 0]],
    ['lstrip', ['text', 0, 0]],
    ['map', ['any', 1, 1]],
    ['minus', ['any', 1, 1]],
    ['modulo', ['any', 1, 1]],
    ['newline_to_br', ['text', 0, 0]],
    ['plus', ['any', 1, 1]],
    ['prepend', ['text', 1, 1]],
    ['reject', ['property', 1, 2]],
    ['remove', ['text', 1, 1]],
    ['remove_first', ['text', 1, 1]],
    ['remove_last', ['text', 1, 1]],
    ['replace', ['text', 1, 2]],
    ['replace_first', ['text', 1, 2]],
    ['replace_last', ['text', 1, 2]],
    ['reverse', ['any', 0, 0]],
    ['round', ['any', 0, 1]],
    ['rstrip', ['text', 0, 0]],
    ['size', ['any', 0, 0]],
    ['slice', ['any', 1, 2]],
    ['sort', ['any', 0, 1]],
    ['sort_natural', ['any', 0, 1]],
    ['split', ['text', 1, 1]],
    ['strip', ['text', 0, 0]],
    ['strip_html', ['text', 0, 0]],
    ['strip_newlines', ['text', 0, 0]],
    ['sum', ['any', 0, 1]],
    ['times', ['any', 1, 1]],
    ['truncate', ['text', 0, 2]],
    ['truncatewords', ['text', 0, 2]],
    ['uniq', ['any', 0, 0]],
    ['upcase', ['text', 0, 0]],
    ['url_decode', ['text', 0, 0]],
    ['url_encode', ['text', 0, 0]],
    ['where', ['property', 1, 2]],
  ])

/** The standard filters that are implemented here. */
export const OWN_STANDARD_FILTERS: ReadonlyMap<string, FilterRule> = new Map<string, FilterRule>([
  ['date', { least: 1, most: 1, run: (value, [format]) => formatDateFilter(value, format) }],
  ['base64_url_safe_encode', { least: 0, most: 0, run: (value) => encodeUrlSafe(value) }],
  ['base64_url_safe_decode', { least: 0, most: 0, run: (value) => decodeUrlSafe(value) }],
])

/** The filters that are implemented in this repository. */
export const OWN_FILTERS: ReadonlyMap<string, FilterRule> = new Map([
  ...OWN_STANDARD_FILTERS,
  ...FILTERS,
  ...ORDERED_FILTERS,
])

export function isFilterName(name: string): boolean {
  return OWN_FILTERS.has(name) || LIBRARY_FILTERS.has(name)
}

/** The operands for a filter of this kind: the value, then the arguments. */
export function prepareOperands(kind: FilterKind, value: unknown, args: readonly unknown[]): unknown[] {
  if (kind === 'property') requirePropertyPath(args[0])
  return [value, ...args].map((operand) => prepareOperand(kind, operand))
}

/** The library would also evaluate ranges here, once for every member of an array. */
function requirePropertyPath(path: unknown): void {
  if (typeof path === 'string' && !path.includes('(')) return
  throw new CofferError('validation', 'this filter takes the name of a property, such as "address.city"')
}

function prepareOperand(kind: FilterKind, value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (kind === 'text') return canonicalJson(value)
  return kind === 'list' && Array.isArray(value) ? value.map((item) => prepareOperand('text', item)) : value
}

function encodeUrlSafe(value: unknown): string {
  return Buffer.from(String(value ?? ''), 'utf8')
    .toString('base64')
    .replaceAll('+', '-')
    .replaceAll('/', '_')
}

function decodeUrlSafe(value: unknown): string {
  const text = String(value ?? '')
  if (!/^[A-Za-z0-9_-]*={0,2}$/.test(text)) {
    throw new CofferError('validation', 'base64_url_safe_decode takes URL-safe base64')
  }
  return Buffer.from(text, 'base64url').toString('utf8')
}
