import { basename, dirname } from 'node:path'
import {
  checkNewPassphrase,
  createSlot,
  type FileKey,
  formatKeyFile,
  openSlot,
  parseKeyFile,
  parseSlots,
  type ScryptCost,
  type Secret,
  type Slot,
  sealHeader,
} from '../crypto/key-slot.js'
import { createKeyring, type Keyring } from '../crypto/keyring.js'
import { nativePrimitives } from '../crypto/native.js'
import type { RandomSource } from '../crypto/ports.js'
import { KEY_BYTES, type Primitives, upgradeCrypto } from '../crypto/primitives.js'
import { loadSodium } from '../crypto/sodium.js'
import { formatDate } from '../domain/dates.js'
import { CofferError } from '../errors.js'
import { toHex } from '../storage/bytes.js'
import {
  acquireLock,
  type Lock,
  type LockHolder,
  readLockHolder,
  readProcessIdentity,
} from '../storage/lock.js'
import {
  abandonVault,
  beginVault,
  FORMAT,
  type Header,
  prepareDirectory,
  readHeader,
} from '../storage/vault-file.js'
import { completeEffects, type Effects } from './location.js'

/** `text`: the content of the key file. */
export type Opener = { kind: 'key-file'; text: string } | { kind: 'passphrase'; passphrase: string }

const VAULT_ID_BYTES = 16
/** A server loads libsodium after this pause, because loading it blocks the process for 25 ms. */
const SODIUM_AFTER_MS = 500
/** A starting server listens within this time after it acquired the lock. */
const LONGEST_START_MS = 60_000
/** Facts about a vault that are readable without a key. */
export interface LockedVault {
  id: string
  slots: readonly Opener['kind'][]
}

/** The secret of a new key slot. `save` stores the text of a new key file before the slot exists. */
export type NewOpener =
  | { kind: 'key-file'; save(vault: string, text: string): Promise<void> }
  | { kind: 'passphrase'; passphrase: string; cost?: ScryptCost }

export type ChooseOpener = (vault: LockedVault) => Promise<Opener>

export interface Unlocked {
  header: Header
  keyring: Keyring
  primitives: Primitives
  slot: Slot
  secret: Secret
}

export function describeLocked({ vault, slots }: Header): LockedVault {
  return { id: vault, slots: parseSlots(slots).map(({ kind }) => kind) }
}

/** Creates a header with one key slot. @throws CofferError `usage` if the passphrase is too short or too long */
export async function createHeader(
  { random, clock, role }: Pick<Effects, 'random' | 'clock' | 'role'>,
  opener: NewOpener,
): Promise<Omit<Unlocked, 'secret'>> {
  const primitives = await choosePrimitives(role)
  const root = random.bytes(KEY_BYTES)
  const vault = toHex(random.bytes(VAULT_ID_BYTES))
  const created = formatDate(clock())
  const secret = await toNewSecret(opener, vault, random)
  const cost = opener.kind === 'passphrase' && opener.cost !== undefined ? { cost: opener.cost } : {}
  const slot = await createSlot({ primitives, random }, { root, secret, created, ...cost })
  const bare = { format: FORMAT, vault, created, cipher: 'xchacha20-poly1305', slots: [slot] }
  const header = sealHeader(primitives, bare, root)
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  return { header, keyring, primitives, slot }
}

export async function toNewSecret(opener: NewOpener, vault: string, random: RandomSource): Promise<Secret> {
  if (opener.kind === 'passphrase') {
    checkNewPassphrase(opener.passphrase)
    return opener
  }
  const file: FileKey = { vault, key: random.bytes(KEY_BYTES) }
  await opener.save(vault, formatKeyFile(file))
  return { kind: 'key-file', file }
}

/** Opens a header with a secret. By default, reads the header from the directory. */
export async function unlock(
  { random, files, directory, role }: Pick<Effects, 'random' | 'files' | 'directory' | 'role'>,
  secret: Secret,
  header?: Header,
): Promise<Unlocked> {
  const primitives = await choosePrimitives(role)
  const current = header ?? (await readHeader(files, directory))
  const { root, slot } = await openSlot({ primitives, random }, current, secret)
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  return { header: current, keyring, primitives, slot, secret }
}

export async function askSecret(choose: ChooseOpener, header: Header): Promise<Secret> {
  return parseOpener(await choose(describeLocked(header)))
}

