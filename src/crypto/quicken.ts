/** Replaces primitives by faster ones while they are used. */
import type { Primitives } from './primitives.js'

/** Uses `first` until `later` resolves, then its result. Contract: both give the same bytes. */
export function quicken(first: Primitives, later: Promise<Primitives>): Primitives {
  let current = first
  // If `later` rejects, `first` stays in use.
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
