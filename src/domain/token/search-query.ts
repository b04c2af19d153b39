/** Parses the search language: terms `field:value`, `AND`, `OR`, `NOT` (also `!` and `-`), and parentheses. */
import { type CofferError, invalid } from '../../errors.js'
import { parseLogDate } from '../dates.js'

export const MAX_QUERY_LENGTH = 2000
const MAX_TERMS = 50
const DAY_MS = 24 * 60 * 60 * 1000

export type SearchQuery =
  | { kind: 'and' | 'or'; parts: SearchQuery[] }
  | { kind: 'not'; part: SearchQuery }
  | EqualsTerm
  | RangeTerm

export type SearchField = Record<'field' | 'value', string>

export type EqualsTerm = SearchField & { kind: 'equals' }

/**
 * In ms since the epoch. `from` is included, and `below` is excluded. If one of the two is absent, the range has no
 * limit on that side.
 */
export interface RangeTerm {
  kind: 'range'
  range: 'created' | 'modified'
  from?: number
  below?: number
}

export const METADATA = 'metadata.'
const FIELDS = ['id', 'type', 'data', 'fingerprint', 'container', 'created_by', 'modified_by']
const RANGE_FIELDS = ['created_at', 'modified_at']
const EXAMPLE = '0005'
const TERMS = (value: string) =>
  `needs terms field:value joined by AND or OR, such as data:${value} for a search index`
const OPERATORS = { AND: /AND(?=[\s()]|$)/y, OR: /OR(?=[\s()]|$)/y }
const NOT = /NOT(?=[\s()]|$)|[!-]/y
const FIELD = /(metadata\.)?(?:"((?:[^"\\]|\\[\s\S])*)"|([^\s():"]*))(?=:)/y
const VALUE = /"((?:[^"\\]|\\[\s\S])*)"|[^\s()"][^\s()]*/y
const RANGE = /\[\s*(\S+)\s+TO\s+(\S+)\s*\]|\{\s*(\S+)\s+TO\s+(\S+)\s*\}/y

/**
 * Returns undefined for an empty query, which matches all tokens.
 * @throws CofferError `validation` for the property `query`
 */
export function parseSearchQuery(text: string): SearchQuery | undefined {
  if (text.length > MAX_QUERY_LENGTH) throw refuse(`must have at most ${MAX_QUERY_LENGTH} characters`)
  return text.trim() === '' ? undefined : new QueryParser(text).parse()
}

/**
 * Accepts only terms of these `fields`, joined by AND, without parentheses. `advice`: the end of the error message.
 * @throws CofferError `validation` for the property `query`
 */
