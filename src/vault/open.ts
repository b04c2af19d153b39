/**
 * From a place on disk and a secret to an open vault: who may have it, which key opens it, which engine keeps it. It
 * builds the effects that {@link createApp} composes.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FileKey, formatKeyFile, parseKeyFile } from '../crypto/key-file.js'
import {
  checkNewPassphrase,
  createSlot,
  openSlot,
  parseSlots,
  type ScryptCost,
  type SealedHeader,
  type Secret,
  type Slot,
  type SlotContext,
  sealHeader,
} from '../crypto/key-slot.js'
import { createKeyring, type Keyring } from '../crypto/keyring.js'
import { nativePrimitives } from '../crypto/native.js'
import type { Clock, RandomSource } from '../crypto/ports.js'
import type { Primitives } from '../crypto/primitives.js'
import { createRandom } from '../crypto/random.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { loadSodium } from '../crypto/sodium.js'
import { formatDate } from '../domain/dates.js'
import { CofferError } from '../errors.js'
import {
  connectToVault,
  hasVaultSocket,
  serveVaultSocket,
  type VaultSocketOptions,
} from '../ipc/vault-socket.js'
import { encodeId } from '../storage/bytes.js'
import { createFileEngine, openFileEngine } from '../storage/file-engine.js'
import { type Files, makeDirectories, storageError } from '../storage/files.js'
import { acquireLock, type Lock } from '../storage/lock.js'
import { createMemoryEngine } from '../storage/memory-engine.js'
import { nodeFiles } from '../storage/node-files.js'
import { readProcessIdentity } from '../storage/process-identity.js'
import { FORMAT, type Header, hasHeader, readHeader } from '../storage/vault-file.js'
import { type App, createApp, createFirstTenant } from './app.js'
import { answerMessage, createRemoteVault, type Vault } from './vault.js'

const VAULT_ID_BYTES = 16
/** How long a command waits for another to finish. */
const PATIENCE_MS = 10_000

export type { Clock } from '../crypto/ports.js'

/** Where a vault is, and the effects of this run; everything but the directory has a real default. */
export interface Place {
  directory: string
  pid: number
  /** Told what a person should know and no program needs, such as a torn frame that was dropped. */
  notice(text: string): void
  /** A server keeps the vault open for long; a command works and lets go. */
  role?: 'command' | 'server'
  files?: Files
  clock?: Clock
  random?: RandomSource
}

/** What opens a vault: the text of a key file, or a passphrase. */
export type Opener = { kind: 'key-file'; text: string } | { kind: 'passphrase'; passphrase: string }

/** What can be known of a vault before it is opened. */
export interface LockedVault {
  id: string
  slots: readonly Opener['kind'][]
}

/** How a new vault shall open. `save` is given the text of its key file, before the vault exists. */
export type NewOpener =
  | { kind: 'key-file'; save(vault: string, text: string): Promise<void> }
  | { kind: 'passphrase'; passphrase: string; cost?: ScryptCost }

/**
 * Creates a vault in `place.directory`, with one tenant and its owner, and opens it.
 * @throws CofferError `conflict` when there is one already, `usage` for a passphrase that is too short.
 */
export async function createVault(place: Place, tenantName: string, opener: NewOpener): Promise<App> {
  if (opener.kind === 'passphrase') checkNewPassphrase(opener.passphrase)
  const effects = completeEffects(place)
  const { files, directory } = effects
  makeDirectories(files, directory)
  return owning(effects, async (lock) => {
    if (hasHeader(files, directory))
      throw new CofferError('conflict', `There is a vault in ${directory} already. Choose another directory.`)
    const { app, keyring } = await createOwned(effects, lock, opener)
    await createFirstTenant(app, tenantName)
    return effects.role === 'server' ? listening(effects, keyring, app) : app
  })
}

