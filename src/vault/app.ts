/**
 * The composition root: builds everything that operations use, from an engine and keys. `open.ts` provides the engine
 * and the keys.
 */
import type { Keyring } from '../crypto/keyring.js'
import { computeHmac } from '../crypto/native.js'
import type { ClientEncryption, Clock, Mac, RandomSource } from '../crypto/ports.js'
import { createCipher, createMac, isEqualDigest, KEY_BYTES, type Primitives } from '../crypto/primitives.js'
import { createUuid } from '../crypto/random.js'
import { CallbackChannel } from '../delivery/callback-channel.js'
import { MailChannel } from '../delivery/mail-channel.js'
import { NetworkTokenChannel } from '../delivery/network-token-channel.js'
import { DeliveryQueue } from '../delivery/queue.js'
import { UpdaterChannel } from '../delivery/updater-channel.js'
import { WebhookChannel } from '../delivery/webhook-channel.js'
import { API_KEY, RUN_KEY } from '../domain/access/application.js'
import { Turns } from '../domain/expression/budget.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { CodeFault } from '../domain/reactor/code-fault.js'
import type { TenantRecord } from '../domain/records/records.js'
import { settingOf } from '../domain/settings.js'
import { BASE58_RULE, isKey, randomKey } from '../domain/text/base58.js'
import { CofferError, noRevealError, usage } from '../errors.js'
import { authenticate } from '../framework/caller/authenticate.js'
import { type Caller, CallerCache, noRevealCaller, ownerCaller } from '../framework/caller/caller.js'
import { type Explained, explain as explainOperation } from '../framework/caller/explain.js'
import { ContainerSets } from '../framework/container-sets.js'
import type { RequestOrigin, RunKey } from '../framework/context.js'
import type { Host } from '../framework/host.js'
import type { Outcome } from '../framework/outcome.js'
import { perform } from '../framework/perform.js'
import { Background, createClaims } from '../framework/ports/background.js'
import type { ControlPlane } from '../framework/ports/control.js'
import type { Linker } from '../framework/ports/linker.js'
import type { LogSinkPort } from '../framework/ports/log-sink.js'
import { type AttachedServer, NO_SERVER, type OwnServer } from '../framework/ports/own-server.js'
import type { FindReactors, ReactorOptions, ReactorRuntime } from '../framework/ports/reactors.js'
import type { RegisteredOperation } from '../framework/registry.js'
import { validateInput } from '../framework/validate.js'
import type { ResultOf } from '../operations/all.js'
import { rememberOperations } from '../operations/load.js'
import {
  createTenant,
  createVaultRecords,
  findTenant,
  readSettings,
} from '../operations/tenant/tenant-create.js'
import { sweepExpired } from '../operations/token/lifetime.js'
import type { Confinement, CoreOwner, Found } from '../reactor/confinement.js'
import type { HttpOutbound } from '../reactor/outbound.js'
import type { ReactorPool } from '../reactor/pool.js'
import { DEFAULT_SETTINGS, readPoolSettings } from '../reactor/settings.js'
import { createSealedStore } from '../storage/barrier/sealed-store.js'
import { fromBase64, toBase64 } from '../storage/bytes.js'
import type { Engine } from '../storage/engine.js'
import type { Files } from '../storage/files.js'
import type { Lock } from '../storage/lock.js'
import { nodeFiles } from '../storage/node-files.js'
import type { Header } from '../storage/vault-file.js'
import { createMaintenance } from './maintenance.js'
import { createSharedClaims } from './shared-claims.js'
import { createSigning } from './signing.js'
import type { OperationRequest, Vault } from './vault.js'

/** The tenant number of records that belong to the vault itself. */
const NO_TENANT = 0
const SECRET_HASH_BYTES = 32
const SWEPT_AT_ONCE = 2000

