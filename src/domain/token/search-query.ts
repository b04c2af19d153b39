/** The parser of the search language: terms `field:value`, `AND`, `OR`, `NOT` (also `!`, `-`) and parentheses. */
import { type CofferError, invalid } from '../../errors.js'

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

function readTokens(text: string): Token[] {
  if (text.length > MAX_QUERY_LENGTH) throw refuse(`must have at most ${MAX_QUERY_LENGTH} characters`)
  const tokens: Token[] = []
  for (let at = 0; at < text.length; ) {
    const character = text[at]!
    const column = at + 1
    if (/\s/.test(character)) at++
    else if (character === '(' || character === ')') {
      tokens.push({ kind: character, column })
      at++
    } else if (character === '!' || character === '-') {
      tokens.push({ kind: 'NOT', column })
      at++
    } else {
      const word = /^(AND|OR|NOT)(?=[\s()]|$)/.exec(text.slice(at, at + 4))
      const { token, end } =
        word === null
          ? readTerm(text, at)
          : { token: { kind: word[1] as 'AND', column }, end: at + word[1]!.length }
      tokens.push(token)
      at = end
    }
  }
  return tokens
}

function readTerm(text: string, start: number): { token: Token; end: number } {
  const column = start + 1
  const { text: field, end: colon } = readField(text, start)
  if (text[colon] !== ':') throw refuse('needs field:value', column)
  const isRange = RANGE_FIELDS.includes(field)
  if (
    !isRange &&
    !FIELDS.includes(field) &&
    !(field.startsWith(METADATA) && field.length > METADATA.length)
  ) {
    const known = [...FIELDS, ...RANGE_FIELDS, 'metadata.<key>'].join(', ')
    throw refuse(`names an unknown field; known are ${known}`, column)
  }
  const valueStart = colon + 1
  if (isRange && /[[{]/.test(text[valueStart] ?? '')) return readRange(text, field, valueStart, column)
  const { text: value, end } = readPart(text, valueStart)
  if (value === '') throw refuse('needs a value after the colon', valueStart + 1)
  const term: SearchTerm = isRange
    ? { kind: 'range', field, from: value, to: value, isInclusive: true, column }
    : { kind: 'equals', field, value, column }
  return { token: { kind: 'term', term, column }, end }
}

/** The key of a metadata field may be quoted. */
function readField(text: string, start: number): { text: string; end: number } {
  if (!text.startsWith(`${METADATA}"`, start)) return readPart(text, start, ':')
  const { text: key, end } = readPart(text, start + METADATA.length)
  return { text: METADATA + key, end }
}

function readRange(
  text: string,
  field: string,
  start: number,
  column: number,
): { token: Token; end: number } {
  const open = text[start]
  const close = text.indexOf(open === '[' ? ']' : '}', start)
  const parts = close === -1 ? null : /^\s*(\S+)\s+TO\s+(\S+)\s*$/.exec(text.slice(start + 1, close))
  if (parts === null) throw refuse('needs a range such as [2030-01-01 TO *]', start + 1)
  const bounds = {
    ...(parts[1] === '*' ? {} : { from: unquote(parts[1]!) }),
    ...(parts[2] === '*' ? {} : { to: unquote(parts[2]!) }),
  }
  const term: RangeTerm = { kind: 'range', field, ...bounds, isInclusive: open === '[', column }
  return { token: { kind: 'term', term, column }, end: close + 1 }
}

function unquote(text: string): string {
  return text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text
}

/** Reads a quoted text (with `\"` and `\\`), or everything up to white space, a parenthesis or `stop`. */
function readPart(text: string, start: number, stop?: string): { text: string; end: number } {
  if (text[start] !== '"') {
    let end = start
    while (end < text.length && !/[\s()]/.test(text[end]!) && text[end] !== stop) end++
    return { text: text.slice(start, end), end }
  }
  let value = ''
  for (let at = start + 1; at < text.length; at++) {
    const character = text[at]!
    if (character === '"') return { text: value, end: at + 1 }
    const isEscape = character === '\\' && (text[at + 1] === '"' || text[at + 1] === '\\')
    if (isEscape) at++
    value += text[at]
  }
  throw refuse('has a quote that is never closed', start + 1)
}

function refuse(message: string, column?: number): CofferError {
  const text = column === undefined ? message : `${message} (column ${column})`
  return invalid('query', text)
}
