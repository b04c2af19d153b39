/** A call of a filter: charges the budget, and adds the column to errors. */
import { CofferError } from '../../errors.js'
import { type Budget, COMPARED_CHARACTERS, sizeOf } from './budget.js'
import { syntaxError } from './expression-text.js'

/** The cost in units of each member of an array, in addition to its size. */
const MEMBER_COST = 20

/** Filters that look for their first argument at each character of a text, in time of both lengths multiplied. */
const SEARCHING: ReadonlySet<string> = new Set(
  'remove remove_first remove_last replace replace_first replace_last split'.split(' '),
)
/** Filters that read the property of each member whose path is their first argument. */
const READING: ReadonlySet<string> = new Set(
  'find find_index has map reject sort sort_natural sum where'.split(' '),
)
/** The cost in units of each character of a path that is read. */
const PATH_COST = 10

/** What the filter costs by the product of its operands' lengths, besides the cost of each operand. */
function productCost(name: string, [value, argument, other]: readonly unknown[]): number {
  if (argument === undefined) return 0
  const size = sizeOf(argument)
  if (SEARCHING.has(name)) {
    const inserted = name === 'replace' ? sizeOf(other ?? '') / lengthOf(argument) : 0
    return sizeOf(value) * (size / COMPARED_CHARACTERS + inserted)
  }
  const members = value !== null && typeof value === 'object' ? Object.keys(value).length : 1
  if (name === 'join') return members * size
  return READING.has(name) ? members * size * PATH_COST : 0
}

/** Of a text to look for: an empty one is found between any two characters. */
function lengthOf(value: unknown): number {
  return typeof value === 'string' ? Math.max(1, value.length) : 1
}

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
    for (const operand of operands)
      budget.use(sizeOf(operand) + (Array.isArray(operand) ? operand.length * MEMBER_COST : 0))
    budget.use(productCost(name, operands))
    const result = work()
    if (typeof result !== 'number' || Number.isFinite(result)) return result
  } catch (cause) {
    const reason = cause instanceof CofferError ? cause.message : `filter "${name}" cannot work on this value`
    throw syntaxError(text, at, reason, cause)
  }
  throw syntaxError(text, at, `filter "${name}" gives no finite number here`)
}
