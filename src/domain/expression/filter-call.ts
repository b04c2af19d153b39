/**
 * One call of a filter: charged to the budget, its failures told with their place. It does not know whose filter it is.
 */
import { CofferError } from '../../errors.js'
import { type Budget, sizeOf } from './budget.js'
import { syntaxError } from './expression-text.js'

/** Units that each member of an array costs a filter, beside its size. */
const MEMBER_COST = 20

/** Where in which expression a filter is called, and by which name. */
export interface FilterPlace {
  text: string
  at: number
  name: string
}

/**
 * Runs `work` over plain operands.
 * @throws CofferError `validation` naming the column, when the work fails, ends in no finite number, or costs too much.
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
