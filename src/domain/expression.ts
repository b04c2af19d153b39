/**
 * Expressions: Liquid restricted to what yields a value. It knows where an expression may stand, but nothing of
 * tokens. The Liquid library is loaded when the first expression with an output is compiled.
 */
import type { Context, Filter, Liquid, Token } from 'liquidjs'
import { CofferError } from '../errors.js'
import { Budget, sizeOf } from './budget.js'
import { type ExpressionUse, type FilterToken, type Library, readOutput } from './expression-syntax.js'
import {
  isOutput,
  type OutputPiece,
  type Piece,
  splitDetokenization,
  splitExpression,
  syntaxError,
} from './expression-text.js'
import { asJson, textOf } from './expression-value.js'
import { FILTERS, type FilterRule, type JsonPath, type Random } from './filters.js'
import { loadJsonPath } from './json-path.js'
import { LIBRARY_FILTERS, OWN_STANDARD_FILTERS, prepareOperands } from './standard-filters.js'

export type { ExpressionUse } from './expression-syntax.js'
export type { Random } from './filters.js'

/** Longest expression; a detokenization is bounded by the request that holds it. */
export const MAX_EXPRESSION_LENGTH = 400
const CACHED_EXPRESSIONS = 1000
/** Units that each member of an array costs a filter, beside its size. */
const MEMBER_COST = 20

/** What an expression is rendered over; `tokens` (data by id) only in a detokenization. */
export interface Scope {
  data?: unknown
  metadata?: Readonly<Record<string, string>>
  tokens?: ReadonlyMap<string, unknown>
}

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
}

/** `random` feeds the alias filters. */
export function createExpressions(random: Random): Expressions {
  const compiled = new Map<string, Expression>()
  let engine: Promise<Engine> | undefined
  return {
    async compile(text, use) {
      const key = `${use}:${text}`
      const known = compiled.get(key)
      const expression = known ?? (await compileExpression(text, use, () => (engine ??= loadEngine(random))))
      compiled.delete(key)
      if (text.length <= MAX_EXPRESSION_LENGTH) compiled.set(key, expression)
      if (compiled.size > CACHED_EXPRESSIONS) compiled.delete(compiled.keys().next().value!)
      return expression
    },
  }
}

// ---------------------------------------------------------------- compiling

/** An output ready to be evaluated; `initial` is absent when it starts from a token. */
interface Output {
  initial: Token | undefined
  reference: string | undefined
  filters: Filter[]
}

async function compileExpression(
  text: string,
  use: ExpressionUse,
  load: () => Promise<Engine>,
): Promise<Expression> {
  if (
    use !== 'detokenize' &&
    [...text.slice(0, 2 * MAX_EXPRESSION_LENGTH + 1)].length > MAX_EXPRESSION_LENGTH
  ) {
    throw new CofferError('validation', `an expression has at most ${MAX_EXPRESSION_LENGTH} characters`)
  }
  const pieces = use === 'detokenize' ? splitDetokenization(text) : splitExpression(text)
  const references = new Set(pieces.flatMap((piece) => (isOutput(piece) ? (piece.reference ?? []) : [])))
  if (!pieces.some(isOutput)) return { references: [], render: () => pieces.map(plainText).join('') }

  const engine = await load()
  const parts = pieces.map((piece) => (isOutput(piece) ? engine.compile(text, piece, use) : piece.text))
  const usesJsonPath = parts.some(
    (part) => typeof part !== 'string' && part.filters.some(({ name }) => name === 'json'),
  )
  if (usesJsonPath) await engine.needJsonPath()
  return {
    references: [...references],
    render: (scope, budget = new Budget(scopeSize(scope, references))) =>
      engine.render(parts, scope, use, budget),
  }
}

function plainText(piece: Piece): string {
  return isOutput(piece) ? '' : piece.text
}

function scopeSize(scope: Scope, references: Iterable<string>): number {
  let size = sizeOf(scope.data) + sizeOf(scope.metadata)
  for (const reference of references) size += sizeOf(scope.tokens?.get(reference))
  return size
}

// ---------------------------------------------------------------- the restricted Liquid

interface Engine {
  compile(text: string, piece: OutputPiece, use: ExpressionUse): Output
  needJsonPath(): Promise<void>
  render(parts: readonly (string | Output)[], scope: Scope, use: ExpressionUse, budget: Budget): unknown
}

