export const MAX_U48 = 2 ** 48 - 1

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/**
 * Converts bytes to a text that can be a key of a map. The text has one character for each byte, and texts sort like
 * their bytes.
 */
export function toText(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return asBuffer(bytes).toString('latin1', start, end)
}

export function toHex(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('hex')
}

export function toBase64(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('base64')
}

/** Requires: `text` was made by {@link toBase64}. */
export function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'))
}

/** Encodes ascending numbers as text: the first number and the differences between neighbors, separated by commas. */
export function packRows(rows: readonly number[] | Uint32Array): string {
  return Array.from(rows, (row, index) => row - (rows[index - 1] ?? 0)).join()
}

export function unpackRows(text: string): Uint32Array {
  if (text === '') return new Uint32Array(0)
  const rows = Uint32Array.from(text.split(','), Number)
  for (let index = 1; index < rows.length; index++) rows[index]! += rows[index - 1]!
  return rows
}

/**
 * Returns the first index below `count` for which `isReached` is true. Returns `count` if there is none. Requires: if
 * `isReached` is true for an index, `isReached` is true for all later indexes.
 */
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

export function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  return asBuffer(left).equals(right)
}
