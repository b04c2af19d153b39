/** Creates and opens vaults by address: chooses storage, lock, keys and engine for {@link createApp}. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkNewPassphrase, type Secret } from '../crypto/key-slot.js'
import { createKeyring, type Keyring } from '../crypto/keyring.js'
import { createMac } from '../crypto/mac.js'
import { nativePrimitives } from '../crypto/native.js'
import type { Clock } from '../crypto/ports.js'
import { createRandom } from '../crypto/random.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { CofferError, conflict } from '../errors.js'
import {
  connectToVault,
  hasVaultSocket,
  serveVaultSocket,
  type VaultSocketOptions,
} from '../ipc/vault-socket.js'
import { createFileEngine, openFileEngine } from '../storage/engines/file-engine.js'
import { createMemoryEngine } from '../storage/engines/memory-engine.js'
import { makeDirectories, storageError } from '../storage/files.js'
import type { Lock, LockHolder } from '../storage/lock.js'
import { nodeFiles } from '../storage/node-files.js'
import { hasHeader, readHeader } from '../storage/vault-file.js'
import { type App, createApp, createFirstTenant } from './app.js'
import { owning, refuseBesideServer } from './exclusive.js'
import { completeEffects, type Effects, isStore, kindOfAddress, type VaultLocation } from './location.js'
import { createMemoryVault, type MemoryVault } from './memory-vault.js'
import {
  type ChooseOpener,
  choosePrimitivesLater,
  createHeader,
  describeLocked,
  type LockedVault,
  type NewOpener,
  openKeyring,
  toSecret,
} from './unlock.js'
import { answerMessage, createRemoteVault, type Vault } from './vault.js'

export type { Clock } from '../crypto/ports.js'
export { parseStoreAddress } from '../storage/postgres/address.js'
export { isStore, requireDirectory, resolveDirectory, type VaultLocation } from './location.js'
export type { LockedVault, NewOpener, Opener } from './unlock.js'

/** How long a command tries to reach a server that does not answer, and the pause between two attempts. */
const MOST_SERVER_MS = 2000
const SERVER_PAUSE_MS = 200

/** Imported on first use, because most vaults are directories. */
const loadStore = () => import('./store-vault.js')

/**
 * Creates a vault at `location.directory`, with one tenant and its owner, and opens it. With the address `memory:` the
 * vault is in memory and lost when closed.
 * @throws CofferError `conflict` if one exists, `usage` for a passphrase that is too short and for an address with an
 * unknown scheme
 */
export async function createVault(
  location: VaultLocation,
  tenantName: string,
  opener: NewOpener,
): Promise<App> {
  const kind = kindOfAddress(location.directory)
  const effects = completeEffects(location)
  if (kind === 'memory') return (await createInMemory(effects, tenantName)).app
  if (kind === 'store') return (await loadStore()).createInStore(effects, tenantName, opener)
  return createInDirectory(effects, tenantName, opener)
}

/** A vault in memory, with one tenant. The default role starts fastest. */
export async function openEphemeral(options: EphemeralOptions): Promise<MemoryVault> {
  const { tenantName, clock = Date.now, role = 'command' } = options
  return createInMemory({ clock, random: createRandom(), role }, tenantName)
}

export interface EphemeralOptions {
  tenantName: string
  clock?: Clock
  role?: Effects['role']
}

async function createInMemory(
  { clock, random, role }: Pick<Effects, 'clock' | 'random' | 'role'>,
  tenantName: string,
): Promise<MemoryVault> {
  const primitives = choosePrimitivesLater(role)
  const keyring = createKeyring(primitives, random, random.bytes(KEY_BYTES))
  const engine = createMemoryEngine({ clock })
  const vault = createMemoryVault({ engine, keyring, random, primitives })
  await createFirstTenant(vault.app, tenantName)
  return vault
}

async function createInDirectory(effects: Effects, tenantName: string, opener: NewOpener): Promise<App> {
  if (opener.kind === 'passphrase') checkNewPassphrase(opener.passphrase)
  const { files, directory } = effects
  const requireNone = () => {
    if (hasHeader(files, directory))
      throw conflict(`There is already a vault in ${directory}. Choose another directory.`)
  }
  // Checked before waiting for the lock, because a server may hold the lock.
  requireNone()
  makeDirectories(files, directory)
  return owning(effects, async (lock) => {
    requireNone()
    const { app, keyring } = await createOwned(effects, lock, opener)
    await createFirstTenant(app, tenantName)
    return effects.role === 'server' ? listening(effects, keyring, app) : app
  })
}

async function createOwned(effects: Effects, lock: Lock, opener: NewOpener) {
  const { random, files } = effects
  const { header, keyring, primitives } = await createHeader(effects, opener)
  const engine = await createFileEngine({ ...effects, header, keys: keyring.engine })
  return { app: createApp({ engine, keyring, random, files, header, primitives, lock }), keyring }
}

/** Needs no key. @throws CofferError as {@link identifyVault} */
export async function describeVault(directory: string): Promise<LockedVault> {
  return describeLocked(await readHeader(nodeFiles(), directory))
}

