/**
 * Renders the expressions of a token over its data: id, mask, fingerprint and search values. If the data is invalid
 * (`scope.data` is undefined), the expressions are only checked, so that all errors are reported together.
 */
import { type PropertyErrors, validationError } from '../../errors.js'
import type { Budget } from '../expression/budget.js'
import type { Expressions, ExpressionUse, Scope } from '../expression/expression.js'
import { isObject } from '../json/json.js'
import { addError, collectLater } from '../property-errors.js'
import { compileMask } from './mask.js'
import { checkTokenId } from './token-id.js'

const MAX_SEARCH_INDEXES = 20

export interface Rendering {
  expressions: Expressions
  /** Errors are added under the path of the attribute. */
  errors: PropertyErrors
  scope: Scope
  budget: Budget
}

/** A literal id, or an expression that generates a new id at each call of `draw`. */
export type GivenId = { kind: 'given'; id: string } | { kind: 'alias'; draw(): string }

/** The id that a caller requests: literal, or an alias expression over the data if it contains `{{`. */
export async function readId(
  { expressions, errors, scope, budget }: Rendering,
  id: unknown,
): Promise<GivenId | undefined> {
  return collectLater(errors, 'id', async () => {
    if (typeof id !== 'string') throw validationError('must be a string')
    if (!id.includes('{{')) {
      checkTokenId(id)
      return { kind: 'given', id }
    }
    const expression = await expressions.compile(id, 'id', budget)
    const draw = () => requireDrawnId(expression.render(scope, budget))
    if (scope.data !== undefined) draw()
    return { kind: 'alias', draw }
  })
}

function requireDrawnId(drawn: unknown): string {
  if (typeof drawn !== 'string' && typeof drawn !== 'number')
    throw validationError('the expression must yield text that can be an id')
  try {
    checkTokenId(String(drawn))
  } catch (cause) {
    throw validationError(`what the expression yields ${(cause as Error).message}`, { cause })
  }
  return String(drawn)
}

/**
 * The mask rendered over the data; undefined without a mask. For data that is absent, members that are the same in
 * `usual`, the default mask of the type, are omitted; members of a custom mask are null.
 */
export async function renderMask(
  { expressions, errors, scope, budget }: Rendering,
  mask: unknown,
  usual?: unknown,
): Promise<unknown> {
  if (mask === undefined) return undefined
  return collectLater(errors, 'mask', async () => {
    const compiled = await compileMask(mask, expressions, errors, budget)
    if (scope.data === undefined) return undefined
    return dropUnset(await compiled.render(scope.data), mask, usual)
  })
}

function dropUnset(masked: unknown, mask: unknown, usual: unknown): unknown {
  if (!isObject(masked) || !isObject(mask) || !isObject(usual)) return masked
  const isUnset = ([name, value]: [string, unknown]) => value === null && mask[name] === usual[name]
  return Object.fromEntries(Object.entries(masked).filter((member) => !isUnset(member)))
}

/**
 * The value to fingerprint. A custom expression must not yield null or blank text, because all tokens without the data
 * it names would then be equal. The `usual` expression, the default of the type, may: it uses all of the data.
 */
export async function renderFingerprint(rendering: Rendering, text: unknown, usual?: string) {
  return collectLater(rendering.errors, 'fingerprint_expression', async () => {
    const rendered = await renderText(rendering, text, 'fingerprint')
    const isBlank = typeof rendered === 'string' && rendered.trim() === ''
    if ((rendered !== null && !isBlank) || text === usual) return rendered
    throw validationError(`the expression must yield a value, not ${isBlank ? 'blank text' : 'null'}`)
  })
}

/** The search index values: lower case, without repetitions. */
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
  throw validationError('the expression must yield a number, a boolean or text that is not empty')
}

/** undefined if the data is invalid. */
async function renderText({ expressions, scope, budget }: Rendering, text: unknown, use: ExpressionUse) {
  if (typeof text !== 'string') throw validationError('must be a string')
  if (budget.isTurnOver) await budget.pause()
  const expression = expressions.known(text, use) ?? (await expressions.compile(text, use, budget))
  return scope.data === undefined ? undefined : expression.render(scope, budget)
}
