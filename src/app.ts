/**
 * The composition root: from a place on disk and a secret to everything that operations are given. The only file
 * that builds effects.
 */
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
import { createRandom, createUuid } from './crypto/random.js'
import { KEY_BYTES } from './crypto/seal.js'
import { loadSodium, type Sodium } from './crypto/sodium.js'
import { formatDate } from './domain/dates.js'
import type { Expressions } from './domain/expression.js'
import type { SettingsRecord, TenantKeyBytes, TenantRecord } from './domain/records.js'
import { CofferError } from './errors.js'
import { type Caller, ownerCaller } from './operations/caller.js'
import type { Host } from './operations/perform.js'
import { createTenant, createVaultRecords, findTenant } from './operations/tenant-create.js'
import { encodeId } from './store/bytes.js'
import { createFileEngine, openFileEngine } from './store/file-engine.js'
import { type Files, nodeFiles } from './store/files.js'
import { createMemoryEngine } from './store/memory-engine.js'
import { createSealedStore } from './store/sealed-store.js'
import type { Clock, Engine, Mac, Random, Store, StoreReader } from './store/store.js'
import { FORMAT, type Header, hasHeader, readHeader } from './store/vault-file.js'
import { validateInput } from './validate.js'

const VAULT_ID_BYTES = 16
const FIRST_TENANT = 1
const SECRET_HASH_BYTES = 32
const utf8 = new TextEncoder()

export type { Clock } from './store/store.js'

/** Where a vault is, and the effects of this run; everything but the directory has a real default. */
export interface Place {
  directory: string
  pid: number
  /** Told what a person should know and no program needs, such as a torn frame that was dropped. */
  notice(text: string): void
  files?: Files
  clock?: Clock
  random?: Random
}

export interface VaultFacts {
  vault: string
  format: number
  created: string
  key_slots: { id: string; kind: string; created: string }[]
}

/** An open vault: what `perform` needs, who its owner is, and what it consists of. */
export interface App extends Host {
  readonly header: Header | undefined
  /** The person who could unlock the vault, acting in the tenant of this name or id, else in the oldest. */
  owner(options: { reveal: boolean; tenant?: string | undefined }): Promise<Caller>
  /** The tenant of this name or id, else the oldest. */
  tenant(nameOrId?: string): Promise<TenantRecord>
  generateTenantKeys(): TenantKeyBytes
  /** What can be told of the vault without reading a record. */
  describe(): VaultFacts
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
  const { random, clock, files, directory } = effects
  if (hasHeader(files, directory))
    throw new CofferError('conflict', `There is a vault in ${directory} already.`)
  const sodium = await loadSodium()
  const root = random.bytes(KEY_BYTES)
  const vault = encodeId(random.bytes(VAULT_ID_BYTES))
  const created = formatDate(clock())
  const slot = await createFirstSlot({ sodium, random }, { root, vault, created }, opener)
  const bare = {
    format: FORMAT,
    vault,
    created,
    cipher: 'xchacha20-poly1305',
    digest: 'blake2b',
    slots: [slot],
  } as const
  const header = sealHeader(sodium, { ...bare, slots: [slot] }, root) as SealedHeader & Header
  const keyring = createKeyring(sodium, random, root)
  sodium.memzero(root)
  const engine = await createFileEngine({ ...effects, header, keys: keyring.engine, role: 'command' })
  const app = createApp({ engine, keyring, random, header, sodium })
  await createFirstTenant(app, tenantName)
  return app
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
 * Opens the vault in `place.directory` with what `choose` finds for it.
 * @throws CofferError `vault_missing`, `vault_locked`, `vault_exposed`, `vault_unsupported`, `vault_damaged`
 */
export async function openVault(place: Place, choose: (vault: LockedVault) => Promise<Opener>): Promise<App> {
  const effects = completeEffects(place)
  const { random } = effects
  const header = await readHeader(effects.files, place.directory)
  const slots = parseSlots(header.slots)
  const opener = await choose({ id: header.vault, slots: slots.map(({ kind }) => kind) })
  const sodium = await loadSodium()
  const root = await openRoot({ sodium, random }, { ...header, slots }, toSecret(opener))
  const keyring = createKeyring(sodium, random, root)
  sodium.memzero(root)
  const engine = await openFileEngine({ ...effects, header, keys: keyring.engine, role: 'command' })
  return createApp({ engine, keyring, random, header, sodium })
}

function toSecret(opener: Opener): Secret {
  return opener.kind === 'passphrase' ? opener : { kind: 'key-file', file: parseKeyFile(opener.text) }
}

/** Starts to load what opening any vault takes. A failure shows when the vault is opened. */
export function warmUp(): void {
  loadSodium().catch(() => {})
}

/** A vault that is nowhere but in memory and gone when closed. */
export async function openEphemeral({
  tenantName,
  clock = Date.now,
}: {
  tenantName: string
  clock?: Clock
}): Promise<App> {
  const sodium = await loadSodium()
  const random = createRandom()
  const keyring = createKeyring(sodium, random, random.bytes(KEY_BYTES))
  const engine = createMemoryEngine({ keys: keyring.engine, clock })
  const app = createApp({ engine, keyring, random, header: undefined, sodium })
  await createFirstTenant(app, tenantName)
  return app
}

function completeEffects(place: Place) {
  const { files = nodeFiles(), clock = Date.now, random = createRandom() } = place
  return { ...place, files, clock, random }
}

function createApp(parts: {
  engine: Engine
  keyring: Keyring
  random: Random
  header: Header | undefined
  sodium: Sodium
}): App {
  const { engine, keyring, random, header, sodium } = parts
  const store = createSealedStore(engine, keyring)
  let expressions: Promise<Expressions> | undefined
  let secretsMac: Mac | undefined
  let closing: Promise<void> | undefined
  const tenant = (nameOrId?: string) => readTenant(store, nameOrId)
  return {
    store,
    header,
    random,
    tenant,
    describe: () => describeHeader(header),
    createUuid: () => createUuid(random),
    validate: ({ name }, input) => validateInput(name, input),
    expressions: () => {
      expressions ??= import('./domain/expression.js').then(({ createExpressions }) =>
        createExpressions(random),
      )
      return expressions
    },
    hashSecret: async (text, reader) => {
      secretsMac ??= createMac(sodium, fromBase64((await readSettings(reader)).secrets_key))
      return Buffer.from(secretsMac(utf8.encode(text), SECRET_HASH_BYTES)).toString('hex')
    },
    isEqualSecret: (a, b) => isEqualDigest(sodium, utf8.encode(a), utf8.encode(b)),
    owner: async ({ reveal, tenant: nameOrId }) => {
      const { number, owner_id } = await tenant(nameOrId)
      return ownerCaller(number, owner_id, { reveal })
    },
    generateTenantKeys: () => {
      const { data, index, fingerprint } = keyring.generateTenant()
      return { data: base64(data), index: base64(index), fingerprint: base64(fingerprint) }
    },
    close: () => {
      closing ??= store.close().then(() => keyring.wipe())
      return closing
    },
  }
}

function describeHeader(header: Header | undefined): VaultFacts {
  if (header === undefined) throw new CofferError('internal', 'A vault in memory has no header.')
  const { vault, format, created, slots } = header
  const key_slots = parseSlots(slots).map(({ id, kind, created }) => ({ id, kind, created }))
  return { vault, format, created, key_slots }
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
