/** The filters of standard Liquid. Their results depend on neither clock nor locale of the machine. */
import { validationError } from '../../errors.js'
import { canonicalJson, isObject } from '../json/json.js'
import { Emptiness, plain } from './filter-arguments.js'
import type { CallTools, FilterRule } from './filter-rule.js'
import { parsePath, type Value } from './parse-value.js'
import { readProperty } from './read-property.js'
import { formatDateFilter } from './strftime.js'

type Text = (text: string, first?: string, second?: string) => unknown
type List = (list: readonly unknown[], ...args: unknown[]) => unknown

/** Steps of each member whose property is read, and of each character of its path. */
const READ_STEPS = 120
const PATH_STEPS = 4
/** Characters that are compared, or joined, in one step. */
const COMPARED_IN_A_STEP = 64
const JOINED_IN_A_STEP = 4

/** A filter of texts: other values become text, objects and arrays canonical JSON. */
function text(least: number, most: number, work: Text, perCharacter = 0): FilterRule {
  const optional = (value: unknown) => (value === undefined ? undefined : textOf(value))
  return {
    least,
    most,
    perCharacter,
    run: (value, [first, second]) => work(textOf(value), optional(first), optional(second)),
  }
}

/** A filter that looks for its first argument at each character. Its time is the product of both lengths. */
function search(least: number, most: number, work: Text): FilterRule {
  return {
    ...text(least, most, work),
    steps(value, [part, other]) {
      const inserted = most === 2 ? lengthOf(other) / Math.max(1, lengthOf(part)) / JOINED_IN_A_STEP : 0
      return lengthOf(value) * (lengthOf(part) / COMPARED_IN_A_STEP + inserted)
    },
  }
}

function math(most: number, work: (...numbers: number[]) => number): FilterRule {
  return { least: most, most, run: (value, args) => work(...[value, ...args].map(numberOf)) }
}

/** A filter of lists: null becomes an empty list, any other value a list of itself. */
function list(least: number, most: number, work: List): FilterRule {
  return { least, most, run: (value, args) => work(listOf(value), ...args.map(plain)) }
}

/** A filter that reads a property of each member. Its first argument is the path of the property. */
function reading(least: number, most: number, work: List): FilterRule {
  return {
    least,
    most,
    steps: (value, [path]) =>
      path === undefined ? 0 : listOf(value).length * (READ_STEPS + textOf(path).length * PATH_STEPS),
    run: (value, args) => work(listOf(value), ...args),
  }
}

