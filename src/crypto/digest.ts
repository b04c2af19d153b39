/**
 * The keyed digest that a vault derives, finds, chains and fingerprints with, by the `digest` of its header, for ever: new
 * vaults use HMAC-SHA256, which Node has and so costs a command nothing to start; those that began in format 1 BLAKE2b.
 */
import { CofferError } from '../errors.js'
import type { Primitives } from './primitives.js'

/** Of new vaults. */
export const PRESENT_DIGEST = 'hmac-sha256'

/** Contract: digests of 16 to 32 bytes. @throws CofferError `vault_damaged` for a name that no program wrote */
export function withDigest(primitives: Primitives, name: string): Primitives {
  if (name === 'blake2b') return primitives
  if (name === PRESENT_DIGEST) return { ...primitives, digest: primitives.expand }
  throw new CofferError(
    'vault_damaged',
    'vault.json names a digest that Coffer did not write. Restore it from a backup.',
  )
}
