/** The work limit of rendering: counted, not timed, so that the same expression and data always give the same result. */
import { validationError } from '../../errors.js'

/** The budget apart from the size of the data; a unit is about one character or array element. */
const BASE_UNITS = 2_000_000
/** How often all expressions together can process the whole data. */
const PASSES = 16

/** Has the methods `use` and `check` of the Liquid library's limits, so that it can stand in for them. */
export class Budget {
  private left: number

  constructor(dataSize = 0) {
    this.left = BASE_UNITS + PASSES * dataSize
  }

  /** @throws CofferError `validation` once the budget is exceeded. */
  use(units: number): void {
    if (!(units > 0)) return
    this.left -= units
    if (this.left < 0) throw validationError('this takes too much work for the size of the data')
  }

  /** The library's check of the time; not needed with a counted limit. */
  check(): void {}
}

/** Characters of two texts that are compared for one unit. */
export const COMPARED_CHARACTERS = 8

const MEMBER_SIZE = 4
/** The size of an array or object without its members. */
export const CONTAINER_SIZE = 16

/** The size of a JSON value in units, about the cost of copying it. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + MEMBER_SIZE
  if (value === null || typeof value !== 'object') return MEMBER_SIZE
  let size = CONTAINER_SIZE
  if (Array.isArray(value)) for (const item of value) size += sizeOf(item)
  else for (const [name, member] of Object.entries(value)) size += name.length + sizeOf(member)
  return size
}
