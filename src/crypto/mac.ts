/** Keyed BLAKE2b (RFC 7693): digests that only the holder of the key can make, and sub-keys derived with it. */
import type { Mac, TextMac } from '../store/store.js'
import type { Primitives } from './primitives.js'

const DERIVED_KEY_BYTES = 32
const utf8 = new TextEncoder()

/** Binds `key` (16 to 64 bytes); the digest's length is 16 to 64 bytes. */
export function createMac(primitives: Primitives, key: Uint8Array): Mac {
  return (message, length) => primitives.digest(length, message, key)
}

/** The same over text, some of it remembered, of which the least recently drawn goes when `most` are. */
export function createTextMac(primitives: Primitives, key: Uint8Array, most: number): TextMac {
  const known = new Map<string, Uint8Array>()
  const digest = (text: string, length: number) => primitives.digest(length, Buffer.from(text, 'utf8'), key)
  return {
    digest,
    recall(text, length) {
      const name = `${length}:${text}`
      const found = known.get(name)
      if (found !== undefined) return found
      const fresh = digest(text, length)
      if (known.size >= most) known.delete(known.keys().next().value!)
      known.set(name, fresh)
      return fresh
    },
  }
}

/** The 32-byte key for one purpose: BLAKE2b keyed with `root` over `coffer/1/<purpose>`. */
export function deriveKey(primitives: Primitives, root: Uint8Array, purpose: string): Uint8Array {
  return primitives.digest(DERIVED_KEY_BYTES, utf8.encode(`coffer/1/${purpose}`), root)
}

/** Takes the same time wherever the two differ; digests of different length are simply different. */
export function isEqualDigest(primitives: Primitives, a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && primitives.isEqual(a, b)
}
