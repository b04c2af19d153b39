/** Parses one output with Liquid's tokenizer. Operators, ranges, unknown names and wrong numbers of arguments are refused. */
import type { LiteralToken, PropertyAccessToken, Token, Tokenizer, TokenKind } from 'liquidjs'
import type { CofferError } from '../../errors.js'
import { type OutputPiece, syntaxError } from './expression-text.js'
import type { ExpressionUse } from './expression-value.js'
import { FILTERS, ORDERED_FILTERS } from './filters.js'
import { LIBRARY_FILTERS, OWN_FILTERS } from './standard-filters.js'

export type Library = typeof import('liquidjs')
export type FilterToken = ReturnType<Tokenizer['readFilters']>[number]

const VARIABLES: Record<ExpressionUse, readonly string[]> = {
  id: ['data'],
  mask: ['data'],
  search_index: ['data'],
  fingerprint: ['data', 'metadata'],
  detokenize: [],
}

/** Our messages for the tokenizer's errors. Unlike those, they contain nothing of the text. */
const COMPLAINTS: readonly [pattern: RegExp, reason: string][] = [
  [/invalid value expression/, 'expected a value such as data.number'],
  [/before filter$|before filter,/, 'expected "|" and a filter, or "}}"; operators are not supported'],
  [/expected filter name/, 'expected the name of a filter after "|"'],
  [/after filter name/, 'expected ":" before the arguments of a filter'],
  [/unexpected character/, 'expected "," or "|" after an argument'],
  [/\[ not closed/, 'this "[" has no closing "]"'],
  [/range/, 'ranges and parentheses are not supported'],
]

/** The initial value (undefined if that is a token id) and the filters. @throws CofferError `validation` with the column */
export function readOutput(
  library: Library,
  text: string,
  piece: OutputPiece,
  use: ExpressionUse,
): { initial: Token | undefined; filters: FilterToken[] } {
  const kinds: typeof TokenKind = library.TokenKind
  const variables = VARIABLES[use]
  const refuse = (at: number, reason: string): CofferError => syntaxError(text, at, reason)
  const tokenizer = new library.Tokenizer(text, {}, undefined, [piece.from, piece.to])
  const read = readTokens(tokenizer, piece, text)
  if (tokenizer.p < piece.to) throw refuse(tokenizer.p, 'expected "|" and a filter, or "}}"')
  const content = text.slice(piece.from, piece.to).trimEnd()
  if (content.endsWith('|'))
    throw refuse(piece.from + content.length, 'expected the name of a filter after "|"')
  const [initial, surplus] = read.values
  if (surplus !== undefined) throw refuse(surplus.begin, 'expected "|" and a filter, or "}}"')
  if (initial !== undefined) checkValue(initial)
  for (const [index, filter] of read.filters.entries()) {
    checkFilter(filter)
    checkFollower(filter, read.filters[index + 1])
    for (const argument of filter.args) checkArgument(filter, argument)
  }
  return { initial, filters: read.filters }

  function checkValue(token: Token): void {
    if (token.kind === kinds.Number && !Number.isFinite(Number(token.getText())))
      throw refuse(token.begin, 'this number is too large')
    if (token.kind === kinds.Quoted || token.kind === kinds.Number || token.kind === kinds.Literal) return
    if (token.kind !== kinds.PropertyAccess)
      throw refuse(token.begin, 'ranges and parentheses are not supported')
    const { variable, props, end } = token as PropertyAccessToken
    const [root, ...path] = props as Token[]
    if (variable !== undefined || root?.kind !== kinds.Word)
      throw refuse(token.begin, 'expected a value such as data.number')
    if (!variables.includes(root.getText())) {
      const known = variables.length === 0 ? 'variables cannot be used here' : `use ${variables.join(' or ')}`
      throw refuse(root.begin, `unknown variable; ${known}`)
    }
    for (const part of path) checkPathPart(part)
    if (text.slice(token.begin, end).trimEnd().endsWith('.'))
      throw refuse(end, 'expected a property name after "."')
  }

  /** A name after a dot, or a value in brackets. */
  function checkPathPart(part: Token): void {
    if (part.kind === kinds.Word) {
      if (part.size() === 0) throw refuse(part.begin, 'expected a name or index between "[" and "]"')
      return
    }
    checkValue(part)
    if (!/^\s*\]/.test(text.slice(part.end))) throw refuse(part.end, 'expected "]"')
  }

  function checkFilter({ name, begin, args }: FilterToken): void {
    const own = OWN_FILTERS.get(name)
    const [, least = own?.least, most = own?.most] = LIBRARY_FILTERS.get(name) ?? []
    if (least === undefined || most === undefined) {
      const ours = [...FILTERS.keys(), ...ORDERED_FILTERS.keys()].join(', ')
      throw refuse(begin, `unknown filter "${name}"; there are those of standard Liquid, and ${ours}`)
    }
    if (own?.onlyIn !== undefined && own.onlyIn !== use)
      throw refuse(begin, `filter "${name}" works in token ids only`)
    if (args.length < least || args.length > most) {
      const amount = least === most ? `${least}` : `${least} to ${most}`
      throw refuse(begin, `filter "${name}" takes ${amount} argument${most === 1 ? '' : 's'}`)
    }
  }

  function checkFollower({ name, begin }: FilterToken, next: FilterToken | undefined): void {
    const followers = OWN_FILTERS.get(name)?.followers
    if (followers === undefined) return
    if (followers.length === 0 && next !== undefined)
      throw refuse(next.begin, `filter "${name}" must be the last`)
    if (followers.length > 0 && (next === undefined || !followers.includes(next.name)))
      throw refuse(begin, `after filter "${name}" comes ${followers.join(' or ')}`)
  }

  function checkArgument(filter: FilterToken, argument: FilterToken['args'][number]): void {
    const [name, value] = Array.isArray(argument) ? argument : []
    if (!Array.isArray(argument)) checkValue(argument)
    else if (filter.name !== 'default' || name !== 'allow_false' || value === undefined)
      throw refuse(filter.begin, `filter "${filter.name}" takes no named argument like this one`)
    else checkValue(value as LiteralToken)
  }
}

function readTokens(tokenizer: Tokenizer, piece: OutputPiece, text: string) {
  try {
    if (piece.reference !== undefined) return { values: [], filters: tokenizer.readFilters() }
    const { initial, filters } = tokenizer.readFilteredValue()
    return { values: initial.postfix, filters }
  } catch (cause) {
    const { message, token } = cause as Error & { token?: Token }
    const reason =
      COMPLAINTS.find(([pattern]) => pattern.test(message))?.[1] ?? 'this is not a valid expression'
    throw syntaxError(text, Math.min(token?.begin ?? piece.from, piece.to), reason, cause)
  }
}
