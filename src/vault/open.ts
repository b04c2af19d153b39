/** Creates and opens vaults by address. Prepares storage, lock, keys and engine for {@link createApp}. */
import { checkNewPassphrase, type Secret } from '../crypto/key-slot.js'
import { createKeyring } from '../crypto/keyring.js'
import type { Clock } from '../crypto/ports.js'
import { KEY_BYTES } from '../crypto/primitives.js'
import { createRandom } from '../crypto/random.js'
import { CofferError } from '../errors.js'
import {
  connectToVault,
  hasVaultSocket,
  serveVaultSocket,
  type VaultSocketClient,
} from '../ipc/vault-socket.js'
import { createFileEngine, openFileEngine } from '../storage/engines/file-engine.js'
import { MemoryEngine } from '../storage/engines/memory-engine.js'
import { type Lock, type LockHolder, readLockHolder, readProcessIdentity } from '../storage/lock.js'
import { nodeFiles } from '../storage/node-files.js'
import { examineDirectory, type Header, readHeader } from '../storage/vault-file.js'
import { type App, createApp, createFirstTenant } from './app.js'
import { completeEffects, type Effects, isStore, kindOfAddress, type VaultLocation } from './location.js'
import { MemoryVault } from './memory-vault.js'
import {
  askSecret,
  type ChooseOpener,
  choosePrimitivesLater,
  createHeader,
  type NewOpener,
  refuseBesideServer,
  type Unlocked,
  unlock,
  withLock,
  withNewDirectory,
} from './unlock.js'
import { createMessageAnswerer, createRemoteVault, type Vault } from './vault.js'

export { refuseKeyFile } from '../crypto/key-slot.js'
export type { Clock } from '../crypto/ports.js'
export { parseStoreAddress } from '../storage/postgres/address.js'
export { isStore, requireDirectory, resolveDirectory, type VaultLocation } from './location.js'
export { type ChooseOpener, describeLocked, type LockedVault, type NewOpener, type Opener } from './unlock.js'

/** If a server refuses connections, a command tries again for this time, ms. */
const MAX_SERVER_MS = 2000
/** A server always has this time to accept a connection, ms, even if the command's timeout is shorter. */
const MIN_ACCEPT_MS = 1000
const SERVER_PAUSE_MS = 200

/** The module of stores is loaded only when it is needed, because most vaults are directories. */
const loadStore = () => import('./store-vault.js')

/** A vault at `memory:` is lost when it closes. @throws CofferError `conflict` if the address has a vault, `usage` */
export async function createVault(location: VaultLocation, tenantName: string, opener: NewOpener) {
  const kind = kindOfAddress(location.directory)
  const effects = completeEffects(location)
  if (kind === 'memory') return (await openEphemeral({ ...effects, tenantName })).app
  if (kind === 'store') return (await loadStore()).createInStore(effects, tenantName, opener)
  return createInDirectory(effects, tenantName, opener)
}

export interface EphemeralOptions {
  tenantName: string
  clock?: Clock
  /** Like `clock`, but during a jump of the clock, returns the time at the end of the jump. */
  clockEnd?: Clock
  role?: Effects['role']
}

/** Creates a vault in memory with one tenant. A vault with the default `role` starts fastest. */
export async function openEphemeral(options: EphemeralOptions): Promise<MemoryVault> {
  const { tenantName, clock = Date.now, clockEnd, role = 'command' } = options
  const random = createRandom()
  const primitives = choosePrimitivesLater(role)
  const keyring = createKeyring(primitives, random, random.bytes(KEY_BYTES))
  const engine = new MemoryEngine(clock)
  const vault = new MemoryVault({ engine, keyring, random, primitives, clock, clockEnd })
  await createFirstTenant(vault.app, tenantName)
  return vault
}

async function createInDirectory(effects: Effects, tenantName: string, opener: NewOpener): Promise<App> {
  if (opener.kind === 'passphrase') checkNewPassphrase(opener.passphrase)
  return withNewDirectory(effects, async (lock) => {
    const unlocked = await createHeader(effects, opener)
    const { header, keyring } = unlocked
    let app: App | undefined
    await createFileEngine({ ...effects, header, keys: keyring.engine }, async (engine) => {
      app = createApp({ ...effects, ...unlocked, engine, lock })
      await createFirstTenant(app, tenantName)
    })
    return listening(effects, unlocked, app!)
  })
}

/**
 * Needs no key. @throws CofferError `vault_missing`, `vault_exposed`, `vault_damaged`, `vault_unsupported`. For a
 * store, also `unavailable`, `usage`
 */
export async function readHeaderAt(location: VaultLocation): Promise<Header> {
  if (isStore(location.directory)) return (await loadStore()).readHeaderInStore(location)
  return readHeader(location.files ?? nodeFiles(), location.directory)
}

/** True if the directory contains a vault or a part of a vault. */
export function hasTraces(directory: string): boolean {
  return examineDirectory(nodeFiles(), directory) !== 'none'
}