export const STANDARD_FILTERS: ReadonlyMap<string, FilterRule> = new Map<string, FilterRule>([
  ['abs', math(0, Math.abs)],
  ['at_least', math(1, Math.max)],
  ['at_most', math(1, Math.min)],
  ['ceil', math(0, Math.ceil)],
  ['floor', math(0, Math.floor)],
  ['minus', math(1, (left, right) => left! - right!)],
  ['modulo', math(1, (left, right) => ((left! % right!) + right!) % right!)],
  ['plus', math(1, (left, right) => left! + right!)],
  ['times', math(1, (left, right) => left! * right!)],
  ['divided_by', { least: 1, most: 1, run: divide }],
  ['round', { ...math(0, round), most: 1 }],

  ['append', text(1, 1, (value, end = '') => value + end)],
  ['prepend', text(1, 1, (value, start = '') => start + value)],
  ['capitalize', text(0, 0, (value) => value.charAt(0).toUpperCase() + value.slice(1).toLowerCase())],
  ['downcase', text(0, 0, (value) => value.toLowerCase())],
  ['upcase', text(0, 0, (value) => value.toUpperCase())],
  ['strip', text(0, 0, (value) => value.trim())],
  ['lstrip', text(0, 0, (value) => value.trimStart())],
  ['rstrip', text(0, 0, (value) => value.trimEnd())],
  ['strip_newlines', text(0, 0, (value) => value.replaceAll(/\r?\n/g, ''), 1)],
  ['newline_to_br', text(0, 0, (value) => value.replaceAll(/\r?\n/g, '<br />\n'), 3)],
  ['strip_html', text(0, 0, stripHtml, 1)],
  ['escape', text(0, 0, escapeHtml, 4)],
  ['escape_once', text(0, 0, (value) => escapeHtml(value.replaceAll(ENTITY, unescapeHtml)), 6)],
  ['url_encode', text(0, 0, (value) => encodeURIComponent(value).replaceAll('%20', '+'), 3)],
  ['url_decode', text(0, 0, (value) => decodeURIComponent(value.replaceAll('+', ' ')), 3)],
  ['base64_encode', text(0, 0, (value) => Buffer.from(value).toString('base64'))],
  ['base64_decode', text(0, 0, decodeBase64, 1)],
  ['base64_url_safe_encode', text(0, 0, encodeUrlSafe)],
  ['base64_url_safe_decode', text(0, 0, decodeUrlSafe, 1)],
  ['truncate', { least: 0, most: 2, perCharacter: 2, run: truncate }],
  ['truncatewords', text(0, 2, truncateWords, 3)],
  ['remove', search(1, 1, (value, part = '') => value.split(part).join(''))],
  ['remove_first', search(1, 1, (value, part = '') => value.replace(part, ''))],
  ['remove_last', search(1, 1, (value, part = '') => replaceLast(value, part, ''))],
  ['replace', search(1, 2, (value, part = '', other = '') => value.split(part).join(other))],
  ['replace_first', search(1, 2, (value, part = '', other = '') => value.replace(part, () => other))],
  ['replace_last', search(1, 2, (value, part = '', other = '') => replaceLast(value, part, other))],
  ['split', search(1, 1, split)],

  ['compact', list(0, 0, (items) => items.filter((item) => item !== null && item !== undefined))],
  ['concat', list(1, 1, (items, others) => [...items, ...listOf(others)])],
  ['reverse', list(0, 0, (items) => items.toReversed())],
  ['uniq', list(0, 0, (items) => [...new Set(items)])],
  [
    'join',
    {
      ...list(0, 1, join),
      steps: (value, [by]) => (listOf(value).length * textOf(by).length) / JOINED_IN_A_STEP,
    },
  ],
  ['first', { least: 0, most: 0, run: (value) => atEnd(value, 0) }],
  ['last', { least: 0, most: 0, run: (value) => atEnd(value, -1) }],
  ['size', { least: 0, most: 0, run: (value) => (value as { length?: unknown } | null)?.length || 0 }],
  ['slice', { least: 1, most: 2, perCharacter: 1, run: slice }],

  ['map', reading(1, 1, (items, path) => items.map((item) => readNames(item, textOf(path))))],
  ['sum', reading(0, 1, (items, path) => items.map(readerOf(path)).reduce<number>(add, 0))],
  ['sort', reading(0, 1, (items, path) => sortBy(items, path, (value) => value))],
  [
    'sort_natural',
    reading(0, 1, (items, path) => sortBy(items, path, (value) => textOf(value).toLowerCase())),
  ],
  ['where', reading(1, 2, (items, ...test) => items.filter(matcher(...test)))],
  ['reject', reading(1, 2, (items, ...test) => exclude(items, matcher(...test)))],
  ['find', reading(1, 2, (items, ...test) => items.find(matcher(...test)))],
  ['find_index', reading(1, 2, (items, ...test) => indexOrNull(items.findIndex(matcher(...test))))],
  ['has', reading(1, 2, (items, ...test) => items.some(matcher(...test)))],

  ['default', { least: 0, most: 2, run: useDefault }],
  ['date', { least: 1, most: 1, run: (value, [format]) => formatDateFilter(plain(value), plain(format)) }],
])

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined || value instanceof Emptiness) return ''
  return typeof value === 'object' ? canonicalJson(value) : String(value)
}

/** The length of the value's text; an estimate for numbers, booleans and null. */
function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  return typeof value === 'object' && value !== null ? textOf(value).length : 8
}

