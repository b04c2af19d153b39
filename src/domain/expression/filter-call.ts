/** A call of a filter: charges the budget, and adds the column to errors. */
import { CofferError } from '../../errors.js'
import type { Budget } from './budget.js'
import { syntaxError } from './expression-text.js'

/** Steps of each call, and of a failed one. */
const CALL_STEPS = 100
const FAILURE_STEPS = 1000
/** Steps of each member of an array, in addition to its own. */
const MEMBER_STEPS = 16
/** Steps of each character for filters that work by the character instead of in native code. */
const CHARACTER_STEPS: Readonly<Record<string, number>> = {
  ...{ reveal_last: 4, reveal: 4, last4: 4, card_mask: 10, card_bin: 3, pad_left: 2, pad_right: 2, slice: 1 },
  ...{ escape: 1, escape_once: 2, strip_html: 1, truncate: 2, truncatewords: 2, sum: 1, url_encode: 1 },
}
/** Filters that look for their first argument at each character of a text, in time of both lengths multiplied. */
const SEARCHING: ReadonlySet<string> = new Set(
  'remove remove_first remove_last replace replace_first replace_last split'.split(' '),
)
/** Filters that read the property of each member whose path is their first argument. */
const READING: ReadonlySet<string> = new Set(
  'find find_index has map reject sort sort_natural sum where'.split(' '),
)
/** Steps of each member, and of each character of a path that is read. */
const READ_STEPS = 120
const PATH_STEPS = 4
/** Characters that are compared, or joined, in one step. */
const COMPARED_IN_A_STEP = 64
const JOINED_IN_A_STEP = 4

/** What the filter costs beside reading its operands. */
function stepsOf(name: string, [value, argument]: readonly unknown[]): number {
  const length = lengthOf(value)
  const size = lengthOf(argument)
  const members = value !== null && typeof value === 'object' ? Object.keys(value).length : 1
  if (SEARCHING.has(name)) return length * (size / COMPARED_IN_A_STEP)
  if (name === 'join') return (members * size) / JOINED_IN_A_STEP
  if (argument !== undefined && READING.has(name)) return members * (READ_STEPS + size * PATH_STEPS)
  return length * (CHARACTER_STEPS[name] ?? 0)
}

/** At most the length of what `replace` makes: counted before it is made. */
function requireRoom(name: string, [value, part, other]: readonly unknown[], budget: Budget): void {
  if (name !== 'replace') return
  budget.use((lengthOf(value) / Math.max(1, lengthOf(part))) * (lengthOf(other) / JOINED_IN_A_STEP))
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' ? value.length : 0
}

/** The position of a filter's call in an expression, and the name of the filter. */
export interface FilterPlace {
  text: string
  at: number
  name: string
}

/**
 * Runs `work`, the filter with its operands.
 * @throws CofferError `validation` with the column, if the filter fails or yields a number that is not finite;
 * `too_much_work`
 */
export function callFilter(
  { text, at, name }: FilterPlace,
  operands: readonly unknown[],
  budget: Budget,
  work: () => unknown,
): unknown {
  try {
    budget.use(CALL_STEPS)
    for (const operand of operands) {
      budget.read(operand)
      if (Array.isArray(operand)) budget.use(operand.length * MEMBER_STEPS)
    }
    budget.use(stepsOf(name, operands))
    requireRoom(name, operands, budget)
    const result = work()
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
