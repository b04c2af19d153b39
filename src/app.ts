/**
 * The composition root: from a place on disk and a secret to everything that operations are given. The only file
 * that builds effects.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type FileKey, formatKeyFile, parseKeyFile } from './crypto/key-file.js'
import {
  checkNewPassphrase,
  createSlot,
  openRoot,
  parseSlots,
  type ScryptCost,
  type SealedHeader,
  type Secret,
  type Slot,
  type SlotPowers,
  sealHeader,
} from './crypto/key-slot.js'
import { createKeyring, type Keyring } from './crypto/keyring.js'
import { createMac, isEqualDigest } from './crypto/mac.js'
import { nativePrimitives } from './crypto/native.js'
import type { Primitives } from './crypto/primitives.js'
import { createRandom, createUuid } from './crypto/random.js'
import { KEY_BYTES } from './crypto/seal.js'
import { loadSodium } from './crypto/sodium.js'
import { formatDate } from './domain/dates.js'
import type { Expressions } from './domain/expression.js'
import type { SettingsRecord, TenantKeyBytes, TenantRecord } from './domain/records.js'
import { CofferError } from './errors.js'
import { createPost, type LastingPost } from './mail/post.js'
import { registry } from './operations/all.js'
import { authenticate } from './operations/authenticate.js'
import { type Caller, ownerCaller } from './operations/caller.js'
import { sweepExpired } from './operations/expiry.js'
import { type Host, type Outcome, perform } from './operations/perform.js'
import { createTenant, createVaultRecords, findTenant } from './operations/tenant-create.js'
import { encodeId } from './store/bytes.js'
import { createFileEngine, FileEngine, openFileEngine } from './store/file-engine.js'
import { type Files, nodeFiles } from './store/files.js'
import { findOwner, type HandoverOptions, isListenedTo, listenForCommands } from './store/handover.js'
import { createMemoryEngine } from './store/memory-engine.js'
import { type Ownership, takeOwnership } from './store/ownership.js'
import { readProcessFacts } from './store/process-facts.js'
import { createSealedStore } from './store/sealed-store.js'
import type { Clock, Engine, Mac, Random, Store, StoreReader } from './store/store.js'
import { FORMAT, type Header, hasHeader, readHeader } from './store/vault-file.js'
import { validateInput } from './validate.js'
import { type Asked, answerMessage, createRemoteVault, type Vault } from './vault.js'

const VAULT_ID_BYTES = 16
const FIRST_TENANT = 1
/** How long a command waits for another to finish. */
const PATIENCE_MS = 10_000
const SECRET_HASH_BYTES = 32
/** A sweep that has more to do leaves it to the next one. */
const SWEPT_AT_ONCE = 2000
const utf8 = new TextEncoder()

export type { Clock } from './store/store.js'
export type { Asked, Vault } from './vault.js'

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
  random?: Random
}

export interface VaultFacts {
  vault: string
  format: number
  created: string
  key_slots: { id: string; kind: string; created: string }[]
  storage: {
    /** Rows that are there, and rows that folding has still to remove. */
    records: number
    logs: number
    dead: number
    segments: number
    journal_bytes: number
    segment_bytes: number
  }
}

/** An open vault: what `perform` needs, who its owner is, and what it consists of. */
export interface App extends Host, Vault {
  readonly post: LastingPost
  readonly header: Header | undefined
  /** The person who could unlock the vault, acting in the tenant of this name or id, else in the oldest. */
  owner(options: { reveal: boolean; tenant?: string | undefined }): Promise<Caller>
  /** The tenant of this name or id, else the oldest. */
  tenant(nameOrId?: string): Promise<TenantRecord>
  generateTenantKeys(): TenantKeyBytes
  /** What can be told of the vault without reading a record. */
  describe(): Promise<VaultFacts>
  /** Takes tokens whose time is over off the disk, at most some thousands at once; gives their number. */
  sweep(): Promise<number>
  close(): Promise<void>
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
  if (files.makeDirectory(directory)) files.syncDirectory(dirname(directory))
  return owning(effects, async (ownership) => {
    if (hasHeader(files, directory))
      throw new CofferError('conflict', `There is a vault in ${directory} already.`)
    const app = await createOwned(effects, ownership, opener)
    await createFirstTenant(app, tenantName)
    return app
  })
}