/** The id of the vault; needs no key. @throws CofferError `vault_missing`, `vault_exposed` */
export async function identifyVault(location: VaultLocation): Promise<string> {
  if (isStore(location.directory)) return (await (await loadStore()).readHeaderInStore(location)).vault
  return (await readHeader(nodeFiles(), location.directory)).vault
}

/**
 * Opens the vault at `location.directory`, after waiting for the lock.
 * @throws CofferError `vault_missing`, `vault_locked`, `vault_exposed`, `vault_unsupported`, `vault_damaged`,
 * `unavailable` if another process keeps the lock, `usage` for an address with an unknown scheme
 */
export async function openVault(location: VaultLocation, choose: ChooseOpener): Promise<App> {
  const kind = kindOfAddress(location.directory)
  if (kind === 'memory')
    throw new CofferError('vault_missing', 'A vault in memory is lost when it is closed.')
  const effects = completeEffects(location)
  return kind === 'store'
    ? (await loadStore()).openInStore(effects, choose)
    : openInDirectory(effects, choose)
}

async function openInDirectory(effects: Effects, choose: ChooseOpener): Promise<App> {
  const { files, directory } = effects
  // Prompts before taking the lock, so that other processes do not wait for a person.
  const header = await readHeader(files, directory)
  if (effects.role === 'server') refuseBesideServer(effects)
  const opener = await choose(describeLocked(header))
  return owning(effects, (lock) => openOwned(effects, lock, toSecret(opener)))
}

async function openOwned(effects: Effects, lock: Lock, secret: Secret): Promise<App> {
  const { random, files, role } = effects
  // Read under the lock: the previous holder may have changed the header.
  const { header, keyring, primitives } = await openKeyring(effects, secret)
  const engine = await openFileEngine({ ...effects, header, keys: keyring.engine })
  const app = createApp({ engine, keyring, random, files, header, primitives, lock })
  return role === 'server' ? listening(effects, keyring, app) : app
}

/** Lets the vault answer commands of other processes while it is open. */
async function listening(effects: Effects, keyring: Keyring, app: App): Promise<App> {
  try {
    const answer = (message: unknown) => answerMessage(app, message)
    const listener = await serveVaultSocket(vaultSocketOptions(effects, keyring), answer)
    const { close } = app
    // Changes `app` itself, because a server adds to it what commands need.
    return Object.assign(app, { close: () => listener.close().then(close) })
  } catch (error) {
    await app.close()
    throw error
  }
}

/** For one command: through a server that has the vault open, or opened here. @throws CofferError as {@link openVault} */
export async function reachVault(location: VaultLocation, choose: ChooseOpener): Promise<Vault> {
  const effects = completeEffects(location)
  if (isStore(effects.directory)) return (await loadStore()).openInStore(effects, choose)
  const secret = toSecret(await choose(describeLocked(await readHeader(effects.files, effects.directory))))
  for (let waitedMs = 0; ; waitedMs += SERVER_PAUSE_MS) {
    const remote = await findRemote(effects, secret)
    if (remote !== undefined) return remote
    try {
      return await owning(effects, (lock) => openOwned(effects, lock, secret), leaveToServer(effects))
    } catch (error) {
      const mostMs = Math.min(MOST_SERVER_MS, effects.patienceMs)
      if (!(error instanceof ServerFound) || waitedMs >= mostMs) throw error
      await new Promise((resolve) => setTimeout(resolve, SERVER_PAUSE_MS))
    }
  }
}

/** Ends a command's wait for the lock, because it can ask the server that has the vault open. */
class ServerFound extends CofferError {}

/** A command also waits for a server that has the lock but does not listen yet. */
function leaveToServer(effects: Effects) {
  return ({ isServer, pid }: LockHolder) => {
    if (isServer && hasVaultSocket(effects))
      throw new ServerFound('unavailable', `Process ${pid} has the vault open and does not answer commands.`)
  }
}

async function findRemote(effects: Effects, secret: Secret): Promise<Vault | undefined> {
  if (!hasVaultSocket(effects)) return undefined
  const { keyring } = await openKeyring(effects, secret)
  const peer = await connectToVault(vaultSocketOptions(effects, keyring))
  keyring.wipe()
  return peer === undefined ? undefined : createRemoteVault(peer)
}

function vaultSocketOptions(effects: Effects, keyring: Keyring): VaultSocketOptions {
  return {
    ...effects,
    proof: keyring.socketProof,
    sessionProof: effects.session && createMac(nativePrimitives, effects.session),
    makePrivateDirectory: makeSocketDirectory,
  }
}

/** The vault in the server of `session`, without a key of the vault; undefined if the session has ended. */
export async function reachSession(location: VaultLocation, session: Uint8Array): Promise<Vault | undefined> {
  const effects = completeEffects(location)
  const proof = createMac(nativePrimitives, session)
  const peer = await connectToVault({ ...effects, proof, makePrivateDirectory: makeSocketDirectory })
  return peer === undefined ? undefined : createRemoteVault(peer)
}

/** For the socket of a vault with a path that is too long. @throws CofferError `storage_failed` */
function makeSocketDirectory(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'coffer-'))
  } catch (cause) {
    throw storageError('make a directory in', tmpdir(), cause)
  }
}
