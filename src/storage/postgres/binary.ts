/** Arrays as PostgreSQL's protocol has them in binary form: `pg` would spell them out, and bytes as hexadecimal digits. */

const HEAD_BYTES = 20
const LENGTH_BYTES = 4
/** PostgreSQL's number of the type, and the bytes of one. */
const NUMBERS = { int2: [21, 2], int4: [23, 4], int8: [20, 8] } as const
const BYTEA = 17

/** Contract: whole numbers that the type holds. */
export function numbersArray(type: keyof typeof NUMBERS, values: readonly number[]): Buffer {
  const [oid, size] = NUMBERS[type]
  const array = Buffer.allocUnsafe(HEAD_BYTES + values.length * (LENGTH_BYTES + size))
  let at = writeHead(array, oid, values.length)
  for (const value of values) {
    at = array.writeInt32BE(size, at)
    if (size === 8) at = array.writeInt32BE(Math.floor(value / 2 ** 32), at)
    at = size === 2 ? array.writeInt16BE(value, at) : array.writeInt32BE(value | 0, at)
  }
  return array
}

export function bytesArray(values: readonly Uint8Array[]): Buffer {
  const bytes = values.reduce((sum, { length }) => sum + LENGTH_BYTES + length, HEAD_BYTES)
  const array = Buffer.allocUnsafe(bytes)
  let at = writeHead(array, BYTEA, values.length)
  for (const value of values) {
    at = array.writeInt32BE(value.length, at)
    array.set(value, at)
    at += value.length
  }
  return array
}

/** One dimension, no nulls, the first element is number 1. Also of an array without elements. */
function writeHead(array: Buffer, oid: number, length: number): number {
  return [1, 0, oid, length, 1].reduce((at, field) => array.writeInt32BE(field, at), 0)
}
