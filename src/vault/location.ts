/** Where a vault is, and the effects of a run on it. */
import type { Clock, RandomSource } from '../crypto/ports.js'
import { createRandom } from '../crypto/random.js'
import type { Files } from '../storage/files.js'
import { nodeFiles } from '../storage/node-files.js'

/** How long to wait for the lock. */
const PATIENCE_MS = 10_000

/** The address of a vault, and the effects of this run; the optional ones default to the real ones. */
export interface VaultLocation {
  /** A directory, or an address with a scheme, see {@link createVault}. */
  directory: string
  pid: number
  /** Displays a message, for example that a torn frame was dropped. */
  notice(text: string): void
  /** A server also answers other processes while it has the vault open. */
  role?: 'command' | 'server'
  /** The password of a store, whose address here has none. */
  storePassword?: () => Promise<string | undefined>
  /** Whether a server brings the tables of a store to the present version; default false. */
  migrates?: boolean
  /** Of a server: a secret by which it also knows commands that have no key of the vault. */
  session?: Uint8Array
  /** How long to wait for the lock; default 10 s. */
  patienceMs?: number
  files?: Files
  clock?: Clock
  random?: RandomSource
}

/** A location with every default filled in. */
export type Effects = Required<Omit<VaultLocation, 'session' | 'storePassword'>> &
  Pick<VaultLocation, 'session' | 'storePassword'>

export function completeEffects(location: VaultLocation): Effects {
  const { files = nodeFiles(), clock = Date.now, random = createRandom(), role = 'command' } = location
  const { patienceMs = PATIENCE_MS, migrates = false } = location
  return { ...location, patienceMs, migrates, files, clock, random, role }
}