async function createOwned(effects: Effects, ownership: Ownership, opener: NewOpener): Promise<App> {
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
  return createApp({ engine, keyring, random, header, primitives, ownership })
}

async function createFirstSlot(
  powers: SlotPowers,
  { root, vault, created }: { root: Uint8Array; vault: string; created: string },
  opener: NewOpener,
): Promise<Slot> {
  if (opener.kind === 'passphrase') {
    const { passphrase, cost } = opener
    const secret: Secret = { kind: 'passphrase', passphrase }
    return createSlot(powers, { root, secret, created, ...(cost === undefined ? {} : { cost }) })
  }
  const file: FileKey = { vault, key: powers.random.bytes(KEY_BYTES) }
  await opener.save(vault, formatKeyFile(file))
  return createSlot(powers, { root, secret: { kind: 'key-file', file }, created })
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
  return owning(effects, (ownership) => openOwned(effects, ownership, toSecret(opener)))
}

async function openOwned(effects: Effects, ownership: Ownership, secret: Secret): Promise<App> {
  const { random, role } = effects
  const primitives = await choosePrimitives(role)
  // Read once the vault is ours: the owner before us may have changed it.
  const { header, keyring } = await openKeyring(effects, primitives, secret)
  const engine = await openFileEngine({ ...effects, header, keys: keyring.engine })
  const app = createApp({ engine, keyring, random, header, primitives, ownership })
  return role === 'server' ? listening(effects, keyring, app) : app
}

/** The same vault, and commands of other processes answered for as long as it is open. */
async function listening(effects: Effects, keyring: Keyring, app: App): Promise<App> {
  const listener = await listenForCommands(handoverOptions(effects, keyring), (message) =>
    answerMessage(app, message),
  )
  return { ...app, close: () => listener.close().then(() => app.close()) }
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
    return await owning(effects, (ownership) => openOwned(effects, ownership, secret))
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
  if (!isListenedTo(effects)) return undefined
  const primitives = await choosePrimitives(effects.role)
  const { keyring } = await openKeyring(effects, primitives, secret)
  const peer = await findOwner(handoverOptions(effects, keyring))
  keyring.wipe()
  return peer === undefined ? undefined : createRemoteVault(peer)
}

async function openKeyring({ random, files, directory }: Effects, primitives: Primitives, secret: Secret) {
  const header = await readHeader(files, directory)
  const root = await openRoot({ primitives, random }, { ...header, slots: parseSlots(header.slots) }, secret)
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  return { header, keyring }
}

function handoverOptions(effects: Effects, keyring: Keyring): HandoverOptions {
  return {
    ...effects,
    proof: keyring.handover,
    makePrivateDirectory: () => mkdtempSync(join(tmpdir(), 'coffer-')),
  }
}

/** Takes the vault for what `work` opens in it, which lets go of it when closed; now, when `work` fails. */
async function owning(effects: Effects, work: (ownership: Ownership) => Promise<App>): Promise<App> {
  const ownership = await takeOwnership({
    ...effects,
    facts: readProcessFacts(effects.pid),
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    patienceMs: PATIENCE_MS,
  })
  try {
    return await work(ownership)
  } catch (error) {
    ownership.release()
    throw error
  }
}

function toSecret(opener: Opener): Secret {
  return opener.kind === 'passphrase' ? opener : { kind: 'key-file', file: parseKeyFile(opener.text) }
}