interface Tools {
  random: Random
  jsonPath: JsonPath | undefined
}

async function loadEngine(random: Random): Promise<Engine> {
  const library = await import('liquidjs')
  const tools: Tools = { random, jsonPath: undefined }
  const liquid = new library.Liquid({
    operators: {},
    ownPropertyOnly: true,
    strictFilters: true,
    templates: {},
  })
  for (const tag of Object.keys(liquid.tags)) delete liquid.tags[tag]
  const filters = wrapFilters(library, tools)
  return {
    compile(text, piece, use) {
      const { initial, filters: tokens } = readOutput(library, text, piece, use)
      const chain = tokens.map((token) => new library.Filter(token, filters.get(token.name)!, liquid))
      return { initial, reference: piece.reference, filters: chain }
    },
    async needJsonPath() {
      tools.jsonPath ??= await loadJsonPath()
    },
    render(parts, scope, use, budget) {
      const context = createContext(library, liquid, scope, use, budget)
      const values = parts.map((part) =>
        typeof part === 'string' ? part : asJson(evaluate(library, part, scope, context), budget),
      )
      return values.length === 1 ? values[0] : values.map((value) => textOf(value, budget)).join('')
    },
  }
}

/** The library charges what it allocates to the budget too, which has a limiter's methods. */
function createContext(
  library: Library,
  liquid: Liquid,
  scope: Scope,
  use: ExpressionUse,
  budget: Budget,
): Context {
  const variables =
    use === 'fingerprint' ? { data: scope.data, metadata: scope.metadata } : { data: scope.data }
  const limits = { memoryLimit: budget as never, renderLimit: budget as never, liquid }
  return new library.Context(variables, liquid.options, { sync: true }, limits)
}

function evaluate(library: Library, output: Output, scope: Scope, context: Context): unknown {
  const initial =
    output.reference === undefined
      ? library.toValueSync(library.evalToken(output.initial, context) as never)
      : scope.tokens?.get(output.reference)
  const value = output.filters.reduce<unknown>(
    (input, filter) => library.toValueSync(filter.render(input, context) as never),
    initial,
  )
  return library.toValue(value)
}

interface FilterCall {
  context: Context
  token: FilterToken
  liquid: Liquid
}

type Handler = (this: FilterCall, value: unknown, ...args: unknown[]) => unknown

function wrapFilters(library: Library, tools: Tools): Map<string, Handler> {
  const wrapped = new Map<string, Handler>()
  for (const [name, [kind]] of LIBRARY_FILTERS) {
    const filter = library.filters[name as keyof typeof library.filters] as unknown as Handler
    wrapped.set(name, function (value, ...args) {
      const [operand, ...operands] = prepareOperands(kind, value, args)
      return library.toValueSync(filter.call(this, operand, ...operands) as never)
    })
  }
  for (const [name, rule] of [...OWN_STANDARD_FILTERS, ...FILTERS]) {
    wrapped.set(name, wrapRule(library, rule, tools))
  }
  for (const [name, handler] of wrapped) wrapped.set(name, guard(library, name, handler))
  return wrapped
}

function wrapRule(library: Library, rule: FilterRule, tools: Tools): Handler {
  const plain = (value: unknown) => library.toValue(value) ?? null
  return function (value, ...args) {
    const budget = budgetOf(this)
    return rule.run(plain(value), args.map(plain), { ...tools, budget })
  }
}

/** Charges the operands to the budget, and turns every failure into a refusal that names the place. */
function guard(library: Library, name: string, handler: Handler): Handler {
  return function (value, ...args) {
    try {
      for (const operand of [value, ...args]) charge(library.toValue(operand), budgetOf(this))
      const result = handler.call(this, value, ...args)
      if (typeof result !== 'number' || Number.isFinite(result)) return result
    } catch (cause) {
      const known =
        cause instanceof CofferError ? cause.message : `filter "${name}" cannot work on this value`
      throw syntaxError(this.token.input, this.token.begin, known, cause)
    }
    throw syntaxError(this.token.input, this.token.begin, `filter "${name}" gives no finite number here`)
  }
}

function budgetOf(call: FilterCall): Budget {
  return call.context.memoryLimit as unknown as Budget
}

function charge(operand: unknown, budget: Budget): void {
  budget.use(sizeOf(operand) + (Array.isArray(operand) ? operand.length * MEMBER_COST : 0))
}
