/** Encodings of numbers, ids and lists of row numbers in the vault's files. */

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

export const MAX_U48 = 2 ** 48 - 1

/** A Buffer over the same memory, for its little-endian reads and writes. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Bytes as a string of equal length and order, for keys of a Map. */
export function toText(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return asBuffer(bytes).toString('latin1', start, end)
}

/** Base32 (RFC 4648 section 6), lower case, without padding: for file ids and the vault's id. */
export function encodeId(bytes: Uint8Array): string {
  let text = ''
  let held = 0
  let bits = 0
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(held >>> (bits - 5)) & 31]
  }
  return bits === 0 ? text : text + ALPHABET[(held << (5 - bits)) & 31]
}

/** Inverse of {@link encodeId}; undefined for any other text. */
export function decodeId(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 5) / 8))
  let held = 0
  let bits = 0
  let length = 0
  for (const letter of text) {
    const value = ALPHABET.indexOf(letter)
    if (value < 0) return undefined
    held = ((held << 5) | value) & 0xfff
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes[length++] = (held >>> bits) & 0xff
    }
  }
  return encodeId(bytes) === text ? bytes : undefined
}

export function toBase64(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('base64')
}

/** Contract: `text` was made by {@link toBase64}. */
export function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'))
}

/** Ascending numbers below 2^32 as base64 of their distances: seven bits a byte, low bits first, 128 set on the last byte. */
export function packRows(rows: readonly number[] | Uint32Array): string {
  const bytes: number[] = []
  let last = -1
  for (const row of rows) {
    let distance = row - last
    last = row
    for (; distance > 127; distance = Math.floor(distance / 128)) bytes.push(distance % 128)
    bytes.push(distance + 128)
  }
  return toBase64(Uint8Array.from(bytes))
}

export function unpackRows(text: string): Uint32Array {
  const rows: number[] = []
  let last = -1
  let distance = 0
  let unit = 1
  for (const byte of fromBase64(text)) {
    distance += (byte & 127) * unit
    unit *= 128
    if (byte < 128) continue
    last += distance
    rows.push(last)
    distance = 0
    unit = 1
  }
  return Uint32Array.from(rows)
}

export function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  return asBuffer(left).equals(right)
}