/** Returns the id of a vault. Needs no key. @throws CofferError like {@link readHeaderAt} */
export async function identifyVault(location: VaultLocation): Promise<string> {
  return (await readHeaderAt(location)).vault
}

/**
 * Opens a vault when its lock is free. @throws CofferError `vault_missing`, `vault_locked`, `vault_exposed`,
 * `vault_unsupported`, `vault_damaged`, `unavailable` if another process keeps the lock, `usage`
 */
export async function openVault(location: VaultLocation, choose: ChooseOpener): Promise<App> {
  const kind = kindOfAddress(location.directory)
  if (kind === 'memory')
    throw new CofferError('vault_missing', 'A vault in memory is lost when it is closed.')
  const effects = completeEffects(location)
  if (kind === 'store') return (await loadStore()).openInStore(effects, choose)
  // The user enters the secret before the lock is acquired, so that other processes do not wait for a person.
  const header = await readHeader(effects.files, effects.directory)
  if (effects.role === 'server') refuseBesideServer(effects)
  const secret = await askSecret(choose, header)
  return withLock(effects, (lock) => openOwned(effects, lock, secret))
}

async function openOwned(effects: Effects, lock: Lock, secret: Secret): Promise<App> {
  // Reads the header again, because the previous holder of the lock may have changed the header.
  const unlocked = await unlock(effects, secret)
  const { header, keyring } = unlocked
  const engine = await openFileEngine({ ...effects, header, keys: keyring.engine })
  return listening(effects, unlocked, createApp({ ...effects, ...unlocked, engine, lock }))
}

/** If this process is a server, it answers commands of other processes until the vault is closed. */
async function listening(effects: Effects, { keyring }: Pick<Unlocked, 'keyring'>, app: App): Promise<App> {
  if (effects.role !== 'server') return app
  try {
    const options = { ...effects, proof: keyring.socketProof }
    const listener = await serveVaultSocket(options, createMessageAnswerer(app))
    const { close } = app
    // The object `app` is changed and not copied, because a server later adds members to this object.
    return Object.assign(app, { close: () => listener.close().then(close) })
  } catch (error) {
    await app.close()
    throw error
  }
}

/** Connects to the server that has the vault open, or opens the vault. @throws CofferError like {@link openVault} */
export async function reachVault(location: VaultLocation, choose: ChooseOpener): Promise<Vault> {
  const effects = completeEffects(location)
  if (isStore(effects.directory)) return (await loadStore()).openInStore(effects, choose)
  const secret = await askSecret(choose, await readHeader(effects.files, effects.directory))
  for (let waitedMs = 0; ; waitedMs += SERVER_PAUSE_MS) {
    if (hasVaultSocket(effects)) {
      const peer = await connectWith(effects, secret)
      if (peer !== undefined) return createRemoteVault(peer)
    }
    try {
      return await withLock(effects, (lock) => openOwned(effects, lock, secret), leaveToServer(effects))
    } catch (error) {
      const maxMs = Math.min(MAX_SERVER_MS, effects.timeoutMs)
      if (!(error instanceof ServerFound) || waitedMs >= maxMs) throw error
      await new Promise((resolve) => setTimeout(resolve, SERVER_PAUSE_MS))
    }
  }
}

/** Returns undefined if no server listens. @throws CofferError `unavailable` if the server does not answer */
async function connectWith(effects: Effects, secret: Secret): Promise<VaultSocketClient | undefined> {
  const { keyring } = await unlock(effects, secret)
  const limitMs = Math.max(MIN_ACCEPT_MS, effects.timeoutMs)
  const proof = keyring.socketProof
  const silence = () => describeSilence(effects, limitMs)
  try {
    return await connectToVault({ ...effects, proof, limitMs, describeSilence: silence })
  } finally {
    keyring.wipe()
  }
}

function describeSilence({ files, directory, pid }: Effects, waitedMs: number): CofferError {
  const held = readLockHolder(files, directory, readProcessIdentity(pid))
  const waited = `(waited ${Math.round(waitedMs / 1000)} s)`
  if (held === undefined)
    return new CofferError('unavailable', `The server of this vault does not answer ${waited}. Try again.`)
  const { pid: server } = held.holder
  return new CofferError(
    'unavailable',
    `Process ${server} has the vault open and does not answer ${waited}. If it is stopped, resume it: kill -CONT ` +
      `${server}. Otherwise end it: kill ${server}`,
  )
}

/** Ends the wait for the lock, because a server has the lock and can answer the command. */
class ServerFound extends CofferError {}

/** Ends the wait for the lock when its holder is a server that listens. A starting server may not listen yet. */
function leaveToServer(effects: Effects) {
  return ({ isServer, pid }: LockHolder) => {
    if (isServer && hasVaultSocket(effects))
      throw new ServerFound('unavailable', `Process ${pid} has the vault open and does not answer commands.`)
  }
}
