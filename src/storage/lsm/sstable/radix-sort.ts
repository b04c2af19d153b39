/** Sorts many 8-byte keys together with their rows, in typed arrays: no object per key, hence no garbage. */
import type { Row } from '../../engine.js'

/** Keys and rows, ascending by key (as bytes), then in the order they were added. */
class RadixSortedKeys {
  #high: Uint32Array
  #low: Uint32Array
  #rows: Uint32Array
  #count = 0

  constructor(capacity: number) {
    this.#high = new Uint32Array(capacity)
    this.#low = new Uint32Array(capacity)
    this.#rows = new Uint32Array(capacity)
  }

  get count(): number {
    return this.#count
  }

  /** Takes the 8 bytes from `at` on. */
  add(bytes: Uint8Array, at: number, row: number): void {
    const index = this.#count++
    this.#high[index] = readWord(bytes, at)
    this.#low[index] = readWord(bytes, at + 4)
    this.#rows[index] = row
  }

  /** Radix sort, 16 bits at a time from the lowest: stable, and linear in the number of keys. */
  sort(): void {
    let from = new Uint32Array(this.#count)
    for (let index = 0; index < from.length; index++) from[index] = index
    let to = new Uint32Array(this.#count)
    for (const [words, shift] of [
      [this.#low, 0],
      [this.#low, 16],
      [this.#high, 0],
      [this.#high, 16],
    ] as const) {
      scatter(words, shift, from, to)
      const swapped = from
      from = to
      to = swapped
    }
    // Later reads in this order then read memory in order.
    this.#high = gather(this.#high, from)
    this.#low = gather(this.#low, from)
    this.#rows = gather(this.#rows, from)
  }

  row(position: number): number {
    return this.#rows[position]!
  }

  /** The words of the key at a position, big-endian. */
  high(position: number): number {
    return this.#high[position]!
  }

  low(position: number): number {
    return this.#low[position]!
  }

  /** The position after the last one that has the same key as `position`. */
  endOf(position: number): number {
    let end = position + 1
    while (
      end < this.#count &&
      this.#low[end] === this.#low[position] &&
      this.#high[end] === this.#high[position]
    ) {
      end++
    }
    return end
  }
}

function gather(words: Uint32Array, order: Uint32Array): Uint32Array {
  const gathered = new Uint32Array(order.length)
  for (let position = 0; position < order.length; position++) gathered[position] = words[order[position]!]!
  return gathered
}

function readWord(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
}

function scatter(words: Uint32Array, shift: number, from: Uint32Array, to: Uint32Array): void {
  const starts = new Uint32Array(65_537)
  for (let index = 0; index < from.length; index++) starts[((words[index]! >>> shift) & 0xffff) + 1]!++
  for (let digit = 0; digit < 65_536; digit++) starts[digit + 1]! += starts[digit]!
  for (const index of from) {
    const digit = (words[index]! >>> shift) & 0xffff
    to[starts[digit]!++] = index
  }
}

/** All keys of the rows; a row that has a key twice counts once. */
export function sortKeys(rows: readonly Row[]): RadixSortedKeys {
  const sorted = new RadixSortedKeys(rows.reduce((sum, { keys }) => sum + keys.length / 8, 0))
  rows.forEach(({ keys }, row) => {
    for (let at = 0; at < keys.length; at += 8) if (!isRepeated(keys, at)) sorted.add(keys, at, row)
  })
  sorted.sort()
  return sorted
}

/** The first halves of all ids. */
export function sortIds(rows: readonly Row[]): RadixSortedKeys {
  const sorted = new RadixSortedKeys(rows.length)
  rows.forEach(({ id }, row) => {
    sorted.add(id, 0, row)
  })
  sorted.sort()
  return sorted
}

function isRepeated(keys: Uint8Array, at: number): boolean {
  for (let before = 0; before < at; before += 8) {
    let same = 0
    while (same < 8 && keys[before + same] === keys[at + same]) same++
    if (same === 8) return true
  }
  return false
}
