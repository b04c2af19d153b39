import { resolve } from 'node:path'
import type { Clock, RandomSource } from '../crypto/ports.js'
import { createRandom } from '../crypto/random.js'
import { CofferError, usage } from '../errors.js'
import type { Files } from '../storage/files.js'
import { nodeFiles } from '../storage/node-files.js'

const TIMEOUT_MS = 10_000

/** The address of a vault, and the disk, clock and random source to open it with (default: those of this machine). */
export interface VaultLocation {
  /** A directory, or an address with a scheme ({@link kindOfAddress}). */
  directory: string
  pid: number
  notice(text: string): void
  /** `server`: while the vault is open, this process also answers the commands of other processes. */
  role?: 'command' | 'server'
  /** The password of a store. The address contains no password. */
  storePassword?: () => Promise<string | undefined>
  /** The longest wait for one holder of the lock, ms. Default: 10 s. */
  timeoutMs?: number
  files?: Files
  clock?: Clock
  /** Like `clock`, but during a jump of the clock, returns the time at the end of the jump. */
  clockEnd?: Clock
  random?: RandomSource
}

type Optional = 'storePassword' | 'clockEnd'

export type Effects = Required<Omit<VaultLocation, Optional>> & Pick<VaultLocation, Optional>

export function completeEffects(location: VaultLocation): Effects {
  const { files = nodeFiles(), clock = Date.now, random = createRandom(), role = 'command' } = location
  const { timeoutMs = TIMEOUT_MS } = location
  return { ...location, timeoutMs, files, clock, random, role }
}

type PlaceKind = 'directory' | 'memory' | 'store'

const PLACE_KINDS: Readonly<Record<string, PlaceKind>> = {
  '': 'directory',
  'memory:': 'memory',
  'postgres:': 'store',
  'postgresql:': 'store',
}

/** Matches `memory:`, or the `name:` of `name://…`. Any other colon is part of a path. */
const SCHEME = /^[a-z][a-z0-9+.-]+:(?=\/\/|$)/i

/** @throws CofferError `usage` for an address with an unknown scheme */
export function kindOfAddress(address: string): PlaceKind {
  const [scheme = ''] = SCHEME.exec(address) ?? []
  const kind = PLACE_KINDS[scheme.toLowerCase()]
  if (kind !== undefined) return kind
  throw usage(`Vaults at ${scheme}// are not supported. Give a directory, memory:, or postgres://…`)
}

/** True for a vault in PostgreSQL, which several processes may have open at the same time. */
export function isStore(address: string): boolean {
  return kindOfAddress(address) === 'store'
}

/** @throws CofferError `unprocessable` if the vault is in a store */
export function requireDirectory({ directory }: VaultLocation): void {
  if (!isStore(directory)) return
  throw new CofferError(
    'unprocessable',
    'This command needs a vault in a directory, but this vault is in a store.',
  )
}

/** @throws CofferError `usage` if the address is not a directory */
export function resolveDirectory(cwd: string, address: string): string {
  const kind = kindOfAddress(address)
  if (kind === 'directory') return resolve(cwd, address)
  if (kind === 'store') throw usage('A vault in a store is named with --store, not --vault.')
  throw usage('A vault in memory exists only within one process. Run: coffer serve --ephemeral')
}
