/** Evaluates parsed outputs, and charges the budget. */
import { CofferError } from '../../errors.js'
import type { Budget } from './budget.js'
import type { OutputPiece } from './expression-text.js'
import type { ExpressionUse, Scope } from './expression-value.js'
import type { FilterTools } from './filter-rule.js'
import { type FilterCall, parseOutput } from './parse-output.js'
import type { Value } from './parse-value.js'
import { readProperty } from './read-property.js'
import { syntaxError } from './syntax-error.js'

/** A checked `{{ … }}`. */
export interface Output {
  readonly usesJsonPath: boolean
  /** @throws CofferError `validation` with the column, if a filter cannot process its value; `too_much_work` */
  evaluate(scope: Scope, budget: Budget): unknown
}

/** Steps of a call, of a failed call, of a part of a path, and of a member of an array. */
const CALL_STEPS = 100
const FAILURE_STEPS = 1000
const PART_STEPS = 10
const MEMBER_STEPS = 16

export function readOutput(text: string, piece: OutputPiece, use: ExpressionUse, tools: FilterTools): Output {
  const { initial, filters } = parseOutput(text, piece, use)
  return {
    usesJsonPath: filters.some(({ name }) => name === 'json'),
    evaluate(scope, budget) {
      const variables = { data: scope.data, metadata: scope.metadata }
      const read = (value: Value) => evaluateValue(value, variables, budget)
      let value = initial === undefined ? referTo(scope, piece) : read(initial)
      for (const call of filters) value = callFilter(text, call, value, read, budget, tools)
      return value
    },
  }
}

function referTo({ tokens }: Scope, { reference, isWhole }: OutputPiece): unknown {
  const token = tokens?.get(reference!)
  return isWhole === true ? token : token?.data
}

function evaluateValue(value: Value, variables: object, budget: Budget): unknown {
  if ('constant' in value) return value.constant
  budget.use(value.path.length * PART_STEPS)
  return value.path.reduce<unknown>((object, part) => {
    const name = evaluateValue(part, variables, budget)
    // `size` counts the members of an object.
    if (name === 'size') budget.read(object)
    return readProperty(object, name)
  }, variables)
}

/**
 * @throws CofferError `validation` with the column, if the filter fails or yields a number that is not finite;
 * `too_much_work`
 */
function callFilter(
  text: string,
  { name, at, rule, args: given, allowFalse, isDecimal }: FilterCall,
  value: unknown,
  read: (value: Value) => unknown,
  budget: Budget,
  { random, hmac, jsonPath }: FilterTools,
): unknown {
  try {
    const args = given.map(read)
    budget.use(CALL_STEPS)
    charge(budget, value)
    for (const argument of args) charge(budget, argument)
    if (typeof value === 'string') budget.use(value.length * (rule.perCharacter ?? 0))
    if (rule.steps !== undefined) budget.use(rule.steps(value, args))
    const allowsFalse = allowFalse !== undefined && Boolean(read(allowFalse))
    // One literal: a spread costs more than most filters.
    const result = rule.run(value, args, { random, hmac, jsonPath, budget, isDecimal, allowsFalse })
    if (typeof result === 'string') budget.write(result)
    if (typeof result !== 'number' || Number.isFinite(result)) return result
  } catch (cause) {
    if (cause instanceof CofferError && cause.code === 'too_much_work') throw cause
    budget.use(FAILURE_STEPS)
    const reason = cause instanceof CofferError ? cause.message : `filter "${name}" cannot work on this value`
    throw syntaxError(text, at, reason, cause)
  }
  throw syntaxError(text, at, `filter "${name}" gives no finite number here`)
}

function charge(budget: Budget, operand: unknown): void {
  budget.read(operand)
  if (Array.isArray(operand)) budget.use(operand.length * MEMBER_STEPS)
}
