/** The subset of Liquid that yields values. */
import { BoundedMap } from '../../bounded-map.js'
import { validationError } from '../../errors.js'
import { Budget } from './budget.js'
import { isOutput, replaceCommas, splitDetokenization, splitExpression } from './expression-text.js'
import { asJson, type ExpressionUse, type Scope, textOf } from './expression-value.js'
import type { FilterTools, Hmac, RandomSource } from './filter-rule.js'
import { loadJsonPath } from './json-path.js'
import { type Output, readOutput } from './output.js'
import { syntaxError } from './syntax-error.js'

export type { ExpressionUse, Scope } from './expression-value.js'
export type { RandomSource } from './filter-rule.js'

/** The maximum length of an expression; a detokenization is limited by the size of the request. */
const MAX_EXPRESSION_LENGTH = 400
/** The maximum length of what follows the id of a token in a detokenization. */
const MAX_OUTPUT_LENGTH = 2000
const CACHED_EXPRESSIONS = 1000
/** Steps of compiling an output, and of each of its characters. */
const COMPILED_STEPS = 300
const COMPILED_CHARACTER_STEPS = 20
/** Steps of rendering a part, without its filters. */
const RENDERED_STEPS = 40

/** A checked expression, which can be rendered repeatedly. */
export interface Expression {
  /** The token ids in a detokenization, without repetitions. */
  readonly references: readonly string[]
  /**
   * The value with its JSON type if one output is the whole string, otherwise text. A missing property is null, and null
   * is empty inside text. All renderings of a request share one budget.
   * @throws CofferError `validation` with the column, if a filter cannot process its value; `too_much_work`
   */
  render(scope: Scope, budget?: Budget): unknown
}

export interface Expressions {
  /**
   * Checks an expression and caches the result.
   * @throws CofferError `validation` for invalid syntax, unknown or forbidden filters and variables (with the column), or
   * more than {@link MAX_EXPRESSION_LENGTH} characters.
   */
  compile(text: string, use: ExpressionUse, budget?: Budget): Promise<Expression>
  /** The expression if it is in the cache. */
  known(text: string, use: ExpressionUse): Expression | undefined
}

/** `random` is used by the alias filters, `hmac` by the filter of that name. */
export function createExpressions(random: RandomSource, hmac: Hmac): Expressions {
  const compiled = new BoundedMap<string, Expression>(CACHED_EXPRESSIONS)
  const tools: FilterTools = { random, hmac, jsonPath: undefined }
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
    compile: async (text, use, budget = new Budget()) =>
      known(text, use) ?? keep(text, use, await compileExpression(text, use, tools, budget)),
  }
}

async function compileExpression(
  text: string,
  use: ExpressionUse,
  tools: FilterTools,
  budget: Budget,
): Promise<Expression> {
  if (use !== 'detokenize' && isTooLong(text))
    throw validationError(`an expression has at most ${MAX_EXPRESSION_LENGTH} characters`)
  const parts: (string | Output)[] = []
  const references = new Set<string>()
  const pieces = use === 'detokenize' ? splitDetokenization(text) : splitExpression(text)
  const piped = replaceCommas(text, pieces)
  for (const piece of pieces) {
    if (!isOutput(piece)) {
      parts.push(piece.text)
      continue
    }
    const length = piece.to - piece.from
    if (length > MAX_OUTPUT_LENGTH)
      throw syntaxError(text, piece.from, `an expression has at most ${MAX_OUTPUT_LENGTH} characters`)
    budget.use(COMPILED_STEPS + length * COMPILED_CHARACTER_STEPS)
    if (budget.isTurnOver) await budget.pause()
    const output = readOutput(piped, piece, use, tools)
    if (output.usesJsonPath) tools.jsonPath ??= await loadJsonPath()
    parts.push(output)
    if (piece.reference !== undefined) references.add(piece.reference)
  }
  return {
    references: [...references],
    render: (scope, budget = new Budget()) => renderParts(parts, scope, budget),
  }
}

/** Lengths are in code points; a text has at least half as many of those as UTF-16 units. */
const isTooLong = (text: string) =>
  text.length > 2 * MAX_EXPRESSION_LENGTH || [...text].length > MAX_EXPRESSION_LENGTH

function renderParts(parts: readonly (string | Output)[], scope: Scope, budget: Budget): unknown {
  budget.use(RENDERED_STEPS * parts.length)
  const values = parts.map((part) =>
    typeof part === 'string' ? part : asJson(part.evaluate(scope, budget), budget),
  )
  return values.length === 1 ? values[0] : values.map((value) => textOf(value, budget)).join('')
}
