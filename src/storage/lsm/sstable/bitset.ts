/** Sets of row numbers, one bit a row. */
import { lowerBound } from './binary-search.js'

/** 32 rows a word; rows beyond the set's size are never in it. */
export type Bitset = Uint32Array<ArrayBuffer>

export function emptyBitset(rows: number): Bitset {
  return new Uint32Array(Math.ceil(rows / 32))
}

export function fullBitset(rows: number): Bitset {
  const bits = emptyBitset(rows).fill(0xffffffff)
  if (rows % 32 !== 0) bits[bits.length - 1] = 2 ** (rows % 32) - 1
  return bits
}

export function setBit(bits: Bitset, row: number): void {
  bits[row >>> 5]! |= 1 << (row & 31)
}

export function clearBit(bits: Bitset, row: number): void {
  bits[row >>> 5]! &= ~(1 << (row & 31))
}

export function hasBit(bits: Bitset, row: number): boolean {
  return (bits[row >>> 5]! & (1 << (row & 31))) !== 0
}

export function intersect(bits: Bitset, other: Bitset): void {
  for (let word = 0; word < bits.length; word++) bits[word]! &= other[word]!
}

export function unite(bits: Bitset, other: Bitset): void {
  for (let word = 0; word < bits.length; word++) bits[word]! |= other[word]!
}

export function subtract(bits: Bitset, other: Bitset): void {
  for (let word = 0; word < bits.length; word++) bits[word]! &= ~other[word]!
}

/** Keeps the rows from `from` to `below`, exclusive. */
export function keepBetween(bits: Bitset, from: number, below: number): void {
  for (let word = 0; word < bits.length; word++) {
    const first = word * 32
    if (first >= from && first + 32 <= below) continue
    if (first + 32 <= from || first >= below) bits[word] = 0
    else bits[word]! &= wordBetween(from - first, below - first)
  }
}

function wordBetween(from: number, below: number): number {
  const low = from <= 0 ? 0xffffffff : -1 << from
  const high = below >= 32 ? 0xffffffff : ~(-1 << below)
  return low & high
}

function countWord(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

export function countBits(bits: Bitset): number {
  let count = 0
  for (let word = 0; word < bits.length; word++) count += countWord(bits[word]!)
  return count
}

/** The rows of the set, ascending. */
export function* rowsOf(bits: Bitset): Generator<number> {
  for (let word = 0; word < bits.length; word++) {
    for (let rest = bits[word]!; rest !== 0; rest &= rest - 1)
      yield word * 32 + (31 - Math.clz32(rest & -rest))
  }
}

/** Gives the `index`-th row of the set, ascending, after one pass over it. */
export function selectFrom(bits: Bitset): { count: number; row(index: number): number } {
  const before = new Uint32Array(bits.length + 1)
  for (let word = 0; word < bits.length; word++) before[word + 1] = before[word]! + countWord(bits[word]!)
  return {
    count: before[bits.length]!,
    row(index) {
      const word = lowerBound(bits.length, (each) => before[each + 1]! > index)
      let rest = bits[word]!
      for (let skip = index - before[word]!; skip > 0; skip--) rest &= rest - 1
      return word * 32 + (31 - Math.clz32(rest & -rest))
    },
  }
}