async function createOwned(
  effects: Effects,
  lock: Lock,
  opener: NewOpener,
): Promise<{ app: App; keyring: Keyring }> {
  const { random, clock, role } = effects
  const primitives = await choosePrimitives(role)
  const root = random.bytes(KEY_BYTES)
  const vault = encodeId(random.bytes(VAULT_ID_BYTES))
  const created = formatDate(clock())
  const slot = await createFirstSlot({ primitives, random }, { root, vault, created }, opener)
  const bare = {
    format: FORMAT,
    vault,
    created,
    cipher: 'xchacha20-poly1305',
    digest: 'blake2b',
    slots: [slot],
  }
  const header = sealHeader(primitives, bare, root) as SealedHeader & Header
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  const engine = await createFileEngine({ ...effects, header, keys: keyring.engine })
  return { app: createApp({ engine, keyring, random, header, primitives, lock }), keyring }
}

async function createFirstSlot(
  powers: SlotContext,
  { root, vault, created }: { root: Uint8Array; vault: string; created: string },
  opener: NewOpener,
): Promise<Slot> {
  const secret = await toNewSecret(opener, vault, powers.random)
  const cost = opener.kind === 'passphrase' && opener.cost !== undefined ? { cost: opener.cost } : {}
  return createSlot(powers, { root, secret, created, ...cost })
}

/** What a new opener opens slots with; a new key file is saved before anything relies on it. */
export async function toNewSecret(opener: NewOpener, vault: string, random: RandomSource): Promise<Secret> {
  if (opener.kind === 'passphrase') {
    checkNewPassphrase(opener.passphrase)
    return { kind: 'passphrase', passphrase: opener.passphrase }
  }
  const file: FileKey = { vault, key: random.bytes(KEY_BYTES) }
  await opener.save(vault, formatKeyFile(file))
  return { kind: 'key-file', file }
}

/** The id of the vault in `directory`, which anybody may know. @throws CofferError `vault_missing`, `vault_exposed` */
export async function identifyVault(directory: string): Promise<string> {
  return (await readHeader(nodeFiles(), directory)).vault
}

/**
 * Opens the vault in `place.directory` with what `choose` finds for it, once nobody else has it open.
 * @throws CofferError `vault_missing`, `vault_locked`, `vault_exposed`, `vault_unsupported`, `vault_damaged`,
 * `unavailable` when another process keeps it for longer than one waits
 */
export async function openVault(place: Place, choose: (vault: LockedVault) => Promise<Opener>): Promise<App> {
  const effects = completeEffects(place)
  const { files, directory } = effects
  // Whoever has to be asked is asked before the vault is taken from everybody else.
  const first = await readHeader(files, directory)
  const opener = await choose({ id: first.vault, slots: parseSlots(first.slots).map(({ kind }) => kind) })
  return owning(effects, (lock) => openOwned(effects, lock, toSecret(opener)))
}

async function openOwned(effects: Effects, lock: Lock, secret: Secret): Promise<App> {
  const { random, role } = effects
  const primitives = await choosePrimitives(role)
  // Read once the vault is ours: the owner before us may have changed it.
  const { header, keyring } = await openKeyring(effects, primitives, secret)
  const engine = await openFileEngine({ ...effects, header, keys: keyring.engine })
  const app = createApp({ engine, keyring, random, header, primitives, lock })
  return role === 'server' ? listening(effects, keyring, app) : app
}

/** The same vault, and commands of other processes answered for as long as it is open. */
async function listening(effects: Effects, keyring: Keyring, app: App): Promise<App> {
  try {
    const answer = (message: unknown) => answerMessage(app, message)
    const listener = await serveVaultSocket(vaultSocketOptions(effects, keyring), answer)
    return { ...app, close: () => listener.close().then(() => app.close()) }
  } catch (error) {
    await app.close()
    throw error
  }
}

/**
 * The vault in `place.directory` for one command: through the server that has it open, if there is one, else opened
 * here.
 * @throws CofferError as {@link openVault}
 */