export function parseOpener(opener: Opener): Secret {
  return opener.kind === 'passphrase' ? opener : { kind: 'key-file', file: parseKeyFile(opener.text) }
}

export async function choosePrimitives(role: 'command' | 'server'): Promise<Primitives> {
  return role === 'command' ? nativePrimitives : loadSodium()
}

/** A server uses native primitives first, so that it can answer immediately, and loads libsodium after a pause. */
export function choosePrimitivesLater(role: 'command' | 'server'): Primitives {
  if (role === 'command') return nativePrimitives
  const pause = new Promise((resolve) => setTimeout(resolve, SODIUM_AFTER_MS).unref())
  return upgradeCrypto(nativePrimitives, pause.then(loadSodium))
}

/**
 * Acquires the lock and calls `work`. If `work` succeeds, `work` or the user of its result must release the lock.
 * @throws CofferError `unavailable`, immediately if a server has the lock
 */
export async function withLock<T>(
  effects: Effects & { name?: string },
  work: (lock: Lock) => Promise<T>,
  checkHolder: (holder: LockHolder) => void = refuseServer,
): Promise<T> {
  const lock = await acquireLock({
    ...effects,
    identity: readProcessIdentity(effects.pid),
    isServer: effects.role === 'server',
    checkHolder,
    hasEnded: (holder) => hasServerEnded(effects, holder),
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  })
  try {
    return await work(lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

/** True if a server in another container of this machine was killed. False if the server may still be starting. */
async function hasServerEnded(effects: Effects & { name?: string }, holder: LockHolder): Promise<boolean> {
  const mayBegin = effects.clock() - holder.since < LONGEST_START_MS
  if (!holder.isServer || mayBegin || effects.name !== undefined) return false
  const { isSocketAbandoned } = await import('../ipc/vault-socket.js')
  return isSocketAbandoned(effects)
}

/** Acquires a lock, so that only one process at a time uses the file. @throws CofferError `unavailable` */
export function lockFile(path: string, pid: number, notice: (text: string) => void): Promise<Lock> {
  const effects = completeEffects({ directory: dirname(path), pid, notice, timeoutMs: 0 })
  return withLock({ ...effects, name: `${basename(path)}.lock` }, async (lock) => lock)
}

/**
 * Acquires the lock of a directory, and calls `work`, which creates a vault there. If `work` fails, the files of the
 * new vault are removed.
 * @throws CofferError `conflict` if there is a vault, `vault_damaged` if there is a vault without its header
 */
export async function withNewDirectory<T>(effects: Effects, work: (lock: Lock) => Promise<T>): Promise<T> {
  const { files, directory } = effects
  // The directory is also checked before the wait for the lock, because a server may hold the lock for long.
  prepareDirectory(files, directory)
  return withLock(effects, async (lock) => {
    try {
      beginVault(files, directory)
      return await work(lock)
    } catch (error) {
      abandonVault(files, directory)
      throw error
    }
  })
}

/** @throws CofferError `unavailable` if a server has the vault open */
export function refuseBesideServer({ files, directory, pid }: Effects): void {
  const held = readLockHolder(files, directory, readProcessIdentity(pid))
  if (held?.state === 'alive') refuseServer(held.holder)
}

/** A server keeps the lock for long, so a command does not wait for the lock. @throws CofferError `unavailable` */
function refuseServer({ pid, host, since, isServer }: LockHolder): void {
  if (!isServer) return
  const who = `Process ${pid} on ${host} has had this vault open since ${formatDate(since)}`
  const end = `Stop the process first: kill ${pid}`
  throw new CofferError('unavailable', `${who}. Commands connect to this process. ${end}`)
}

/**
 * Asks for the secret before the lock is acquired. @throws CofferError `unavailable`, immediately if a server has the
 * lock
 */
export async function runUnlocked<T>(
  effects: Effects,
  choose: ChooseOpener,
  work: (owned: Unlocked & { lsm: ReturnType<typeof lsmOptions> }) => Promise<T>,
): Promise<T> {
  const secret = await askSecret(choose, await readHeader(effects.files, effects.directory))
  return withLock(effects, async (lock) => {
    const unlocked = await unlock(effects, secret)
    const result = await work({ ...unlocked, lsm: lsmOptions(effects, unlocked) })
    lock.release()
    return result
  })
}

export function lsmOptions(effects: Effects, { header, keyring }: Pick<Unlocked, 'header' | 'keyring'>) {
  return { ...effects, header, keys: keyring.engine }
}
