/** Evaluates outputs with the Liquid library, restricted to the allowed filters. The caller loads the library. */
import type { Token } from 'liquidjs'
import type { Budget } from './budget.js'
import { type FilterToken, type Library, readOutput } from './expression-syntax.js'
import type { OutputPiece } from './expression-text.js'
import type { ExpressionUse, Output, Scope } from './expression-value.js'
import { callFilter } from './filter-call.js'
import type { Hmac, JsonPath, RandomSource } from './filters.js'
import { LIBRARY_FILTERS, OWN_FILTERS, prepareOperands } from './standard-filters.js'

type Liquid = InstanceType<Library['Liquid']>
type Context = InstanceType<Library['Context']>

export interface LiquidReader {
  /** @throws CofferError `validation` with the column of the error. */
  read(text: string, piece: OutputPiece, use: ExpressionUse): LiquidOutput
}

interface LiquidOutput extends Output {
  /** Whether it uses the `json` filter, so that `jsonPath` of the tools must be set before it is evaluated. */
  usesJsonPath: boolean
}

/** The dependencies of filters; `jsonPath` may be set later. */
export interface LiquidTools {
  readonly random: RandomSource
  readonly hmac: Hmac
  jsonPath: JsonPath | undefined
}

/** Configures Liquid without tags, templates and operators. */
export function createLiquidReader(library: Library, tools: LiquidTools): LiquidReader {
  const liquid = new library.Liquid({
    operators: {},
    ownPropertyOnly: true,
    strictFilters: true,
    templates: {},
  })
  for (const tag of Object.keys(liquid.tags)) delete liquid.tags[tag]
  const decimal = new WeakSet<FilterToken>()
  const handlers = new Map<string, Handler>()
  for (const [name, [kind]] of LIBRARY_FILTERS) {
    const filter = library.filters[name as keyof typeof library.filters] as unknown as Handler
    add(name, function (value, ...args) {
      const [operand, ...operands] = prepareOperands(kind, value, args)
      return library.toValueSync(filter.call(this, operand, ...operands) as never)
    })
  }
  const plain = (value: unknown) => library.toValue(value) ?? null
  for (const [name, rule] of OWN_FILTERS)
    add(name, function (value, ...args) {
      return rule.run(plain(value), args.map(plain), { ...tools, budget: budgetOf(this) })
    })
  const divide = library.filters.divided_by as unknown as Handler
  const isInteger = (value: unknown) => Number.isInteger(Number(value)) && !String(value).includes('.')
  // Standard Liquid rounds integer division down; the library does so only on request.
  add('divided_by', function (value, divisor) {
    const operands = [library.toValue(value), library.toValue(divisor)]
    return divide.call(this, value, divisor, !decimal.has(this.token) && operands.every(isInteger))
  })
  return {
    read(text, piece, use) {
      const { initial, filters } = readOutput(library, text, piece, use)
      for (const filter of listDecimal(initial, filters)) decimal.add(filter)
      const chain = filters.map((token) => new library.Filter(token, handlers.get(token.name)!, liquid))
      const start = (scope: Scope, context: Context) => {
        if (piece.reference === undefined)
          return library.toValueSync(library.evalToken(initial, context) as never)
        const token = scope.tokens?.get(piece.reference)
        return piece.isWhole ? token : token?.data
      }
      return {
        usesJsonPath: filters.some(({ name }) => name === 'json'),
        evaluate(scope, budget) {
          const { data, metadata } = scope
          const variables = use === 'fingerprint' ? { data, metadata } : { data }
          // The library also charges its allocations, in characters.
          const limit = { budget, check() {}, use: (characters: number) => budget.use(characters / 8) }
          const limits = { memoryLimit: limit as never, renderLimit: limit as never, liquid }
          const context = new library.Context(variables, liquid.options, { sync: true }, limits)
          const value = chain.reduce<unknown>(
            (input, filter) => library.toValueSync(filter.render(input, context) as never),
            start(scope, context),
          )
          return library.toValue(value)
        },
      }
    },
  }

  /** Adds a filter that charges the budget. */
  function add(filter: string, handler: Handler): void {
    handlers.set(filter, function (value, ...args) {
      const { input: text, begin: at, name } = this.token
      const operands = [value, ...args].map((operand) => library.toValue(operand))
      return callFilter({ text, at, name }, operands, budgetOf(this), () =>
        handler.call(this, value, ...args),
      )
    })
  }
}

interface FilterCall {
  context: Context
  token: FilterToken
  liquid: Liquid
}

type Handler = (this: FilterCall, value: unknown, ...args: unknown[]) => unknown

/** The filters with an operand written as a decimal, such as `7.0`, which Liquid does not treat as an integer. */
function listDecimal(initial: Token | undefined, filters: readonly FilterToken[]): FilterToken[] {
  const isDecimal = (token: unknown) =>
    token !== undefined && /^-?[0-9]+\.[0-9]/.test((token as Token).getText())
  let isReached = isDecimal(initial)
  return filters.filter(({ name, args }) => {
    isReached ||= args.some((argument) => !Array.isArray(argument) && isDecimal(argument))
    if (['ceil', 'floor', 'round'].includes(name) && args.length === 0) isReached = false
    return isReached
  })
}

function budgetOf(call: FilterCall): Budget {
  return (call.context.memoryLimit as unknown as { budget: Budget }).budget
}