export function parseJoinedTerms(text: string, fields: readonly string[], advice: string): EqualsTerm[] {
  const query = parseSearchQuery(text)
  const isGrouped = /^\s*\(/.test(text)
  const parts = query === undefined ? [] : query.kind === 'and' ? query.parts : [query]
  return parts.map((part) => {
    if (!isGrouped && part.kind === 'equals' && fields.includes(/^metadata|.*/.exec(part.field)![0]))
      return part
    throw refuse(`takes terms joined by AND, with the fields ${fields.join(', ')}${advice}`)
  })
}

/** NOT binds more strongly than AND, and AND more strongly than OR. */
class QueryParser {
  readonly #text: string
  #at = 0
  #terms = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
  }

  parse(): SearchQuery {
    const query = this.#readChain('OR')
    if (this.#take(/\)/y) !== null) throw refuse('has a ) without a (', this.#at)
    if (this.#at < this.#text.length) throw this.#refuse(TERMS(EXAMPLE))
    return query
  }

  #readChain(operator: 'AND' | 'OR'): SearchQuery {
    const read = () => (operator === 'OR' ? this.#readChain('AND') : this.#readFactor())
    const parts = [read()]
    while (this.#take(OPERATORS[operator]) !== null) parts.push(read())
    return parts.length === 1 ? parts[0]! : { kind: operator === 'AND' ? 'and' : 'or', parts }
  }

  #readFactor(): SearchQuery {
    const isNot = this.#take(NOT) !== null
    if (!isNot && this.#take(/\(/y) === null) return this.#readTerm()
    if (++this.#depth > MAX_TERMS) throw refuse(`is nested more than ${MAX_TERMS} levels deep`, this.#at)
    const inner = isNot ? this.#readFactor() : this.#readChain('OR')
    if (!isNot && this.#take(/\)/y) === null) throw this.#refuse('needs AND, OR or a ) for each (')
    this.#depth--
    return isNot ? { kind: 'not', part: inner } : inner
  }

  #readTerm(): EqualsTerm | RangeTerm {
    if (++this.#terms > MAX_TERMS) throw refuse(`must have at most ${MAX_TERMS} terms`)
    if (this.#take(/$/y) !== null) throw this.#refuse('ends where a term is needed')
    const column = this.#at + 1
    const [, prefix = '', quoted, plain] = this.#take(FIELD) ?? []
    const field = prefix + (unquote(quoted) ?? plain ?? '')
    const isRange = RANGE_FIELDS.includes(field)
    // A longer text may be a complete value, which a message must not repeat.
    const example = /^[A-Za-z\d]{1,8}$/.test(this.#text) ? this.#text : EXAMPLE
    if (this.#text[this.#at++] !== ':') throw refuse(TERMS(example), column)
    if (!isRange && !FIELDS.includes(field) && !(field.startsWith(METADATA) && field !== METADATA)) {
      const known = [...FIELDS, ...RANGE_FIELDS, `${METADATA}<key>`].join(', ')
      throw refuse(`names an unknown field; the known fields are ${known}`, column)
    }
    const begin = this.#text[this.#at] ?? ''
    if (isRange && /[[{]/.test(begin)) return this.#readRange(field, begin === '[', column)
    const found = /\s/.test(begin) ? null : this.#take(VALUE)
    const value = unquote(found?.[1]) ?? found?.[0] ?? ''
    if (value === '') throw this.#refuse('needs a value after the colon, with every quote closed')
    return isRange ? toRange(field, true, [value, value], column) : { kind: 'equals', field, value }
  }

  #readRange(field: string, isInclusive: boolean, column: number): RangeTerm {
    const range = this.#take(RANGE)
    if (range === null) throw this.#refuse('needs a range such as [2030-01-01 TO *]')
    return toRange(field, isInclusive, isInclusive ? range.slice(1, 3) : range.slice(3), column)
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at++
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    this.#at += found?.[0].length ?? 0
    return found
  }

  #refuse(message: string): CofferError {
    return refuse(message, this.#at + 1)
  }
}

/** `[a TO b]` includes both ends. `{a TO b}` excludes both ends. */
function toRange(field: string, isInclusive: boolean, ends: readonly string[], column: number): RangeTerm {
  const [from, to] = ends.map((end) => (end === '*' ? undefined : readDate(end, column)))
  return {
    kind: 'range',
    range: field === 'created_at' ? 'created' : 'modified',
    ...(from && { from: isInclusive ? from.first : from.last + 1 }),
    ...(to && { below: isInclusive ? to.last + 1 : to.first }),
  }
}

function readDate(given: string, column: number): { first: number; last: number } {
  const text = given.replace(/^"(.+)"$/, '$1')
  try {
    const first = parseLogDate(text)
    return { first, last: /^\d{4}-\d\d-\d\d$/.test(text) ? first + DAY_MS - 1 : first }
  } catch {
    throw refuse('needs ISO 8601 dates such as 2030-01-31', column)
  }
}

function unquote(quoted: string | undefined): string | undefined {
  return quoted?.replaceAll(/\\(["\\])/g, '$1')
}

function refuse(message: string, column?: number): CofferError {
  return invalid('query', column === undefined ? message : `${message} (column ${column})`)
}
