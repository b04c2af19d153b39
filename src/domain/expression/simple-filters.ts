/** Standard filters that `simple-output.ts` applies itself, with the results and the charges of the Liquid library. */
import type { FilterRule } from './filters.js'
import { LIBRARY_FILTERS, prepareOperands } from './standard-filters.js'

/** `argument` is empty if it is absent. */
const TEXT_FILTERS: Readonly<Record<string, (text: string, argument: string) => string>> = {
  append: (text, end) => text + end,
  capitalize: (text) => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase(),
  downcase: (text) => text.toLowerCase(),
  lstrip: (text) => text.trimStart(),
  prepend: (text, start) => start + text,
  remove: (text, part) => text.split(part).join(''),
  rstrip: (text) => text.trimEnd(),
  strip: (text) => text.trim(),
  upcase: (text) => text.toUpperCase(),
}

function simple(name: string, run: FilterRule['run']): readonly [string, FilterRule] {
  const [, least, most] = LIBRARY_FILTERS.get(name)!
  return [name, { least, most, run }]
}

function applyText(filter: (text: string, argument: string) => string): FilterRule['run'] {
  return (value, args, { budget }) => {
    const [text = '', argument = ''] = prepareOperands('text', value, args).map(asText)
    budget.use((text.length + argument.length) / 8)
    return filter(text, argument)
  }
}

const replace: FilterRule['run'] = (value, args, { budget }) => {
  const [text = '', part = '', other = ''] = prepareOperands('text', value, args).map(asText)
  const parts = text.split(part)
  budget.use((text.length + (parts.length - 1) * (other.length - part.length)) / 8)
  return parts.join(other)
}

/** Part of an array, or of a text by code points. An argument may be text: operators then do to it what they do in Liquid. */
const slice: FilterRule['run'] = (value, args, { budget }) => {
  const [from, count = 1] = args as number[]
  if (value === null) return []
  const items = Array.isArray(value) ? value : asText(value)
  const begin = from! < 0 ? (Array.isArray(items) ? items.length : [...items].length) + from! : from!
  if (begin < 0 || count < 0) return Array.isArray(items) ? [] : ''
  budget.use(count / 8)
  if (Array.isArray(items)) return items.slice(begin, begin + count)
  const start = advance(items, 0, begin)
  return items.slice(start, advance(items, start, count))
}

/** The index of `count` code points after `index`, or the end. */
function advance(text: string, index: number, count: number): number {
  for (let each = 0; each < count && index < text.length; each++)
    index += text.codePointAt(index)! > 0xffff ? 2 : 1
  return index
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : String(value ?? '')
}

/** The rules by name. Contract: the arguments are integers and strings. */
export const SIMPLE_FILTERS: ReadonlyMap<string, FilterRule> = new Map([
  ...Object.keys(TEXT_FILTERS).map((name) => simple(name, applyText(TEXT_FILTERS[name]!))),
  simple('replace', replace),
  simple('slice', slice),
])