export interface App extends Host, Vault {
  readonly deliveries: DeliveryQueue
  readonly header: Header | undefined
  attachServer(server: AttachedServer): () => void
  /** Returns the owner of the vault as a caller, in the tenant with this name or id (default: the oldest). */
  owner(options: { reveal: boolean; tenant?: string | undefined }): Promise<Caller>
  tenant(nameOrId?: string): Promise<TenantRecord>
  /**
   * Adds options to the earlier options. Must be called before the first run. `confinement`: how child processes are
   * confined. By default, a probe finds the strongest confinement.
   */
  configureReactors(options: RuntimeOptions): void
  runtimeOptions(): RuntimeOptions
  /** Returns the server that answers requests of reactor code. A fork uses the server of its original vault. */
  attachedServer(): AttachedServer
  attachControl(control: ControlPlane): void
  attachLogSink(sink: LogSinkPort): void
  /** Must be called before all data is replaced. Work that began earlier fails at its next read or write. */
  beginGeneration(): void
  /** `create` returns a sign-in link for the dashboard. */
  offerPage(create: () => string): void
  /**
   * After this call, the vault accepts API keys that match `TEST_KEY_RULE`, even if other machines can reach the vault.
   * @throws CofferError `usage` for a stored vault
   */
  acceptTestKeys(): void
  /**
   * Must be called before other machines can reach the vault. @throws CofferError `usage` if API keys or keys of
   * proxies were chosen, unless {@link acceptTestKeys} was called
   */
  admitOthers(): void
}

interface AppParts {
  engine: Engine
  keyring: Keyring
  random: RandomSource
  /** The file system to which backups are written. Default: the disk. */
  files?: Files
  header: Header | undefined
  primitives: Primitives
  lock?: Lock
  /** The original vault, if this vault is a fork. */
  base?: App | undefined
  /** Returns how far the clock of card codes is behind the clock of the vault, ms. Default: 0. */
  codeLag?(): number
  /** Like the clock of the vault, but during a jump of the clock, returns the time at the end of the jump. */
  clockEnd?: Clock | undefined
}

