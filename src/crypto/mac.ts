/** Message authentication codes, and the derivation of keys, by the keyed digest. */
import type { Mac, TextMac } from './ports.js'
import type { Primitives } from './primitives.js'

const DERIVED_KEY_BYTES = 32
const TEXT_DIGEST_BYTES = 16
const utf8 = new TextEncoder()

/** Binds `key`. */
export function createMac(primitives: Primitives, key: Uint8Array): Mac {
  return (message, length) => primitives.digest(length, message, key)
}

/** Binds `key`, for text. Caches at most `most` digests; one more empties the cache. */
export function createTextMac(primitives: Primitives, key: Uint8Array, most: number): TextMac {
  const spaces = new Map<string, Map<string, Uint8Array>>()
  let count = 0
  const digest = (text: string) => primitives.digest(TEXT_DIGEST_BYTES, Buffer.from(text, 'utf8'), key)
  return {
    digest,
    recall(space, name, spell) {
      const found = spaces.get(space)?.get(name)
      if (found !== undefined) return found
      const fresh = digest(spell(space, name))
      if (++count > most) {
        spaces.clear()
        count = 1
      }
      const names = spaces.get(space)
      if (names === undefined) spaces.set(space, new Map([[name, fresh]]))
      else names.set(name, fresh)
      return fresh
    },
  }
}

/** The 32-byte key for one purpose: the digest keyed with `root` over `coffer/1/<purpose>`. */
export function deriveKey(primitives: Primitives, root: Uint8Array, purpose: string): Uint8Array {
  return primitives.digest(DERIVED_KEY_BYTES, utf8.encode(`coffer/1/${purpose}`), root)
}

/** In constant time, except that digests of different length are different at once. */
export function isEqualDigest(primitives: Primitives, a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && primitives.isEqual(a, b)
}
