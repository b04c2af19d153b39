/** The allowed filters of standard Liquid. Our own are those that the library lacks, or whose results depend on the machine. */
import { validationError } from '../../errors.js'
import { canonicalJson } from '../json/json.js'
import { FILTERS, type FilterRule, ORDERED_FILTERS } from './filters.js'
import { formatDateFilter } from './strftime.js'

/**
 * The operands of a library filter. The library would render objects as `[object Object]`. Therefore objects and arrays
 * (`text`), or the members of an array (`list`), are converted to canonical JSON first. The argument of a `property`
 * filter is the path of a property.
 */
type FilterKind = 'text' | 'list' | 'property' | 'any'

type Signature = readonly [kind: FilterKind, least: number, most: number]

/** The allowed filters of the library, without its extensions to standard Liquid, by what they take. */
const SIGNATURES: readonly (readonly [...Signature, names: string])[] = [
  ['any', 0, 0, 'abs ceil compact first floor last reverse size uniq'],
  ['any', 0, 1, 'round sort sort_natural sum'],
  ['any', 0, 2, 'default'],
  ['any', 1, 1, 'at_least at_most concat divided_by map minus modulo plus times'],
  ['any', 1, 2, 'slice'],
  ['list', 0, 1, 'join'],
  ['property', 1, 2, 'find find_index has reject where'],
  ['text', 0, 0, 'base64_decode base64_encode capitalize downcase escape escape_once lstrip newline_to_br'],
  ['text', 0, 0, 'rstrip strip strip_html strip_newlines upcase url_decode url_encode'],
  ['text', 0, 2, 'truncate truncatewords'],
  ['text', 1, 1, 'append prepend remove remove_first remove_last split'],
  ['text', 1, 2, 'replace replace_first replace_last'],
]

export const LIBRARY_FILTERS: ReadonlyMap<string, Signature> = new Map(
  SIGNATURES.flatMap(([kind, least, most, names]) =>
    names.split(' ').map((name) => [name, [kind, least, most]] as const),
  ),
)

export const OWN_STANDARD_FILTERS: ReadonlyMap<string, FilterRule> = new Map<string, FilterRule>([
  ['date', { least: 1, most: 1, run: (value, [format]) => formatDateFilter(value, format) }],
  ['base64_url_safe_encode', { least: 0, most: 0, run: (value) => encodeUrlSafe(value) }],
  ['base64_url_safe_decode', { least: 0, most: 0, run: (value) => decodeUrlSafe(value) }],
])

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
  throw validationError('this filter takes the name of a property, such as "address.city"')
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
  if (!/^[A-Za-z0-9_-]*={0,2}$/.test(text))
    throw validationError('base64_url_safe_decode takes URL-safe base64')
  return Buffer.from(text, 'base64url').toString('utf8')
}
