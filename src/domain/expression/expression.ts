/**
 * Expressions: Liquid restricted to what yields a value. It knows where an expression may stand, but nothing of
 * tokens. The Liquid library is loaded when the first output that is not simple is compiled.
 */
import { BoundedMap } from '../../bounded-map.js'
import { CofferError } from '../../errors.js'
import { Budget, sizeOf } from './budget.js'
import type { ExpressionUse } from './expression-syntax.js'
import { isOutput, type OutputPiece, splitDetokenization, splitExpression } from './expression-text.js'
import { asJson, type Output, type Scope, textOf } from './expression-value.js'
import type { Random } from './filters.js'
import { loadJsonPath } from './json-path.js'
import { createLiquidReader, type LiquidReader, type LiquidTools } from './liquid-output.js'
import { readSimpleOutput } from './simple-output.js'

export type { ExpressionUse } from './expression-syntax.js'
export type { Scope } from './expression-value.js'
export type { Random } from './filters.js'

/** Longest expression; a detokenization is bounded by the request that holds it. */
export const MAX_EXPRESSION_LENGTH = 400
const CACHED_EXPRESSIONS = 1000

/** A checked expression, which can be rendered any number of times. */
export interface Expression {
  /** The token ids a detokenization names, each once. */
  readonly references: readonly string[]
  /**
   * The value with its JSON type when one output is the whole string, text otherwise; a missing property is null, and
   * null is nothing inside text. Several renderings may share one budget.
   * @throws CofferError `validation` when a filter cannot work on its value, naming the column.
   */
  render(scope: Scope, budget?: Budget): unknown
}

export interface Expressions {
  /**
   * Checks an expression; the result is kept for the next time.
   * @throws CofferError `validation` for bad syntax, unknown or forbidden filters and variables (naming the column),
   * or more than {@link MAX_EXPRESSION_LENGTH} characters.
   */
  compile(text: string, use: ExpressionUse): Promise<Expression>
  /** The expression where it is kept from before. */
  known(text: string, use: ExpressionUse): Expression | undefined
}

/** `random` feeds the alias filters. */
export function createExpressions(random: Random): Expressions {
  const compiled = new BoundedMap<string, Expression>(CACHED_EXPRESSIONS)
  const tools: LiquidTools = { random, jsonPath: undefined }
  let reader: Promise<LiquidReader> | undefined
  const outputs: OutputReader = async (text, piece, use) => {
    const simple = readSimpleOutput(text, piece, use, random)
    if (simple !== undefined) return simple
    reader ??= import('liquidjs').then((library) => createLiquidReader(library, tools))
    const output = (await reader).read(text, piece, use)
    if (output.usesJsonPath) tools.jsonPath ??= await loadJsonPath()
    return output
  }
  const keep = (text: string, use: ExpressionUse, expression: Expression) => {
    const key = `${use}:${text}`
    if (text.length <= MAX_EXPRESSION_LENGTH) compiled.set(key, expression)
    return expression
  }
  const known = (text: string, use: ExpressionUse) => {
    const expression = compiled.get(`${use}:${text}`)
    return expression === undefined ? undefined : keep(text, use, expression)
  }
  return {
    known,
    compile: async (text, use) =>
      known(text, use) ?? keep(text, use, await compileExpression(text, use, outputs)),
  }
}

type OutputReader = (text: string, piece: OutputPiece, use: ExpressionUse) => Promise<Output>

async function compileExpression(text: string, use: ExpressionUse, read: OutputReader): Promise<Expression> {
  if (use !== 'detokenize' && isTooLong(text)) {
    throw new CofferError('validation', `an expression has at most ${MAX_EXPRESSION_LENGTH} characters`)
  }
  const parts: (string | Output)[] = []
  const references = new Set<string>()
  for (const piece of use === 'detokenize' ? splitDetokenization(text) : splitExpression(text)) {
    parts.push(isOutput(piece) ? await read(text, piece, use) : piece.text)
    if (isOutput(piece) && piece.reference !== undefined) references.add(piece.reference)
  }
  return {
    references: [...references],
    render: (scope, budget = new Budget(scopeSize(scope, references))) => renderParts(parts, scope, budget),
  }
}

/** In code points, of which a text has at least half as many as UTF-16 units. */
function isTooLong(text: string): boolean {
  return text.length > 2 * MAX_EXPRESSION_LENGTH || [...text].length > MAX_EXPRESSION_LENGTH
}

function renderParts(parts: readonly (string | Output)[], scope: Scope, budget: Budget): unknown {
  const values = parts.map((part) =>
    typeof part === 'string' ? part : asJson(part.evaluate(scope, budget), budget),
  )
  return values.length === 1 ? values[0] : values.map((value) => textOf(value, budget)).join('')
}

function scopeSize(scope: Scope, references: Iterable<string>): number {
  let size = sizeOf(scope.data) + sizeOf(scope.metadata)
  for (const reference of references) size += sizeOf(scope.tokens?.get(reference))
  return size
}
