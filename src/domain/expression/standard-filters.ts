/** The filters of standard Liquid. Results do not depend on the clock or the locale of the machine. */
import { encodeHtml } from '../text/html.js'
import { type CallTools, type FilterRule, readProperty, refuse, textOf } from './filter.js'
import { formatDateFilter } from './strftime.js'

type Text = (text: string, first?: string, second?: string) => unknown
type List = (list: readonly unknown[], ...args: unknown[]) => unknown
type Test = (item: unknown) => boolean

const READ_STEPS = 120
const PATH_STEPS = 4
/**
 * The number of characters that cost one step: for native comparison, for attempts of a regular expression, and for
 * joining.
 */
const COMPARED_IN_A_STEP = 64
const TRIED_IN_A_STEP = 8
const JOINED_IN_A_STEP = 4

/** Declares a filter of texts. An object or array becomes canonical JSON. A null argument counts as absent. */
function text(least: number, most: number, work: Text, steps = 0): FilterRule {
  const optional = (value: unknown) => (value === undefined || value === null ? undefined : textOf(value))
  return {
    least,
    most,
    steps,
    run: (value, [first, second]) => work(textOf(value), optional(first), optional(second)),
  }
}

/**
 * Declares a filter that searches for its first argument. The cost grows with the product of the lengths of the value
 * and the argument.
 */
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

function list(least: number, most: number, work: List): FilterRule {
  return { least, most, run: (value, args) => work(listOf(value), ...args) }
}

function reading(least: number, work: List): FilterRule {
  const steps: FilterRule['steps'] = (value, [path]) =>
    path === undefined ? 0 : listOf(value).length * (READ_STEPS + textOf(path).length * PATH_STEPS)
  return { ...list(least, 1, work), steps }
}

function matching(work: (list: readonly unknown[], test: Test) => unknown): FilterRule {
  return { ...reading(1, (items, path, expected) => work(items, matcher(path, expected))), most: 2 }
}

const replaceAll: Text = (value, part = '', other = '') => value.split(part).join(other)
const replaceFirst: Text = (value, part = '', other = '') => value.replace(part, () => other)
const replaceLast: Text = (value, part = '', other = '') => {
  const at = value.lastIndexOf(part)
  return at < 0 ? value : value.slice(0, at) + other + value.slice(at + part.length)
}
const base64 = (value: string) => Buffer.from(value).toString('base64')

const UNESCAPED = /["><']|&(?!(?:[a-zA-Z]+|#\d+);)/g
const MARKUP = /<script[\s\S]*?<\/script>|<style[\s\S]*?<\/style>|<!--[\s\S]*?-->|<[\s\S]*?>/g

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
  ['round', { ...math(0, (value, digits) => Number(value!.toFixed(digits))), most: 1 }],

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
  ['strip_html', { ...text(0, 0, (value) => value.replaceAll(MARKUP, '')), steps: countMarkup }],
  ['escape', text(0, 0, encodeHtml, 4)],
  ['escape_once', text(0, 0, (value) => value.replaceAll(UNESCAPED, encodeHtml), 6)],
  ['url_encode', text(0, 0, (value) => encodeURIComponent(value).replaceAll('%20', '+'), 3)],
  ['url_decode', text(0, 0, (value) => decodeURIComponent(value.replaceAll('+', ' ')), 3)],
  ['base64_encode', text(0, 0, base64)],
  ['base64_decode', text(0, 0, (value) => decodeBase64(value, /^[A-Za-z0-9+/]*$/), 1)],
  ['base64_url_safe_encode', text(0, 0, (value) => base64(value).replaceAll('+', '-').replaceAll('/', '_'))],
  ['base64_url_safe_decode', text(0, 0, (value) => decodeBase64(value, /^[A-Za-z0-9_-]*$/), 1)],
  ['truncate', text(0, 2, truncate, 2)],
  ['truncatewords', text(0, 2, truncateWords, 3)],
  ['remove', search(1, 1, replaceAll)],
  ['remove_first', search(1, 1, replaceFirst)],
  ['remove_last', search(1, 1, replaceLast)],
  ['replace', search(1, 2, replaceAll)],
  ['replace_first', search(1, 2, replaceFirst)],
  ['replace_last', search(1, 2, replaceLast)],
  ['split', search(1, 1, split)],

  ['compact', list(0, 0, (items) => items.filter((item) => item !== null))],
  ['concat', list(1, 1, (items, others) => [...items, ...listOf(others)])],
  ['reverse', list(0, 0, (items) => items.toReversed())],
  ['uniq', list(0, 0, (items) => [...new Set(items)])],
  ['join', { ...list(0, 1, join), steps: joinSteps }],
  ['first', { least: 0, most: 0, run: (value) => atEnd(value, 0) }],
  ['last', { least: 0, most: 0, run: (value) => atEnd(value, -1) }],
  ['size', { least: 0, most: 0, run: (value) => (value as { length?: unknown } | null)?.length || 0 }],
  ['slice', { least: 1, most: 2, steps: 1, run: slice }],

  ['map', reading(1, (items, path) => items.map(readerOf(path)))],
  ['sum', reading(0, (items, path) => items.map(readerOf(path)).reduce<number>(add, 0))],
  ['sort', reading(0, (items, path) => sortBy(items, path, (value) => value))],
  ['sort_natural', reading(0, (items, path) => sortBy(items, path, (value) => textOf(value).toLowerCase()))],
  ['where', matching((items, test) => items.filter(test))],
  ['reject', matching((items, test) => items.filter((item) => !test(item)))],
  ['find', matching((items, test) => items.find(test))],
  ['find_index', matching((items, test) => (items.some(test) ? items.findIndex(test) : null))],
  ['has', matching((items, test) => items.some(test))],

  ['default', { least: 0, most: 2, run: useDefault }],
  ['date', { least: 1, most: 1, run: (value, [format]) => formatDateFilter(value, format) }],
])

