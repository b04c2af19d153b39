/** If the data of the token is invalid, `scope.data` is absent, and expressions are only checked. */
import { CofferError, type PropertyErrors, validationError } from '../../errors.js'
import { Budget } from '../expression/budget.js'
import type { Expression, Expressions, ExpressionUse, Scope } from '../expression/expression.js'
import { findTexts, listTexts, replaceTexts } from '../json/find-texts.js'
import { countValues, isObject } from '../json/json.js'
import { addError, collect, collectLater } from '../property-errors.js'
import type { TokenRecord } from '../records/token-record.js'
import { lastingData } from './card-code.js'

const MIN_ID_LENGTH = 3
const MAX_ID_LENGTH = 400
const MAX_SEARCH_INDEXES = 20
const MAX_MASK_VALUES = 4000

export interface Rendering {
  expressions: Expressions
  errors: PropertyErrors
  scope: Scope
  budget: Budget
}

/** An alias is an expression that generates a new id at each call of `draw`. */
export type GivenId = { kind: 'given'; id: string } | { kind: 'alias'; draw(): string }

export async function readId(rendering: Rendering, id: unknown): Promise<GivenId | undefined> {
  const { expressions, errors, scope, budget } = rendering
  return collectLater(errors, 'id', async () => {
    if (typeof id !== 'string') throw validationError('must be a string')
    if (!id.includes('{{')) return { kind: 'given', id: requireTokenId(id) }
    const expression = await expressions.compile(id, 'id', budget)
    const draw = () => requireTokenId(expression.render(scope, budget))
    if (scope.data !== undefined) draw()
    return { kind: 'alias', draw }
  })
}

/**
 * Lengths are in code points.
 * @throws CofferError `validation` if the id is invalid. The message does not contain the id.
 */
export function requireTokenId(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number')
    throw validationError('the expression must yield text that can be an id')
  const id = String(value)
  const length = [...id.slice(0, 2 * MAX_ID_LENGTH + 1)].length
  if (length < MIN_ID_LENGTH || length > MAX_ID_LENGTH)
    throw validationError(`must have ${MIN_ID_LENGTH} to ${MAX_ID_LENGTH} characters`)
  if (/[#/\\+?[\]|&=%<>{}^\p{Cc}\p{Cs}]/u.test(id))
    throw validationError('must not contain # / \\ + ? [ ] | & = % < > { } ^ or control characters')
  return id
}

/**
 * If the data lacks a part, an expression that reads the part is null. A null member of the default mask (`usual`) is
 * left out.
 */
export async function renderMask(rendering: Rendering, mask: unknown, usual?: unknown): Promise<unknown> {
  const { expressions, errors, scope, budget } = rendering
  if (mask === undefined) return undefined
  if (countValues(mask) > MAX_MASK_VALUES) {
    addError(errors, 'mask', `must have at most ${MAX_MASK_VALUES} values and property names`)
    return undefined
  }
  const paths = findTexts(mask, 'mask', new Map(), () => true)
  const compiled = new Map<string, Expression | undefined>()
  for (const [text, at] of paths) {
    if (budget.turns.isOver) await budget.turns.next()
    const compile = () => expressions.compile(text, 'mask', budget)
    compiled.set(text, expressions.known(text, 'mask') ?? (await collectLater(errors, at, compile)))
  }
  if (scope.data === undefined) return undefined
  const rendered: unknown[] = []
  for (const text of listTexts(mask)) {
    if (budget.turns.isOver) await budget.turns.next()
    const render = () => compiled.get(text)?.render({ data: scope.data }, budget)
    rendered.push(collect(errors, paths.get(text)!, render))
  }
  return dropUnset(replaceTexts(mask, rendered.values()), mask, usual)
}

function dropUnset(masked: unknown, mask: unknown, usual: unknown): unknown {
  if (!isObject(masked) || !isObject(mask) || !isObject(usual)) return masked
  const isUnset = ([name, value]: [string, unknown]) => value === null && mask[name] === usual[name]
  return Object.fromEntries(Object.entries(masked).filter((member) => !isUnset(member)))
}

/**
 * Refuses null and blank text, because all tokens without the data would have equal fingerprints. `usual`: the default
 * of the type, which is always accepted.
 */
export async function renderFingerprint(rendering: Rendering, text: unknown, usual?: string) {
  return collectLater(rendering.errors, 'fingerprint_expression', async () => {
    const rendered = await renderText(rendering, text, 'fingerprint')
    const isBlank = rendered === null || (typeof rendered === 'string' && rendered.trim() === '')
    if (!isBlank || text === usual) return rendered
    throw validationError('the expression must yield a value, not null and not blank text')
  })
}

export async function renderSearchIndexes(rendering: Rendering, texts: unknown): Promise<string[]> {
  const { errors } = rendering
  if (texts === undefined) return []
  if (!Array.isArray(texts) || texts.length > MAX_SEARCH_INDEXES) {
    addError(errors, 'search_indexes', `must be an array of at most ${MAX_SEARCH_INDEXES} expressions`)
    return []
  }
  const values = new Set<string>()
  for (const [index, text] of texts.entries())
    await collectLater(errors, `search_indexes[${index}]`, async () => {
      const rendered = await renderText(rendering, text, 'search_index')
      if (rendered === '' || !['undefined', 'string', 'number', 'boolean'].includes(typeof rendered))
        throw validationError('the expression must yield a number, a boolean or text that is not empty')
      if (rendered !== undefined) values.add(String(rendered).toLowerCase())
    })
  return [...values]
}

/**
 * The vault stores only digests of the values, so the values are rendered again.
 * @throws CofferError `internal`
 */
export async function renderSearchOf(
  token: Pick<TokenRecord, 'data' | 'code' | 'search_indexes'>,
  expressions: () => Promise<Expressions>,
  budget = new Budget(),
): Promise<string[]> {
  const { search_indexes: texts = [] } = token
  if (texts.length === 0) return []
  const errors: PropertyErrors = {}
  const scope = { data: lastingData(token) }
  const values = await renderSearchIndexes({ expressions: await expressions(), errors, scope, budget }, texts)
  if (Object.keys(errors).length === 0) return values
  throw new CofferError('internal', 'A search index of a token cannot be evaluated.')
}

async function renderText({ expressions, scope, budget }: Rendering, text: unknown, use: ExpressionUse) {
  if (typeof text !== 'string') throw validationError('must be a string')
  if (budget.turns.isOver) await budget.turns.next()
  const expression = expressions.known(text, use) ?? (await expressions.compile(text, use, budget))
  return scope.data === undefined ? undefined : expression.render(scope, budget)
}
