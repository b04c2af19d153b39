/** A call of a filter: charges the budget, and adds the column to errors. */
import { CofferError } from '../../errors.js'
import { type Budget, sizeOf } from './budget.js'
import { syntaxError } from './expression-text.js'

/** The cost in units of each member of an array, in addition to its size. */
const MEMBER_COST = 20

/** The position of a filter's call in an expression, and the name of the filter. */
export interface FilterPlace {
  text: string
  at: number
  name: string
}

/**
 * Runs `work`, the filter with its operands.
 * @throws CofferError `validation` with the column, if the filter fails, yields a number that is not finite, or exceeds
 * the budget.
 */
export function callFilter(
  { text, at, name }: FilterPlace,
  operands: readonly unknown[],
  budget: Budget,
  work: () => unknown,
): unknown {
  try {
    for (const operand of operands) {
      budget.use(sizeOf(operand) + (Array.isArray(operand) ? operand.length * MEMBER_COST : 0))
    }
    const result = work()
    if (typeof result !== 'number' || Number.isFinite(result)) return result
  } catch (cause) {
    const reason = cause instanceof CofferError ? cause.message : `filter "${name}" cannot work on this value`
    throw syntaxError(text, at, reason, cause)
  }
  throw syntaxError(text, at, `filter "${name}" gives no finite number here`)
}
