/**
 * How much work rendering may do, counted instead of timed, so that the same expression over the same data
 * always ends the same way. Knows nothing of what the work is.
 */
import { CofferError } from '../../errors.js'

/** What rendering may cost beside the size of its data; a unit is about one character or array element. */
const BASE_UNITS = 2_000_000
/** How many times all expressions together may pass over the data. */
const PASSES = 16

/** Counts down. Its `use` and `check` are also what the Liquid library asks of a memory limit. */
export class Budget {
  private left: number

  constructor(dataSize = 0) {
    this.left = BASE_UNITS + PASSES * dataSize
  }

  /** @throws CofferError `validation` once more was used than there was. */
  use(units: number): void {
    if (!(units > 0)) return
    this.left -= units
    if (this.left < 0)
      throw new CofferError('validation', 'this takes too much work for the size of the data')
  }

  /** The library's clock check; counting makes it needless. */
  check(): void {}
}

const MEMBER_SIZE = 4
/** What an array or object counts for beside its members. */
export const CONTAINER_SIZE = 16

/** Size of a JSON value in units, about what it takes to walk and copy it. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + MEMBER_SIZE
  if (value === null || typeof value !== 'object') return MEMBER_SIZE
  let size = CONTAINER_SIZE
  if (Array.isArray(value)) for (const item of value) size += sizeOf(item)
  else for (const [name, member] of Object.entries(value)) size += name.length + sizeOf(member)
  return size
}