export function createApp(parts: AppParts): App {
  const { engine, keyring, random, files = nodeFiles(), header, primitives, lock, base } = parts
  const store = createSealedStore(engine, keyring, parts)
  const maintenance =
    engine.maintenance !== undefined && header !== undefined
      ? createMaintenance(engine.maintenance, keyring, store, { files, random })
      : undefined
  const runtime = createRuntime(base)
  const background = new Background()
  const admission = createAdmission(header)
  const containerSets = new ContainerSets(store)
  const tenant = (nameOrId?: string) => store.read((reader) => findTenant(reader, nameOrId))
  let expressions: Promise<Expressions> | undefined
  let clientEncryption: Promise<ClientEncryption> | undefined
  let secretsMac: Mac | undefined
  let closing: Promise<void> | undefined
  let generation = 0
  let control: ControlPlane | undefined
  let logSink: LogSinkPort | undefined
  let createPageUrl: (() => string) | undefined
  const findOperation = rememberOperations()
  const hashSecret: Host['hashSecret'] = async (text, reader) => {
    secretsMac ??= createMac(primitives, fromBase64((await readSettings(reader)).secrets_key))
    return Buffer.from(secretsMac(Buffer.from(text), SECRET_HASH_BYTES)).toString('hex')
  }
  const storeTools = { store, hashSecret, createUuid: () => createUuid(random) }
  const signer = base?.signer ?? createSigning(store)
  const channels = (queue: DeliveryQueue) => [
    new MailChannel(store, queue),
    new WebhookChannel({
      ...storeTools,
      ...runtime,
      signer,
      silenceOf: (lane) => queue.silenceOf(lane),
    }),
    new CallbackChannel({ store, ...runtime }),
    new UpdaterChannel(() => app),
    new NetworkTokenChannel(storeTools.createUuid),
  ]
  const deliveries = new DeliveryQueue(store, channels, () => generation)
  const processMac = createMac(primitives, random.bytes(KEY_BYTES))
  const app: App = {
    ...storeTools,
    ...runtime,
    ...admission,
    get acceptsTestKeys() {
      return admission.acceptsTestKeys
    },
    get generation() {
      return generation
    },
    beginGeneration: () => {
      generation++
    },
    get control() {
      return control
    },
    attachControl: (given) => {
      control = given
    },
    get logSink() {
      return logSink
    },
    attachLogSink: (given) => {
      logSink = given
    },
    get createPageUrl() {
      return createPageUrl
    },
    offerPage: (create) => {
      createPageUrl = create
    },
    claims: store.isShared ? createSharedClaims(storeTools) : createClaims(),
    deliveries,
    signer,
    header,
    random,
    tenant,
    background,
    containerSets,
    callers: new CallerCache(processMac),
    ...createServing(() => app, runtime.prefix, base),
    createRunKey: () => createRunKey(random, processMac),
    maintenance: () => {
      if (maintenance !== undefined) return maintenance
      throw new CofferError('unprocessable', 'A vault in memory has no maintenance.')
    },
    sweep: async (ms = Number.POSITIVE_INFINITY) => {
      const began = Date.now()
      const isOver = () => Math.abs(Date.now() - began) > ms
      const swept = await sweepExpired(app, SWEPT_AT_ONCE, isOver)
      // A sweep that reached its limit may leave expired tokens. `reclaim` does not find these tokens, and would remove
      // their container sets. If the clock was wrong and is set back, the tokens still need their container sets.
      if (swept < SWEPT_AT_ONCE) await containerSets.reclaim(isOver)
      return swept
    },
    examineContainers: (isOver) => containerSets.examineAll(isOver),
    ask: async (request) => answerRequest(app, request, await findOperation(request.operation)),
    validate: validateInput,
    expressions: () => (expressions ??= loadExpressions(random)),
    turns: new Turns(),
    createCipher: (key) => createCipher(primitives, random, key),
    clientEncryption: () => (clientEncryption ??= loadClientEncryption()),
    isEqualSecret: (a, b) => isEqualDigest(Buffer.from(a), Buffer.from(b)),
    owner: async ({ reveal, tenant: nameOrId }) => {
      // Commands act as the user who created the vault, even if the tenant has another owner.
      const [number, userId] = await store.read(async (reader) => {
        const { number } = await findTenant(reader, nameOrId)
        return [number, (await readSettings(reader)).owner_id] as const
      })
      return ownerCaller(number, userId, { reveal })
    },
    generateTenantKeys: keyring.generateTenant,
    settle: () => background.idle(),
    close: () => {
      background.close()
      closing ??= runtime
        .close()
        .then(() => background.idle())
        .then(() => deliveries.close())
        .then(() => runtime.closeOutbound())
        .then(() => maintenance?.close())
        .then(() => store.close())
        .finally(() => {
          lock?.release()
          keyring.wipe()
        })
      return closing
    },
  }
  return app
}

/** Chosen API keys may be easy to guess, so other machines must not reach a vault that has them. */
function createAdmission(header: Header | undefined) {
  let hasChosenKeys = false
  let isExposed = false
  let acceptsTestKeys = false
  return {
    get acceptsTestKeys() {
      return acceptsTestKeys
    },
    acceptTestKeys: () => {
      if (header !== undefined) throw usage('A stored vault has random API keys only.')
      acceptsTestKeys = true
    },
    admitChosenProxyKey: () => {
      if (header !== undefined || (isExposed && !acceptsTestKeys))
        throw new CofferError(
          'unprocessable',
          'is the only protection of a proxy without require_auth, so it can be chosen only in a vault in memory that other machines cannot reach. Leave out the key, or set require_auth to true',
        )
      hasChosenKeys = true
    },
    admitChosenKey: (key: string) => {
      if (header !== undefined || (isExposed && !acceptsTestKeys))
        throw new CofferError(
          'unprocessable',
          'API keys can be chosen only in a vault in memory that other machines cannot reach.',
        )
      if (!acceptsTestKeys && !isKey(key, API_KEY))
        throw new CofferError(
          'unprocessable',
          `the key must be ${API_KEY} and 22 characters of ${BASE58_RULE}, or the server needs --test-keys`,
        )
      hasChosenKeys = true
    },
    admitOthers: () => {
      if (hasChosenKeys && !acceptsTestKeys)
        throw usage(
          'A vault with chosen API keys is served on loopback addresses only. Serve it on 127.0.0.1, or accept these keys from everybody with `coffer serve --test-keys`.',
        )
      isExposed = true
    },
  }
}