export async function reachVault(
  place: Place,
  choose: (vault: LockedVault) => Promise<Opener>,
): Promise<Vault> {
  const effects = completeEffects(place)
  const header = await readHeader(effects.files, place.directory)
  const opener = await choose({ id: header.vault, slots: parseSlots(header.slots).map(({ kind }) => kind) })
  const secret = toSecret(opener)
  const remote = await findRemote(effects, secret)
  if (remote !== undefined) return remote
  try {
    return await owning(effects, (lock) => openOwned(effects, lock, secret))
  } catch (error) {
    // A server that was about to start when we looked has the vault now, and listens.
    const late =
      error instanceof CofferError && error.code === 'unavailable'
        ? await findRemote(effects, secret)
        : undefined
    if (late !== undefined) return late
    throw error
  }
}

async function findRemote(effects: Effects, secret: Secret): Promise<Vault | undefined> {
  if (!hasVaultSocket(effects)) return undefined
  const primitives = await choosePrimitives(effects.role)
  const { keyring } = await openKeyring(effects, primitives, secret)
  const peer = await connectToVault(vaultSocketOptions(effects, keyring))
  keyring.wipe()
  return peer === undefined ? undefined : createRemoteVault(peer)
}

/** The header (as it stands now, unless given) and the keys that `secret` opens. */
export async function openKeyring(
  { random, files, directory }: Effects,
  primitives: Primitives,
  secret: Secret,
  header?: Header,
): Promise<{ header: Header; keyring: Keyring; slot: Slot }> {
  const present = header ?? (await readHeader(files, directory))
  const sealed = { ...present, slots: parseSlots(present.slots) }
  const { root, slot } = await openSlot({ primitives, random }, sealed, secret)
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  return { header: present, keyring, slot }
}

function vaultSocketOptions(effects: Effects, keyring: Keyring): VaultSocketOptions {
  return {
    ...effects,
    proof: keyring.socketProof,
    makePrivateDirectory: makeSocketDirectory,
  }
}

/** For the socket of a vault whose own path is too long for one. @throws CofferError `storage_failed` */
function makeSocketDirectory(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'coffer-'))
  } catch (cause) {
    throw storageError('make a directory in', tmpdir(), cause)
  }
}

/** Takes the vault for what `work` opens in it, which lets go of it when closed; now, when `work` fails. */
export async function owning<T>(effects: Effects, work: (lock: Lock) => Promise<T>): Promise<T> {
  const lock = await acquireLock({
    ...effects,
    identity: readProcessIdentity(effects.pid),
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    patienceMs: PATIENCE_MS,
  })
  try {
    return await work(lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

export function toSecret(opener: Opener): Secret {
  return opener.kind === 'passphrase' ? opener : { kind: 'key-file', file: parseKeyFile(opener.text) }
}

/** A command is over before libsodium is warm; a server is glad that it is faster afterwards. */
export async function choosePrimitives(role: Effects['role']): Promise<Primitives> {
  return role === 'command' ? nativePrimitives : loadSodium()
}

/** A vault that is nowhere but in memory and gone when closed. */
export async function openEphemeral({
  tenantName,
  clock = Date.now,
}: {
  tenantName: string
  clock?: Clock
}): Promise<App> {
  const primitives = await choosePrimitives('server')
  const random = createRandom()
  const keyring = createKeyring(primitives, random, random.bytes(KEY_BYTES))
  const engine = createMemoryEngine({ keys: keyring.engine, clock })
  const app = createApp({ engine, keyring, random, header: undefined, primitives })
  await createFirstTenant(app, tenantName)
  return app
}

/** A place with every effect settled. */
export type Effects = Required<Place>

export function completeEffects(place: Place): Effects {
  const { files = nodeFiles(), clock = Date.now, random = createRandom(), role = 'command' } = place
  return { ...place, files, clock, random, role }
}
