/**
 * The end of a sorted table: two equal copies of the sealed footer, so that damage to one copy does not lose
 * the table. Each copy is length u32 | sealed footer | length u32. A search recognizes a copy by its two
 * equal lengths, even if bytes were cut from the end of the file or appended to it. Older tables end with one
 * copy: sealed footer | length u32.
 */
import { BLOCK_SEAL } from './format.js'

export const LENGTH_BYTES = 4
/**
 * A lost copy is searched for in this many bytes at the end of the file. A footer of the largest table has less than 1
 * MiB.
 */
export const SEARCHED_BYTES = 4 * 1024 * 1024

/**
 * A search yields at most this many candidates. Otherwise a search could take hours if somebody has made a file in
 * which the lengths match everywhere. In damaged bytes, two lengths match by chance about once in a million files.
 */
export const MAX_FOUND = 16

export function encodeCopies(sealed: Uint8Array): Buffer {
  const length = encodeLength(sealed)
  const copy = [length, sealed, length]
  return Buffer.concat([...copy, ...copy])
}

/** The end of a table with one copy, which an older version has written. */
export function encodeOnlyCopy(sealed: Uint8Array): Buffer {
  return Buffer.concat([sealed, encodeLength(sealed)])
}

function encodeLength({ length }: Uint8Array): Buffer {
  const bytes = Buffer.alloc(LENGTH_BYTES)
  bytes.writeUInt32LE(length)
  return bytes
}

/**
 * Yields at most {@link MAX_FOUND} possible footers in the last bytes of a file, the last first. The caller tries to
 * open the yielded footers.
 */
export function* findCopies(tail: Buffer): Generator<Buffer> {
  let left = MAX_FOUND
  for (let end = tail.length - LENGTH_BYTES; left > 0 && end >= BLOCK_SEAL + LENGTH_BYTES; end--) {
    const length = tail.readUInt32LE(end)
    const start = end - length
    if (length < BLOCK_SEAL || start < LENGTH_BYTES) continue
    if (tail.readUInt32LE(start - LENGTH_BYTES) !== length) continue
    left--
    yield tail.subarray(start, end)
  }
}