function createRunKey(random: RandomSource, mac: Mac): RunKey {
  const digest = (text: string) => mac(Buffer.from(text), SECRET_HASH_BYTES)
  const key = randomKey(random, RUN_KEY)
  const known = digest(key)
  return { key, isKey: (text) => isEqualDigest(Buffer.from(digest(text)), Buffer.from(known)) }
}

const UNSERVED: AttachedServer = {
  ownOrigins: [],
  addressFor: () => NO_SERVER,
  send: async () => {
    throw new CofferError('unavailable', 'This vault has no server for the requests of reactor code.')
  },
}

/** Requests of reactor code go to the server that was attached last. */
function createServing(app: () => App, prefix: () => string, base: App | undefined) {
  const attached: AttachedServer[] = []
  const attachedServer = () => attached.at(-1) ?? base?.attachedServer() ?? UNSERVED
  const ownServer: OwnServer = {
    prefix: () => prefix().toLowerCase(),
    ownOrigins: () => attachedServer().ownOrigins,
    addressFor: (host) => attachedServer().addressFor(host),
    send: (request, call) => attachedServer().send(app(), request, call),
  }
  const attachServer = (server: AttachedServer) => {
    attached.push(server)
    return () => void attached.splice(attached.indexOf(server), 1)
  }
  return { attachedServer, ownServer, attachServer }
}

type RuntimeOptions = ReactorOptions & { confinement?: Confinement }

/** The part of a vault that runs code and sends requests. Loads each module at its first use. */
function createRuntime(base?: App) {
  let options: RuntimeOptions = base?.runtimeOptions() ?? {}
  let pool: Promise<ReactorPool> | undefined
  let found: Promise<Confinement> | undefined
  let client: Promise<HttpOutbound> | undefined
  let ownLinker: Promise<Linker> | undefined
  // A fork uses the packages of its original vault.
  const linker = (): Promise<Linker> => {
    if (base !== undefined) return base.linker()
    ownLinker ??= import('../reactor/dependencies/start.js').then(({ createLinker }) => createLinker(options))
    return ownLinker
  }
  const ownPorts = base?.ownPorts ?? new Set<number>()
  const confine = async () => {
    const { confinement, modulesDirectory } = options
    found ??= confinement ? Promise.resolve(confinement) : harden(undefined, modulesDirectory)
    return found
  }
  const reactors: FindReactors = async (values) => {
    const settings = readPoolSettings(values, options)
    pool ??= confine().then(async (confinement) => {
      const { createReactorPool } = await import('../reactor/start.js')
      return createReactorPool({ ...options, settings, confinement, ownPorts })
    })
    const fitted = await pool
    fitted.configure(settings)
    return fitted
  }
  // Compiling needs no settings. `reactors({})` would reset the settings of an open pool.
  const compile = async (code: string) => (await (pool ?? reactors({}))).compile(code)
  return {
    compile,
    ownPorts,
    prefix: () => options.prefix ?? DEFAULT_SETTINGS.prefix,
    runtimeOptions: () => options,
    configureReactors: (more: RuntimeOptions): void => {
      options = { ...options, ...more }
    },
    reactors,
    linker,
    outbound: () =>
      (client ??= import('../reactor/outbound.js').then(
        ({ HttpOutbound }) => new HttpOutbound({ allowNet: [], ...options, ownPorts }),
      )),
    sandbox: async () => (await import('../reactor/confinement.js')).describeSandbox(await confine()),
    close: async () => {
      const opened = await ownLinker?.catch(() => undefined)
      opened?.close()
      await (await pool?.catch(() => undefined))?.close()
    },
    closeOutbound: async () => (await client)?.close(),
  }
}