function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  return typeof value === 'object' && value !== null ? textOf(value).length : 8
}

function numberOf(value: unknown): number {
  return typeof value === 'object' ? 0 : Number(value) || 0
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  return value === null ? [] : [value]
}

function divide(value: unknown, [divisor]: readonly unknown[], { isDecimal }: CallTools): number {
  const isInteger = (each: unknown) => Number.isInteger(numberOf(each)) && !String(each).includes('.')
  const quotient = numberOf(value) / numberOf(divisor)
  return !isDecimal && isInteger(value) && isInteger(divisor) ? Math.floor(quotient) : quotient
}

function add(sum: number, value: unknown): number {
  return sum + (Number(value) || 0)
}

/** `MARKUP` may read the whole text again for each `<`. */
function countMarkup(value: unknown): number {
  const { length } = textOf(value)
  return ((textOf(value).split('<').length - 1) * length + length) / TRIED_IN_A_STEP
}

function split(value: string, part = ''): string[] {
  const parts = value.split(part)
  return parts.slice(0, parts.findLastIndex((each) => each !== '') + 1)
}

function truncate(value: string, length = '50', end = '...'): string {
  const characters = [...value]
  const most = Number(length)
  if (characters.length <= most) return value
  return characters.slice(0, Math.max(most - [...end].length, 0)).join('') + end
}

function truncateWords(value: string, count = '15', end = '...'): string {
  const words = value.trimStart().split(/\s+/)
  const most = Math.max(Number(count), 1)
  return words.slice(0, most).join(' ') + (words.length >= most ? end : '')
}

function decodeBase64(value: string, alphabet: RegExp): string {
  const digits = value.replaceAll(/[\t\n\f\r ]/g, '').replace(/={1,2}$/, '')
  if (digits.length % 4 === 1 || !alphabet.test(digits)) throw new TypeError('not base64')
  return Buffer.from(digits, 'base64').toString()
}

function join(items: readonly unknown[], separator: unknown): string {
  return items.map(textOf).join(textOf(separator ?? ' '))
}

function joinSteps(value: unknown, [separator]: readonly unknown[]): number {
  return (listOf(value).length * textOf(separator).length) / JOINED_IN_A_STEP
}

function atEnd(value: unknown, index: 0 | -1): unknown {
  return Array.isArray(value) ? value.at(index) : typeof value === 'string' ? (value.at(index) ?? '') : ''
}

function slice(value: unknown, args: readonly unknown[]): unknown {
  if (value === null) return []
  const items: readonly unknown[] = Array.isArray(value) ? value : [...textOf(value)]
  const [from, count = 1] = args.map(numberOf)
  const begin = from! < 0 ? items.length + from! : from!
  const part = begin < 0 || count < 0 ? [] : items.slice(begin, begin + count)
  return Array.isArray(value) ? part : part.join('')
}

function readerOf(path: unknown): (item: unknown) => unknown {
  const names = textOf(path) === '' ? [] : textOf(path).split('.')
  return (item) => names.reduce<unknown>(readProperty, item) ?? null
}

function sortBy(items: readonly unknown[], path: unknown, keyOf: (value: string) => string): unknown[] {
  const read = readerOf(path)
  const keyed = items.map((item) => {
    const value = read(item) as string | null
    return { item, key: value === null ? null : keyOf(value) }
  })
  const compare = (left: string | null, right: string | null) => {
    if (left === null || right === null) return Number(left === null) - Number(right === null)
    return left < right ? -1 : left > right ? 1 : 0
  }
  return keyed.sort((left, right) => compare(left.key, right.key)).map(({ item }) => item)
}

function matcher(path: unknown, expected: unknown): Test {
  if (typeof path !== 'string') refuse('this filter takes the name of a property, such as "address.city"')
  const read = readerOf(path)
  if (expected !== undefined && expected !== null) return (item) => read(item) === expected
  return (item) => ![null, false].includes(read(item) as null)
}

function useDefault(value: unknown, [other, allowsFalse]: readonly unknown[]): unknown {
  if (value === false) return allowsFalse ? false : other
  return value === null || value === '' || (Array.isArray(value) && value.length === 0) ? other : value
}
