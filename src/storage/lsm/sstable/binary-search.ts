/** Binary searches: over anything ordered, and over the sorted entries and fences of a table's index blocks. */

/** The first index of which `isReached` holds, or `count`. Contract: it holds for all after the first. */
export function lowerBound(count: number, isReached: (index: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isReached(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/** The last block whose fence is not above the first 8 bytes of `key`, or -1. */
export function lastFence(fences: Buffer, key: Buffer): number {
  let next = firstNotBelow(fences, 8, key)
  while (next * 8 < fences.length && isKeyAt(fences, next * 8, key)) next++
  return next - 1
}

/**
 * The first entry, of `width` bytes each, whose first 8 bytes are not below those of `key`; or the number of entries.
 * Compares words, because a call of `compare` for each of a dozen comparisons takes longer than the rest of a search.
 */
export function firstNotBelow(entries: Buffer, width: number, key: Buffer): number {
  const high = key.readUInt32BE(0)
  const low = key.readUInt32BE(4)
  let from = 0
  let to = entries.length / width
  while (from < to) {
    const middle = (from + to) >>> 1
    const word = entries.readUInt32BE(middle * width)
    const isBelow = word < high || (word === high && entries.readUInt32BE(middle * width + 4) < low)
    if (isBelow) from = middle + 1
    else to = middle
  }
  return from
}

/** Whether the 8 bytes from `at` on are the first of `key`. */
export function isKeyAt(entries: Buffer, at: number, key: Buffer): boolean {
  return (
    entries.readUInt32BE(at) === key.readUInt32BE(0) && entries.readUInt32BE(at + 4) === key.readUInt32BE(4)
  )
}
