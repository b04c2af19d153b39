/**
 * What the expressions of a token yield over its data: id, mask, fingerprint, search values. While the data is not fit
 * to be rendered (`scope.data` is undefined) expressions are still checked, so that all complaints come at once.
 */
import { CofferError, type PropertyErrors } from '../../errors.js'
import type { Budget } from '../expression/budget.js'
import type { Expressions, ExpressionUse, Scope } from '../expression/expression.js'
import { isObject } from '../json/json.js'
import { addError, collectLater } from '../property-errors.js'
import { compileMask } from './mask.js'
import { checkTokenId } from './token-id.js'

export const MAX_SEARCH_INDEXES = 20

export interface Rendering {
  expressions: Expressions
  /** Complaints are added under the path of the attribute. */
  errors: PropertyErrors
  scope: Scope
  /** Shared by all expressions of the token. */
  budget: Budget
}

/** An id as given, or drawn by an expression, anew at every call. */
export type GivenId = { kind: 'given'; id: string } | { kind: 'alias'; draw(): string }

/** The id a caller asks for: literal, or with `{{` an alias expression over the data. */
export async function readId(
  { expressions, errors, scope }: Rendering,
  id: unknown,
): Promise<GivenId | undefined> {
  if (id === undefined) return undefined
  return collectLater(errors, 'id', async () => {
    if (typeof id !== 'string') throw new CofferError('validation', 'must be a string')
    if (!id.includes('{{')) {
      checkTokenId(id)
      return { kind: 'given', id }
    }
    const expression = await expressions.compile(id, 'id')
    const draw = () => requireDrawnId(expression.render(scope))
    if (scope.data !== undefined) draw()
    return { kind: 'alias', draw }
  })
}

function requireDrawnId(drawn: unknown): string {
  if (typeof drawn !== 'string' && typeof drawn !== 'number') {
    throw new CofferError('validation', 'the expression must yield text to be an id')
  }
  try {
    checkTokenId(String(drawn))
  } catch (cause) {
    throw new CofferError('validation', `what the expression yields ${(cause as Error).message}`, { cause })
  }
  return String(drawn)
}

/**
 * The mask over the data; undefined without a mask. Members of `usual`, the mask that the type brings along, show
 * nothing of what the data does not have; a mask of one's own shows null.
 */
export async function renderMask(
  { expressions, errors, scope, budget }: Rendering,
  mask: unknown,
  usual?: unknown,
): Promise<unknown> {
  if (mask === undefined) return undefined
  return collectLater(errors, 'mask', async () => {
    const compiled = await compileMask(mask, expressions, errors)
    return scope.data === undefined ? undefined : dropUnset(compiled.render(scope.data, budget), mask, usual)
  })
}

function dropUnset(masked: unknown, mask: unknown, usual: unknown): unknown {
  if (!isObject(masked) || !isObject(mask) || !isObject(usual)) return masked
  const isUnset = ([name, value]: [string, unknown]) => value === null && mask[name] === usual[name]
  return Object.fromEntries(Object.entries(masked).filter((member) => !isUnset(member)))
}

/**
 * What is fingerprinted. Nothing is refused: every token whose data lacks something would count as the same. By the
 * `usual` expression, which the type brings along, only equal data does.
 */
export async function renderFingerprint(
  rendering: Rendering,
  text: unknown,
  usual?: string,
): Promise<unknown> {
  return collectLater(rendering.errors, 'fingerprint_expression', async () => {
    const rendered = await renderText(rendering, text, 'fingerprint')
    const isBlank = typeof rendered === 'string' && rendered.trim() === ''
    if ((rendered !== null && !isBlank) || text === usual) return rendered
    throw new CofferError(
      'validation',
      `the expression must yield a value, not ${isBlank ? 'blank text' : 'null'}`,
    )
  })
}

/** The values a token is searched by: lower case, each once. */
export async function renderSearchIndexes(rendering: Rendering, texts: unknown): Promise<string[]> {
  if (texts === undefined) return []
  const { errors } = rendering
  if (!Array.isArray(texts) || texts.length > MAX_SEARCH_INDEXES) {
    addError(errors, 'search_indexes', `must be an array of at most ${MAX_SEARCH_INDEXES} expressions`)
    return []
  }
  const values = new Set<string>()
  for (const [index, text] of texts.entries()) {
    const value = await collectLater(errors, `search_indexes[${index}]`, async () => {
      const rendered = await renderText(rendering, text, 'search_index')
      return rendered === undefined ? undefined : requireSearchValue(rendered)
    })
    if (value !== undefined) values.add(value.toLowerCase())
  }
  return [...values]
}

function requireSearchValue(rendered: unknown): string {
  if (rendered !== '' && ['string', 'number', 'boolean'].includes(typeof rendered)) return String(rendered)
  throw new CofferError(
    'validation',
    'the expression must yield text, a number or a boolean, and not nothing',
  )
}

/** undefined while the data is not fit to be rendered. */
async function renderText(
  { expressions, scope, budget }: Rendering,
  text: unknown,
  use: ExpressionUse,
): Promise<unknown> {
  if (typeof text !== 'string') throw new CofferError('validation', 'must be a string')
  const expression = expressions.known(text, use) ?? (await expressions.compile(text, use))
  return scope.data === undefined ? undefined : expression.render(scope, budget)
}