function numberOf(value: unknown): number {
  return typeof value === 'object' ? 0 : Number(value) || 0
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  const item = plain(value)
  return item === null ? [] : [item]
}

// ---------------------------------------------------------------- numbers

/** Rounds down between integers. */
function divide(value: unknown, [divisor]: readonly unknown[], { isDecimal }: CallTools): number {
  const isInteger = (each: unknown) => Number.isInteger(numberOf(each)) && !String(each).includes('.')
  const quotient = numberOf(value) / numberOf(divisor)
  return !isDecimal && isInteger(value) && isInteger(divisor) ? Math.floor(quotient) : quotient
}

function round(value: number, digits = 0): number {
  const scaled = shiftDecimal(Math.abs(value), digits)
  if (!(scaled <= Number.MAX_SAFE_INTEGER)) return value
  return Math.sign(value) * shiftDecimal(Math.round(scaled), -digits)
}

function shiftDecimal(value: number, digits: number): number {
  const [mantissa, power = '0'] = String(value).split('e')
  return Number(`${mantissa}e${Number(power) + digits}`)
}

function add(sum: number, value: unknown): number {
  const number = Number(value)
  return Number.isNaN(number) ? sum : sum + number
}

// ---------------------------------------------------------------- texts

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
}
const ENTITY = /&(?:amp|lt|gt|#34|#39);/g

function escapeHtml(value: string): string {
  return value.replaceAll(/[&<>"']/g, (character) => ESCAPES[character]!)
}

function unescapeHtml(entity: string): string {
  return Object.keys(ESCAPES).find((character) => ESCAPES[character] === entity)!
}

/** A regular expression would take quadratic time for markup that is not closed. */
function stripHtml(value: string): string {
  const blocks = new Map([
    ['<script', '</script>'],
    ['<style', '</style>'],
    ['<!--', '-->'],
    ['<', '>'],
  ])
  let stripped = ''
  let from = 0
  for (let at = value.indexOf('<'); at >= 0; at = value.indexOf('<', from)) {
    stripped += value.slice(from, at)
    from = at
    for (const [opener, closer] of blocks) {
      if (!value.startsWith(opener, at)) continue
      const end = value.indexOf(closer, at + opener.length)
      if (end < 0) blocks.delete(opener)
      else {
        from = end + closer.length
        break
      }
    }
    if (from === at) break
  }
  return stripped + value.slice(from)
}

function replaceLast(value: string, part: string, other: string): string {
  const at = value.lastIndexOf(part)
  return at < 0 ? value : value.slice(0, at) + other + value.slice(at + part.length)
}

function split(value: string, part = ''): string[] {
  const parts = value.split(part)
  return parts.slice(0, parts.findLastIndex((each) => each !== '') + 1)
}

/** Counts code points; a value that is not too long is returned unchanged. */
function truncate(value: unknown, [length = 50, end = '...']: readonly unknown[]): unknown {
  const characters = [...textOf(value)]
  const most = Number(plain(length))
  if (characters.length <= most) return Array.isArray(value) || isObject(value) ? textOf(value) : plain(value)
  const kept = Math.max(most - [...textOf(end)].length, 0)
  return characters.slice(0, kept).join('') + textOf(end)
}

function truncateWords(value: string, count = '15', end = '...'): string {
  const words = value.trimStart().split(/\s+/)
  const most = Math.max(Number(count), 1)
  return words.slice(0, most).join(' ') + (words.length >= most ? end : '')
}

function decodeBase64(value: string): string {
  const digits = value.replaceAll(/[\t\n\f\r ]/g, '').replace(/={1,2}$/, '')
  if (digits.length % 4 === 1 || !/^[A-Za-z0-9+/]*$/.test(digits)) throw new TypeError('not base64')
  return Buffer.from(digits, 'base64').toString()
}

function encodeUrlSafe(value: string): string {
  return Buffer.from(value).toString('base64').replaceAll('+', '-').replaceAll('/', '_')
}

function decodeUrlSafe(value: string): string {
  if (!/^[A-Za-z0-9_-]*={0,2}$/.test(value))
    throw validationError('base64_url_safe_decode takes URL-safe base64')
  return Buffer.from(value, 'base64url').toString()
}

// ---------------------------------------------------------------- lists

function join(items: readonly unknown[], separator: unknown): string {
  return items.map(textOf).join(separator === undefined || separator === null ? ' ' : textOf(separator))
}

function atEnd(value: unknown, index: 0 | -1): unknown {
  return Array.isArray(value) ? value.at(index) : typeof value === 'string' ? (value.at(index) ?? '') : ''
}

/** Part of an array, or of a text by code points. */
function slice(value: unknown, args: readonly unknown[]): unknown {
  if (value === null || value === undefined) return []
  const items: readonly unknown[] = Array.isArray(value) ? value : [...textOf(value)]
  const [from, count = 1] = args.map(numberOf)
  const begin = from! < 0 ? items.length + from! : from!
  const part = begin < 0 || count < 0 ? [] : items.slice(begin, begin + count)
  return Array.isArray(value) ? part : part.join('')
}

function readNames(item: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>(readProperty, item)
}

/** Reads the item itself if there is no path. */
function readerOf(path: unknown): (item: unknown) => unknown {
  const names = textOf(path)
  return (item) => (names === '' ? item : readNames(item, names))
}

function sortBy(items: readonly unknown[], path: unknown, keyOf: (value: unknown) => unknown): unknown[] {
  const read = readerOf(path)
  const isNil = (value: unknown) => value === null || value === undefined
  const keys = items.map((item): [item: unknown, key: unknown] => {
    const value = read(item)
    return [item, isNil(value) ? value : keyOf(value)]
  })
  const compare = (left: unknown, right: unknown) => {
    if (isNil(left) || isNil(right)) return Number(isNil(left)) - Number(isNil(right))
    return (left as never) < (right as never) ? -1 : (left as never) > (right as never) ? 1 : 0
  }
  return keys.sort((left, right) => compare(left[1], right[1])).map(([item]) => item)
}

function exclude(items: readonly unknown[], matches: (item: unknown) => boolean): unknown[] {
  return items.filter((item) => !matches(item))
}

/** Whether the property has the expected value; without `expected`, whether the property is neither false nor absent. */
function matcher(path?: unknown, expected?: unknown): (item: unknown) => boolean {
  if (typeof path !== 'string' || path.includes('('))
    throw validationError('this filter takes the name of a property, such as "address.city"')
  const value = parsePath(path)
  return (item) => {
    const found = value === undefined ? undefined : readValue(value, item)
    if (expected === undefined) return found !== undefined && found !== null && found !== false
    return isEqual(found, expected)
  }
}

function readValue(value: Value, item: unknown): unknown {
  if ('constant' in value) return value.constant
  return value.path.reduce<unknown>((object, part, index) => {
    return readProperty(object, index === 0 ? readName(part) : readValue(part, item))
  }, item)
}

function readName(part: Value): unknown {
  return 'constant' in part ? part.constant : undefined
}

function isEqual(found: unknown, expected: unknown): boolean {
  if (expected instanceof Emptiness) return isEmpty(found, expected)
  if (expected === null) return found === null || found === undefined
  if (!Array.isArray(found)) return found === expected
  if (!Array.isArray(expected) || expected.length !== found.length) return false
  return found.every((item, index) => isEqual(item, expected[index]))
}

function isEmpty(value: unknown, { allowsBlank }: Emptiness): boolean {
  if (allowsBlank && (value === false || value === null || value === undefined)) return true
  if (typeof value === 'string') return allowsBlank ? value.trim() === '' : value === ''
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

function indexOrNull(index: number): number | null {
  return index < 0 ? null : index
}

function useDefault(value: unknown, [other]: readonly unknown[], { allowsFalse }: CallTools): unknown {
  const given = plain(value)
  if (given === false) return allowsFalse ? false : plain(other)
  return given === null || given === '' || (Array.isArray(given) && given.length === 0) ? plain(other) : given
}
