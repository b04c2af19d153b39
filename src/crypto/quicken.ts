/** Primitives that become others while they are used. */
import type { Primitives } from './primitives.js'

/** `first` until `later` resolves, then what it resolves to. Both give the same bytes. */
export function quicken(first: Primitives, later: Promise<Primitives>): Primitives {
  let current = first
  // If they cannot be loaded, the first go on.
  later.then(
    (quicker) => {
      current = quicker
    },
    () => {},
  )
  return {
    seal: (plain, associated, nonce, key) => current.seal(plain, associated, nonce, key),
    open: (sealed, associated, key) => current.open(sealed, associated, key),
    blake2b: (length, message, key) => current.blake2b(length, message, key),
    digest: (length, message, key) => current.digest(length, message, key),
    isEqual: (a, b) => current.isEqual(a, b),
    wipe: (bytes) => current.wipe(bytes),
  }
}
