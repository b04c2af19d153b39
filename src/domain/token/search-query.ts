/** The parser of the search language: terms `field:value`, `AND`, `OR`, `NOT` (also `!`, `-`) and parentheses. */
import { type CofferError, invalid } from '../../errors.js'
import { omitUndefined } from '../omit-undefined.js'

export const MAX_QUERY_LENGTH = 2000
const MAX_TERMS = 50

export type SearchQuery =
  | { kind: 'and' | 'or'; parts: SearchQuery[] }
  | { kind: 'not'; part: SearchQuery }
  | SearchTerm

export type SearchTerm = EqualsTerm | RangeTerm

export interface SearchField {
  field: string
  value: string
}

export interface EqualsTerm extends SearchField {
  kind: 'equals'
  column: number
}

/** `[a TO b]` includes its ends, `{a TO b}` does not; an absent end is unbounded. */
export interface RangeTerm {
  kind: 'range'
  field: string
  from?: string
  to?: string
  isInclusive: boolean
  column: number
}

type Token =
  | { kind: 'AND' | 'OR' | 'NOT' | '(' | ')'; column: number }
  | { kind: 'term'; term: SearchTerm; column: number }

const FIELDS = ['id', 'type', 'data', 'fingerprint', 'container', 'created_by', 'modified_by']
const RANGE_FIELDS = ['created_at', 'modified_at']
const METADATA = 'metadata.'

/** Undefined for an empty query, which all tokens match. @throws CofferError `validation` under `query`, with the column */
export function parseSearchQuery(text: string): SearchQuery | undefined {
  const tokens = readTokens(text)
  const terms = tokens.filter(({ kind }) => kind === 'term').length
  if (terms > MAX_TERMS) throw refuse(`must have at most ${MAX_TERMS} terms`)
  if (tokens.length === 0) return undefined
  return parse(tokens, text.length + 1)
}

/** Terms of these `fields` that are joined by AND. @throws CofferError `validation` under `query`, with the column */
export function parseJoinedTerms(text: string, fields: readonly string[]): EqualsTerm[] {
  const tokens = readTokens(text)
  const terms = tokens.flatMap((token, index) => {
    if (index % 2 === 1 && token.kind === 'AND') return []
    const term = index % 2 === 0 && token.kind === 'term' ? token.term : undefined
    if (term?.kind === 'equals' && fields.includes(/^metadata|.*/.exec(term.field)![0])) return term
    throw refuse(`takes terms joined by AND, of ${fields.join(', ')}`, token.column)
  })
  if (tokens.length > 0 && tokens.length % 2 === 0)
    throw refuse('ends where a term is needed', text.length + 1)
  return terms
}

/** Precedence: NOT, AND, OR. Parentheses and NOT nest at most {@link MAX_TERMS} deep. */
function parse(tokens: readonly Token[], end: number): SearchQuery {
  let at = 0
  let depth = 0
  const query = readChain('OR')
  const rest = tokens[at]
  if (rest === undefined) return query
  if (rest.kind === ')') throw refuse('has a ) that closes nothing', rest.column)
  throw refuse('needs AND or OR between two terms', rest.column)

  function readChain(operator: 'AND' | 'OR'): SearchQuery {
    const read = () => (operator === 'OR' ? readChain('AND') : readFactor())
    const parts = [read()]
    while (tokens[at]?.kind === operator) {
      at++
      parts.push(read())
    }
    return parts.length === 1 ? parts[0]! : { kind: operator === 'AND' ? 'and' : 'or', parts }
  }

  function readFactor(): SearchQuery {
    const token = tokens[at]
    if (token === undefined) throw refuse('ends where a term is needed', end)
    at++
    if (token.kind === 'term') return token.term
    if (token.kind === 'NOT') return { kind: 'not', part: nested(token.column, readFactor) }
    if (token.kind === '(') return nested(token.column, () => readGroup(token.column))
    throw refuse(`has ${token.kind} where a term is needed`, token.column)
  }

  function readGroup(column: number): SearchQuery {
    const group = readChain('OR')
    const close = tokens[at]
    if (close === undefined) throw refuse('has a ( that is never closed', column)
    if (close.kind !== ')') throw refuse('needs AND or OR between two terms', close.column)
    at++
    return group
  }

  function nested(column: number, read: () => SearchQuery): SearchQuery {
    if (depth >= MAX_TERMS) throw refuse(`is nested deeper than ${MAX_TERMS}`, column)
    depth++
    const inner = read()
    depth--
    return inner
  }
}

const QUOTED = /"((?:[^"\\]|\\["\\]|\\(?!["\\]))*)"/y
const OPERATOR = /(AND|OR|NOT)(?=[\s()]|$)/y
const RANGE = /[[{]\s*(\S+)\s+TO\s+(\S+)\s*[\]}]/y
const CLOSING: Readonly<Record<string, string>> = { '[': ']', '{': '}' }

function readTokens(text: string): Token[] {
  if (text.length > MAX_QUERY_LENGTH) throw refuse(`must have at most ${MAX_QUERY_LENGTH} characters`)
  const tokens: Token[] = []
  let at = 0
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    at += found?.[0].length ?? 0
    return found
  }
  /** A quoted text, or one that `plain` matches. */
  const takePart = (plain: RegExp): string => {
    if (text[at] !== '"') return take(plain)![0]
    const begin = at
    const quoted = take(QUOTED)?.[1]
    if (quoted === undefined) throw refuse('has a quote that is never closed', begin + 1)
    return quoted.replaceAll(/\\(["\\])/g, '$1')
  }
  for (take(/\s*/y); at < text.length; take(/\s*/y)) {
    const column = at + 1
    const sign = take(/[()!-]/y)?.[0]
    const kind = sign === '!' || sign === '-' ? 'NOT' : (sign ?? take(OPERATOR)?.[1])
    if (kind !== undefined) tokens.push({ kind: kind as 'NOT', column })
    else tokens.push({ kind: 'term', term: takeTerm(column), column })
  }
  return tokens

  function takeTerm(column: number): SearchTerm {
    // The key of a metadata field may be quoted.
    const prefix = text.startsWith(`${METADATA}"`, at) ? take(/metadata\./y)![0] : ''
    const field = prefix + takePart(/[^\s():]*/y)
    if (take(/:/y) === null) throw refuse('needs field:value', column)
    const isRange = RANGE_FIELDS.includes(field)
    if (!isRange && !FIELDS.includes(field) && !(field.startsWith(METADATA) && field !== METADATA)) {
      const known = [...FIELDS, ...RANGE_FIELDS, 'metadata.<key>'].join(', ')
      throw refuse(`names an unknown field; known are ${known}`, column)
    }
    const begin = at
    if (isRange && /[[{]/.test(text[at] ?? '')) {
      const range = take(RANGE)
      if (range === null || range[0].at(-1) !== CLOSING[text[begin]!])
        throw refuse('needs a range such as [2030-01-01 TO *]', begin + 1)
      const [from, to] = range
        .slice(1)
        .map((end) => (end === '*' ? undefined : end!.replace(/^"(.+)"$/, '$1')))
      return {
        kind: 'range',
        field,
        ...omitUndefined({ from, to }),
        isInclusive: text[begin] === '[',
        column,
      }
    }
    const value = takePart(/[^\s()]*/y)
    if (value === '') throw refuse('needs a value after the colon', begin + 1)
    if (isRange) return { kind: 'range', field, from: value, to: value, isInclusive: true, column }
    return { kind: 'equals', field, value, column }
  }
}

function refuse(message: string, column?: number): CofferError {
  const text = column === undefined ? message : `${message} (column ${column})`
  return invalid('query', text)
}
