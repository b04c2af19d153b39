/**
 * The composition root: from an engine and keys to everything that operations are given. `open.ts` brings both.
 */
import type { Keyring } from '../crypto/keyring.js'
import { createMac, isEqualDigest } from '../crypto/mac.js'
import type { Mac, Random } from '../crypto/ports.js'
import type { Primitives } from '../crypto/primitives.js'
import { createUuid } from '../crypto/random.js'
import { KEY_BYTES } from '../crypto/seal.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { SettingsRecord, TenantKeyBytes, TenantRecord } from '../domain/records.js'
import { AFTER_DAMAGE, CofferError } from '../errors.js'
import { authenticate, KnownCallers } from '../framework/authenticate.js'
import { type Caller, ownerCaller } from '../framework/caller.js'
import { type Host, type Outcome, perform } from '../framework/perform.js'
import type { ReactorOptions, ReactorRuntime, Sandbox } from '../framework/reactor-runtime.js'
import { validateInput } from '../framework/validate.js'
import { createPost, type LastingPost } from '../mail/post.js'
import { registry } from '../operations/all.js'
import { createTenant, createVaultRecords, findTenant } from '../operations/tenant/tenant-create.js'
import { sweepExpired } from '../operations/token/expiry.js'
import type { Reactors } from '../reactor/start.js'
import { createSealedStore } from '../storage/barrier/sealed-store.js'
import type { Engine } from '../storage/engine.js'
import type { Ownership } from '../storage/lock.js'
import type { Store, StoreReader } from '../storage/store.js'
import type { Header } from '../storage/vault-file.js'
import { createMaintenance, type Maintenance } from './maintenance.js'
import type { Asked, Vault } from './vault.js'

const FIRST_TENANT = 1
const SECRET_HASH_BYTES = 32
/** A sweep that has more to do leaves it to the next one. */
const SWEPT_AT_ONCE = 2000
const utf8 = new TextEncoder()

/** An open vault: what `perform` needs, who its owner is, and what it consists of. */
export interface App extends Host, Vault {
  readonly post: LastingPost
  readonly header: Header | undefined
  /** The person who could unlock the vault, acting in the tenant of this name or id, else in the oldest. */
  owner(options: { reveal: boolean; tenant?: string | undefined }): Promise<Caller>
  /** The tenant of this name or id, else the oldest. */
  tenant(nameOrId?: string): Promise<TenantRecord>
  generateTenantKeys(): TenantKeyBytes
  /** What reactors are started with, once the first is run; adds to what was said before. */
  configureReactors(options: ReactorOptions): void
  /** What holds the code of reactors on this machine. */
  sandbox(): Promise<Sandbox>
  /** @throws CofferError `internal` for a vault in memory, whose engine has no maintenance. */
  maintenance(): Maintenance
  /** Takes tokens whose time is over off the disk, at most some thousands at once and for about `ms`; gives their number. */
  sweep(ms?: number): Promise<number>
  close(): Promise<void>
}

/** Composes an open vault from what opening it took. */
export function createApp(parts: {
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
  const maintenance =
    engine.maintenance !== undefined && header !== undefined
      ? createMaintenance(engine.maintenance, keyring, header)
      : undefined
  let expressions: Promise<Expressions> | undefined
  let secretsMac: Mac | undefined
  let reactorOptions: ReactorOptions = {}
  let reactors: Promise<Reactors> | undefined
  let closing: Promise<void> | undefined
  const loadReactors = () => {
    reactors ??= import('../reactor/start.js').then(({ Reactors }) => new Reactors(reactorOptions))
    return reactors
  }
  const tenant = (nameOrId?: string) => readTenant(store, nameOrId)
  const post = createPost(store)
  const app: App = {
    store,
    post,
    header,
    random,
    tenant,
    callers: new KnownCallers(createMac(primitives, random.bytes(KEY_BYTES))),
    maintenance: () => {
      if (maintenance !== undefined) return maintenance
      throw new CofferError('internal', 'A vault in memory has no maintenance.')
    },
    createUuid: () => createUuid(random),
    sweep: (ms = Number.POSITIVE_INFINITY) => {
      const end = performance.now() + ms
      const host = { store, createUuid: () => createUuid(random) }
      return sweepExpired(host, SWEPT_AT_ONCE, () => performance.now() > end)
    },
    ask: (asked) => answerAsked(app, asked),
    command: async (name, input) => {
      const { runVaultCommand } = await import('./vault-commands.js')
      return runVaultCommand(app, name, input)
    },
    validate: ({ name }, input) => validateInput(name, input),
    expressions: () => {
      expressions ??= import('../domain/expression/expression.js').then(({ createExpressions }) =>
        createExpressions(random),
      )
      return expressions
    },
    configureReactors: (options) => {
      reactorOptions = { ...reactorOptions, ...options }
    },
    reactors: async (values) => (await loadReactors()).fit(values),
    sandbox: async () => (await loadReactors()).sandbox,
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
      closing ??= Promise.resolve(reactors?.then((running) => running.close()))
        .then(() => post.close())
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

/** What runs people's code without a vault, as one that was just made would. @throws CofferError `usage` */
export async function openReactors(options: ReactorOptions): Promise<ReactorRuntime> {
  const { startReactors } = await import('../reactor/start.js')
  return startReactors({}, options)
}

async function readSettings(reader: StoreReader): Promise<SettingsRecord> {
  const settings = await reader.get('settings', 0, 'vault')
  if (settings !== undefined) return settings
  throw new CofferError('vault_damaged', `The settings of the vault are missing. ${AFTER_DAMAGE}`)
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
export async function createFirstTenant(
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