async function answerRequest<Name extends string>(
  app: App,
  { input, as, explain, idempotencyKey, noReveal }: OperationRequest<Name>,
  definition: RegisteredOperation,
): Promise<Outcome<ResultOf<Name>>> {
  const isNoReveal = noReveal === true || settingOf((await app.store.read(readSettings)).values, 'no_reveal')
  if (isNoReveal && !('key' in as) && as.reveal) throw noRevealError('--reveal')
  if (explain !== undefined) {
    const whose = await findExplained(app, as, explain)
    const result = await explainOperation(app, whose, definition, input, isNoReveal)
    return { status: 200, result: result as ResultOf<Name> }
  }
  const known =
    'key' in as
      ? await authenticate(app, as.key)
      : await (definition.access.owner === 'vault' ? findVaultOwner(app, as) : app.owner(as))
  const caller = isNoReveal ? noRevealCaller(known) : known
  const origin = originOf(app.attachedServer())
  const outcome = await perform(app, caller, definition, input, app.createUuid(), { idempotencyKey, origin })
  return outcome as Outcome<ResultOf<Name>>
}

/** Returns the origin of a request without a socket, so that URLs in the answer contain the address of the server. */
function originOf(server: AttachedServer): RequestOrigin | undefined {
  const base = server.addressFor(undefined)
  return base === NO_SERVER ? undefined : { base, accept: undefined }
}

/** Returns the owner as a caller in the chosen tenant, or else in the oldest tenant, or else without a tenant. */
async function findVaultOwner(app: App, { reveal, tenant: chosen }: Parameters<App['owner']>[0]) {
  for (const tenant of new Set([chosen, undefined])) {
    try {
      return await app.owner({ reveal, tenant })
    } catch (error) {
      if (!(error instanceof CofferError) || error.code !== 'not_found') throw error
    }
  }
  const { owner_id } = await app.store.read(readSettings)
  return ownerCaller(NO_TENANT, owner_id, { reveal })
}

async function findExplained(
  app: App,
  as: OperationRequest['as'],
  { application }: NonNullable<OperationRequest['explain']>,
): Promise<Explained> {
  if ('key' in as) return as
  if (application === undefined) return { owner: await app.owner(as) }
  return { application, tenant: (await app.tenant(as.tenant)).number }
}

/** Imports the module at its first use, because most commands evaluate no expression. */
export async function loadExpressions(random: RandomSource): Promise<Expressions> {
  const { Expressions } = await import('../domain/expression/expression.js')
  return new Expressions(random, computeHmac)
}

/** Imports the module at its first use, because few requests are encrypted. */
async function loadClientEncryption(): Promise<ClientEncryption> {
  return (await import('../crypto/client-encryption.js')).clientEncryption
}

/** Opens the reactor runtime without a vault, with default settings. @throws CofferError `usage` */
export async function openReactors(options: ReactorOptions): Promise<ReactorRuntime> {
  const runtime = createRuntime()
  runtime.configureReactors(options)
  return runtime.reactors({})
}

export async function projectTools() {
  const { compileTypeScript, createLinker, findProjectOf } = await import('../reactor/dependencies/start.js')
  return { compileTypeScript, createLinker, findProjectOf }
}

/** Compiles code, but does not run it. Resolves to the reasons why the code does not compile. */
export async function compileCode(code: string): Promise<readonly CodeFault[]> {
  const runtime = createRuntime()
  try {
    return await runtime.compile(code)
  } finally {
    await runtime.close()
  }
}

/** @throws CofferError `usage` */
export async function openProject(directory: string) {
  return (await import('../reactor/dependencies/start.js')).openProject(directory)
}

export async function createFirstTenant(
  { store, random, createUuid, generateTenantKeys }: App,
  name: string,
): Promise<void> {
  const secretsKey = toBase64(random.bytes(KEY_BYTES))
  await store.write(async (writer) => {
    await createVaultRecords(writer, { secretsKey, ownerId: createUuid() })
    await createTenant(writer, { name, keys: generateTenantKeys(), createUuid })
  })
}

/**
 * Finds the confinement of reactors, and limits the core dumps of `host`. One child process does both, because each
 * start of a child blocks this process.
 */
export async function harden(host?: CoreOwner, modulesDirectory?: string): Promise<Found> {
  return (await import('../reactor/confinement.js')).confineThisNode(modulesDirectory, host)
}