/** A command is over before libsodium is warm; a server is glad that it is faster afterwards. */
async function choosePrimitives(role: Effects['role']): Promise<Primitives> {
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

type Effects = Required<Place>

function completeEffects(place: Place): Effects {
  const { files = nodeFiles(), clock = Date.now, random = createRandom(), role = 'command' } = place
  return { ...place, files, clock, random, role }
}

function createApp(parts: {
  engine: Engine
  keyring: Keyring
  random: Random
  header: Header | undefined
  primitives: Primitives
  /** Absent where nobody else could open the vault. */
  ownership?: Ownership
}): App {
  const { engine, keyring, random, header, primitives, ownership } = parts
  const store = createSealedStore(engine, keyring)
  let expressions: Promise<Expressions> | undefined
  let secretsMac: Mac | undefined
  let closing: Promise<void> | undefined
  const tenant = (nameOrId?: string) => readTenant(store, nameOrId)
  const post = createPost(store)
  const app: App = {
    store,
    post,
    header,
    random,
    tenant,
    describe: () => describeVault(header, engine),
    createUuid: () => createUuid(random),
    sweep: () => sweepExpired({ store, createUuid: () => createUuid(random) }, SWEPT_AT_ONCE),
    ask: (asked) => answerAsked(app, asked),
    command: async (name, input) => {
      const { runVaultCommand } = await import('./vault-commands.js')
      return runVaultCommand(app, name, input)
    },
    validate: ({ name }, input) => validateInput(name, input),
    expressions: () => {
      expressions ??= import('./domain/expression.js').then(({ createExpressions }) =>
        createExpressions(random),
      )
      return expressions
    },
    hashSecret: async (text, reader) => {
      secretsMac ??= createMac(primitives, fromBase64((await readSettings(reader)).secrets_key))
      return Buffer.from(secretsMac(utf8.encode(text), SECRET_HASH_BYTES)).toString('hex')
    },
    isEqualSecret: (a, b) => isEqualDigest(primitives, utf8.encode(a), utf8.encode(b)),
    owner: async ({ reveal, tenant: nameOrId }) => {
      const { number, owner_id } = await tenant(nameOrId)
      return ownerCaller(number, owner_id, { reveal })
    },
    generateTenantKeys: () => {
      const { data, index, fingerprint } = keyring.generateTenant()
      return { data: base64(data), index: base64(index), fingerprint: base64(fingerprint) }
    },
    close: () => {
      closing ??= post
        .close()
        .then(() => store.close())
        .finally(() => {
          ownership?.release()
          keyring.wipe()
        })
      return closing
    },
  }
  return app
}

/** An operation for the owner, or for the application whose key it is. */
async function answerAsked(app: App, { operation, input, as }: Asked): Promise<Outcome> {
  const definition = registry.find(operation)
  if (definition === undefined) throw new CofferError('not_found', `There is no operation "${operation}".`)
  const caller = 'key' in as ? await authenticate(app, as.key) : await app.owner(as)
  return perform(app, caller, definition, input, app.createUuid())
}

async function describeVault(header: Header | undefined, engine: Engine): Promise<VaultFacts> {
  if (header === undefined || !(engine instanceof FileEngine)) {
    throw new CofferError('internal', 'A vault in memory has nothing to describe.')
  }
  const { vault, format, created, slots } = header
  const { segments, journalBytes, recordBytes, logBytes, rows } = await engine.status()
  return {
    vault,
    format,
    created,
    key_slots: parseSlots(slots).map(({ id, kind, created }) => ({ id, kind, created })),
    storage: { ...rows, segments, journal_bytes: journalBytes, segment_bytes: recordBytes + logBytes },
  }
}

async function readSettings(reader: StoreReader): Promise<SettingsRecord> {
  const settings = await reader.get('settings', 0, 'vault')
  if (settings !== undefined) return settings
  throw new CofferError('vault_damaged', 'The settings of the vault are missing. Run: coffer vault verify')
}

/** The first tenant is found without a search, which is what nearly every command wants. */
async function readTenant(store: Store, nameOrId?: string): Promise<TenantRecord> {
  return store.read(async (reader) => {
    if (nameOrId !== undefined) return findTenant(reader, nameOrId)
    const first = await reader.get('tenant', 0, String(FIRST_TENANT))
    if (first !== undefined) return first
    const { records, total } = await reader.find('tenant', 0, { page: 1, size: 1 })
    const oldest = total > 1 ? await reader.find('tenant', 0, { page: total, size: 1 }) : { records }
    const [tenant] = oldest.records
    if (tenant !== undefined) return tenant
    throw new CofferError('not_found', 'This vault has no tenant. Create one: coffer tenant create NAME')
  })
}

/** The vault's own records and its first tenant, at once. */
async function createFirstTenant(
  { store, random, createUuid, generateTenantKeys }: App,
  name: string,
): Promise<void> {
  const secretsKey = base64(random.bytes(KEY_BYTES))
  await store.write(async (writer) => {
    await createVaultRecords(writer, { secretsKey, ownerId: createUuid() })
    await createTenant(writer, { name, keys: generateTenantKeys(), createUuid })
  })
}

function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'))
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
