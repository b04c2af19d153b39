import { BoundedMap } from '../../bounded-map.js'
import { CofferError, validationError } from '../../errors.js'
import { mapScalars } from '../json/find-texts.js'
import { Budget } from './budget.js'
import { type Hmac, type JsonPath, type RandomSource, readProperty, syntaxError, textOf } from './filter.js'
import { loadJsonPath } from './json-path.js'
import {
  ExpressionParser,
  type ExpressionUse,
  type FilterCall,
  hasTags,
  type Output,
  type Reference,
  type Value,
} from './parse.js'

export type { ExpressionUse, RecordKind, Reference } from './parse.js'

const MAX_EXPRESSION_LENGTH = 400
const CACHED_EXPRESSIONS = 1000
const RENDERED_STEPS = 40
const CALL_STEPS = 100
const FAILURE_STEPS = 1000
const PART_STEPS = 10
const MEMBER_STEPS = 16

export interface Scope {
  data?: unknown
  metadata?: Readonly<Record<string, string>>
  tokens?: ReadonlyMap<Reference, unknown>
  /** Only in a transform: the body of the message. */
  readonly body?: unknown
  /**
   * Only in a header of a call through a proxy: the configuration of the proxy, and the request. The request lacks the
   * headers whose expressions read `proxy`.
   */
  proxy?: unknown
}

export class Expressions {
  readonly random: RandomSource
  readonly hmac: Hmac
  jsonPath: JsonPath | undefined
  readonly #compiled = new BoundedMap<string, Expression>(CACHED_EXPRESSIONS)

  constructor(random: RandomSource, hmac: Hmac) {
    this.random = random
    this.hmac = hmac
  }

  known(text: string, use: ExpressionUse): Expression | undefined {
    return this.#compiled.get(`${use}:${text}`)
  }

  /** @throws CofferError `validation` with the column, or `too_much_work` */
  async compile(text: string, use: ExpressionUse, budget = new Budget()): Promise<Expression> {
    const known = this.known(text, use)
    if (known !== undefined) return known
    const isLong = isTooLong(text)
    if (isLong && hasTags(use))
      throw validationError(`an expression has at most ${MAX_EXPRESSION_LENGTH} characters`)
    const parts: (string | Output)[] = []
    for (const part of new ExpressionParser(text, use, budget).parts()) {
      parts.push(part)
      if (budget.turns.isOver) await budget.turns.next()
      if (typeof part !== 'string' && part.filters.some(({ name }) => name === 'json'))
        this.jsonPath ??= await loadJsonPath()
    }
    const expression = new Expression(text, parts, this)
    if (!isLong) this.#compiled.set(`${use}:${text}`, expression)
    return expression
  }
}

/**
 * The limit counts code points. A code point has at most two UTF-16 units, so the first comparison refuses a very long
 * text without counting.
 */
const isTooLong = (text: string) =>
  text.length > 2 * MAX_EXPRESSION_LENGTH || [...text].length > MAX_EXPRESSION_LENGTH

export class Expression {
  readonly references: readonly Reference[]
  /** Expressions that read `proxy` are rendered last, because `proxy` contains the rendered rest of the call. */
  readonly usesProxy: boolean
  readonly #text: string
  readonly #parts: readonly (string | Output)[]
  readonly #tools: Expressions

  constructor(text: string, parts: readonly (string | Output)[], tools: Expressions) {
    this.#text = text
    this.#parts = parts
    this.#tools = tools
    const outputs = parts.filter((part) => typeof part !== 'string')
    const tokens = outputs.flatMap(({ initial }) => ('token' in initial ? [initial.token] : []))
    this.references = [...new Set(tokens)]
    const values = outputs.flatMap(({ initial, filters }) => [
      initial,
      ...filters.flatMap(({ args }) => args),
    ])
    this.usesProxy = values.some(isOfProxy)
  }

  /**
   * If the text is a single output, returns the value with its JSON type. Otherwise returns text. A property that does
   * not exist is null.
   * @throws CofferError `validation` or `too_much_work`
   */
  render(scope: Scope, budget = new Budget()): unknown {
    budget.use(RENDERED_STEPS * this.#parts.length)
    const values = this.#parts.map((part) =>
      typeof part === 'string' ? part : this.#evaluate(part, scope, budget),
    )
    return values.length === 1 ? values[0] : values.map((value) => budget.write(textOf(value))).join('')
  }

  #evaluate({ initial, filters }: Output, scope: Scope, budget: Budget): unknown {
    let value = evaluateValue(initial, scope, budget)
    for (const call of filters) value = this.#call(call, value, scope, budget)
    if (typeof value === 'object' && value !== null) budget.read(value)
    return mapScalars(value, (scalar) => scalar ?? null)
  }

  #call(call: FilterCall, value: unknown, scope: Scope, budget: Budget): unknown {
    const { name, at, rule, isDecimal } = call
    const { random, hmac, jsonPath } = this.#tools
    try {
      const args = call.args.map((argument) => evaluateValue(argument, scope, budget))
      budget.use(CALL_STEPS)
      charge(budget, value)
      for (const argument of args) charge(budget, argument)
      if (typeof rule.steps === 'function') budget.use(rule.steps(value, args))
      else if (typeof value === 'string') budget.use(value.length * (rule.steps ?? 0))
      const result = rule.run(value, args, { random, hmac, jsonPath, budget, isDecimal }) ?? null
      if (typeof result === 'string') budget.write(result)
      if (typeof result !== 'number' || Number.isFinite(result)) return result
    } catch (cause) {
      if (cause instanceof CofferError && cause.code === 'too_much_work') throw cause
      budget.use(FAILURE_STEPS)
      const reason =
        cause instanceof CofferError ? cause.message : `filter "${name}" cannot work on this value`
      throw syntaxError(this.#text, at, reason, cause)
    }
    throw syntaxError(this.#text, at, `filter "${name}" gives no finite number here`)
  }
}

function evaluateValue(value: Value, scope: Scope, budget: Budget): unknown {
  if ('constant' in value) return value.constant
  if ('token' in value) {
    const token = scope.tokens?.get(value.token)
    return (value.isWhole ? token : readProperty(token, 'data')) ?? null
  }
  if (isOfProxy(value) && scope.proxy === undefined)
    throw validationError('proxy can only be used in headers of a call through a proxy')
  budget.use(value.path.length * PART_STEPS)
  let found: unknown = scope
  for (const part of value.path) {
    const name = evaluateValue(part, scope, budget)
    // Counting the members of an object takes time, so `size` is charged to the budget.
    if (name === 'size') budget.read(found)
    found = readProperty(found, name)
  }
  return found ?? null
}

function isOfProxy(value: Value): boolean {
  return 'path' in value && (value.path[0] as { constant?: unknown }).constant === 'proxy'
}

function charge(budget: Budget, operand: unknown): void {
  budget.read(operand)
  if (Array.isArray(operand)) budget.use(operand.length * MEMBER_STEPS)
}
