/**
 * Seeks matching rows from the highest number down, by leapfrog over postings, and reads none of the rows between. The
 * numbers are those of the rows of a table, or the `seq`s of a memtable.
 */
import type { Key, RowId, Where } from '../engine.js'
import { lowerBound } from './sstable/binary-search.js'

/** Numbers, ascending. */
interface Ascending {
  count: number
  at(index: number): number
}

export interface SeekSource {
  /** The numbers of the rows that carry the key. */
  posting(key: Key): Ascending
  withIds(ids: readonly RowId[]): readonly number[]
  /** Whether the row meets a condition that has no posting; called with ever lower numbers. */
  test(where: Extract<Where, { not: Where } | { range: unknown }>): (number: number) => boolean
}

/** The highest match up to `most`, or -1. Contract: `most` is never higher than at the call before. */
type Seek = (most: number) => number

export function createSeek(source: SeekSource, where: Where): Seek {
  if ('key' in where) return seekAlong(source.posting(where.key))
  if ('ids' in where) {
    const found = source.withIds(where.ids)
    return seekAlong({ count: found.length, at: (index) => found[index]! })
  }
  if ('not' in where || 'range' in where) {
    const meets = source.test(where)
    let found = Number.POSITIVE_INFINITY
    return (most) => {
      // Numbers that were passed over are not tested again, because `test` takes ever lower ones.
      if (most < found) for (found = most; found >= 0 && !meets(found); ) found--
      return found
    }
  }
  const parts = ('and' in where ? where.and : where.or).map((part) => createSeek(source, part))
  if ('or' in where) return (most) => parts.reduce((best, seek) => Math.max(best, seek(most)), -1)
  return (most) => {
    for (let number = most; ; ) {
      const before = number
      for (const seek of parts) number = seek(number)
      if (number === before) return number
    }
  }
}

function seekAlong({ count, at }: Ascending): Seek {
  /** All numbers from this index on are above the last `most`. */
  let end = count
  return (most) => {
    // The next number is near most of the time.
    let step = 1
    while (step < end && at(end - step) > most) step *= 2
    const from = Math.max(0, end - step)
    end = from + lowerBound(end - from, (index) => at(from + index) > most)
    return end === 0 ? -1 : at(end - 1)
  }
}
