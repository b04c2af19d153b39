/**
 * Operations that need exclusive access to a vault: verifying one that does not open, restoring, salvaging, changing
 * every key; and telling which process has one open.
 */
import { createSlot, parseSlots, type SealedHeader, sealHeader } from '../crypto/key-slot.js'
import { createKeyring, type Keyring } from '../crypto/keyring.js'
import { deriveKey } from '../crypto/mac.js'
import type { Primitives } from '../crypto/primitives.js'
import { createUuid } from '../crypto/random.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { formatDate } from '../domain/dates.js'
import { Budget, sizeOf } from '../domain/expression/budget.js'
import type { TenantKeyBytes, TenantRecord, TokenRecord } from '../domain/records.js'
import { renderSearchIndexes } from '../domain/token/token-rendering.js'
import { CofferError } from '../errors.js'
import type {
  Holder,
  NewSlot,
  OfflineVault,
  SalvageReport,
  VaultFacts,
  Verification,
} from '../framework/vault-port.js'
import { createReseal, createRowCheck } from '../storage/barrier/reseal.js'
import { createSealedStore } from '../storage/barrier/sealed-store.js'
import { openRecord } from '../storage/barrier/sealing.js'
import { openFileEngine } from '../storage/file-engine.js'
import { readLockHolder } from '../storage/lock.js'
import { readRekey, rekeyVault } from '../storage/lsm/rekey.js'
import { repairRecords } from '../storage/lsm/repair.js'
import { readBackupHeader, restoreBackup } from '../storage/lsm/restore.js'
import { salvageRows } from '../storage/lsm/salvage.js'
import { verifyVault } from '../storage/lsm/verify.js'
import { eachRecord } from '../storage/pages.js'
import { readProcessIdentity } from '../storage/process-identity.js'
import { beginVault, type Header, readHeader, writeHeader } from '../storage/vault-file.js'
import { changeKeySlots } from './key-slots.js'
import { completeEffects, type Effects, owning, reachVault, type VaultLocation } from './open.js'
import {
  type ChooseOpener,
  choosePrimitives,
  describeLocked,
  type NewOpener,
  openKeyring,
  toSecret,
} from './unlock.js'

const CACHE_BYTES = 4 * 1024 * 1024

/** What an offline vault needs of the run: where it is, what opens it, and whom to tell how far work has come. */
export interface OfflinePowers {
  /** The vault that is there. @throws CofferError `vault_missing` */
  find(): VaultLocation
  /** Where a new one is made. */
  findNew(): VaultLocation
  /** The tenant whose log says what was changed, by name or id; undefined for the first. */
  tenant(): Promise<string | undefined>
  choose: ChooseOpener
  /** What shall open a new key slot. */
  createOpener(slot: NewSlot): Promise<NewOpener>
  progress(done: number, total: number): void
}

/** The vault of a run for operations that need exclusive access to it, or that make another one. */
export function createOfflineVault(powers: OfflinePowers): OfflineVault {
  const { find, findNew, tenant, choose, createOpener, progress } = powers
  return {
    holder: () => readHolder(find()),
    verify: () => verifyAtRest(find(), choose),
    restore: async (file) => {
      const location = findNew()
      await restoreVault(location, file, choose)
      return { directory: location.directory, restored_from: file }
    },
    salvage: async (source) => {
      const location = findNew()
      const report = await salvageVault(location, source, choose)
      return { directory: location.directory, salvaged_from: source, ...report }
    },
    rekey: async () => {
      const location = find()
      let resealed = 0
      const { dropped } = await rekey(location, choose, (done, total) => {
        resealed = done
        progress(done, total)
      })
      return { directory: location.directory, resealed, dropped }
    },
    listSlots: async () => {
      const vault = await reachVault(find(), choose)
      try {
        const { result } = await vault.ask({ operation: 'vault status', input: {}, as: { reveal: false } })
        return (result as VaultFacts).key_slots
      } finally {
        await vault.close()
      }
    },
    changeSlots: async (added, chooseSlots) => {
      const location = find()
      const opener = added === undefined ? undefined : await createOpener(added)
      return changeKeySlots(location, choose, { added: opener, choose: chooseSlots, tenant: await tenant() })
    },
  }
}

/** undefined when nobody has it. Reads nothing but the lock. */
function readHolder(location: VaultLocation): Holder | undefined {
  const { files, directory, pid } = completeEffects(location)
  const held = readLockHolder(files, directory, readProcessIdentity(pid))
  if (held === undefined) return undefined
  const { holder: owner, state: life } = held
  return { pid: owner.pid, host: owner.host, since: formatDate(owner.since), state: life }
}

/**
 * Verifies a vault without opening it, so that one which is too damaged for that can still say what is readable.
 * @throws CofferError when not even its header opens.
 */
async function verifyAtRest(location: VaultLocation, choose: ChooseOpener): Promise<Verification> {
  const effects = completeEffects(location)
  const secret = toSecret(await choose(await readLocked(effects)))
  return owningMeanwhile(effects, async () => {
    const { header, keyring } = await openKeyring(effects, await choosePrimitives(effects.role), secret)
    const { learn, check } = createRowCheck(keyring)
    const options = lsmOptions(effects, header, keyring)
    await finish(verifyVault(options, learn))
    return finish(verifyVault(options, check))
  })
}

async function finish<T>(steps: AsyncGenerator<unknown, T>): Promise<T> {
  let step = await steps.next()
  while (!step.done) step = await steps.next()
  return step.value
}

/** Makes a vault in `location.directory`, where there is none, of the backup in `file`. */
export async function restoreVault(
  location: VaultLocation,
  file: string,
  choose: ChooseOpener,
): Promise<void> {
  const effects = completeEffects(location)
  const { files, random, directory } = effects
  const header = readBackupHeader(files, file)
  const secret = toSecret(await choose(describeLocked(header)))
  const primitives = await choosePrimitives(effects.role)
  const { keyring } = await openKeyring(effects, primitives, secret, header)
  await restoreBackup({ files, keys: keyring.engine, random }, file, directory)
  keyring.wipe()
}

/**
 * Makes a vault in `location.directory`, where there is none, of what can be read of the damaged one in `source`, which stays as it
 * is. It opens with what opens that one.
 * @throws CofferError `conflict`, and `vault_damaged` when not even the header of `source` opens
 */
export async function salvageVault(
  location: VaultLocation,
  source: string,
  choose: ChooseOpener,
): Promise<SalvageReport> {
  const target = completeEffects(location)
  const effects = { ...target, directory: source }
  const { files, random, directory } = target
  const secret = toSecret(await choose(await readLocked(effects)))
  beginVault(files, directory)
  return owningMeanwhile(effects, async () => {
    const primitives = await choosePrimitives(effects.role)
    const { header, keyring } = await openKeyring(effects, primitives, secret)
    const tenants = new Map<number, { present: TenantKeyBytes; next: TenantKeyBytes }>()
    const powers = { present: keyring, next: keyring, tenants, renderSearch: createSearchRenderer(effects) }
    let reseal: ReturnType<typeof createReseal> | undefined
    const { missingLogs, ...report } = await salvageRows({
      present: lsmOptions(effects, header, keyring),
      target: lsmOptions(target, header, keyring),
      learn: (row) => {
        const { number, keys } = openRecord(keyring.vault, row) as TenantRecord
        tenants.set(number, { present: keys, next: keys })
      },
      reseal: (row) => {
        reseal ??= createReseal(powers)
        return reseal(row)
      },
    })
    await writeHeader(files, directory, random, header)
    const store = createSealedStore(
      await openFileEngine({ ...target, header, keys: keyring.engine }),
      keyring,
    )
    try {
      const secretsKey = Buffer.from(random.bytes(KEY_BYTES)).toString('base64')
      const repairs = await repairRecords(store, missingLogs, {
        secretsKey,
        createUuid: () => createUuid(random),
      })
      return { ...report, ...repairs }
    } finally {
      await store.close()
    }
  })
}

export interface RekeyReport {
  /** Slots that could not be taken along, because only their own secret makes one of them. */
  dropped: { id: string; kind: string }[]
}

/**
 * Changes every key of the vault: root, tenants', the engine's. Fingerprints stay, for callers keep them. Killed at any
 * moment, the vault opens with what opened it before, and calling again goes on.
 */
export async function rekey(
  location: VaultLocation,
  choose: ChooseOpener,
  progress: (done: number, total: number) => void,
): Promise<RekeyReport> {
  const effects = completeEffects(location)
  const { random, role, clock } = effects
  const secret = toSecret(await choose(await readLocked(effects)))
  return owningMeanwhile(effects, async () => {
    const primitives = await choosePrimitives(role)
    const { header, keyring, slot } = await openKeyring(effects, primitives, secret)
    const present = lsmOptions(effects, header, keyring)
    const unfinished = await readRekey(present)
    const seed = unfinished?.secret ?? random.bytes(KEY_BYTES)
    const root = deriveKey(primitives, seed, 'rekey/root')
    const nextKeyring = createKeyring(primitives, random, root)
    const nextHeader =
      unfinished?.header ??
      (sealHeader(
        primitives,
        {
          ...(header as SealedHeader),
          slots: [await createSlot({ primitives, random }, { root, secret, created: formatDate(clock()) })],
        },
        root,
      ) as SealedHeader & Header)
    primitives.wipe(root)
    const reseal = createReseal({
      present: keyring,
      next: nextKeyring,
      tenants: await readTenantKeys(effects, header, keyring, (number, keys) =>
        nextKeys(primitives, seed, number, keys),
      ),
      renderSearch: createSearchRenderer(effects),
    })
    await rekeyVault({
      present,
      header: nextHeader,
      keys: nextKeyring.engine,
      secret: seed,
      reseal,
      progress,
    })
    const dropped = parseSlots(header.slots).filter(({ id }) => id !== slot.id)
    return { dropped: dropped.map(({ id, kind }) => ({ id, kind })) }
  })
}

/** Keeps the vault to itself for as long as `work` lasts. */
async function owningMeanwhile<T>(effects: Effects, work: () => Promise<T>): Promise<T> {
  return owning(effects, async (lock) => {
    const result = await work()
    lock.release()
    return result
  })
}

async function readLocked({ files, directory }: Effects) {
  return describeLocked(await readHeader(files, directory))
}

function lsmOptions(effects: Effects, header: Header, keyring: Keyring) {
  return { ...effects, header, keys: keyring.engine, cacheBytes: CACHE_BYTES }
}

/** Derived from the seed of this change, so that going on after a kill gives the same ones. */
function nextKeys(
  primitives: Primitives,
  seed: Uint8Array,
  tenant: number,
  present: TenantKeyBytes,
): TenantKeyBytes {
  const derive = (purpose: string) =>
    Buffer.from(deriveKey(primitives, seed, `rekey/${tenant}/${purpose}`)).toString('base64')
  return { data: derive('data'), index: derive('index'), fingerprint: present.fingerprint }
}

async function readTenantKeys(
  effects: Effects,
  header: Header,
  keyring: Keyring,
  next: (tenant: number, present: TenantKeyBytes) => TenantKeyBytes,
): Promise<Map<number, { present: TenantKeyBytes; next: TenantKeyBytes }>> {
  const engine = await openFileEngine({ ...effects, header, keys: keyring.engine })
  const store = createSealedStore(engine, keyring)
  try {
    const tenants = new Map<number, { present: TenantKeyBytes; next: TenantKeyBytes }>()
    for await (const { number, keys } of eachRecord(store, 'tenant', 0))
      tenants.set(number, { present: keys, next: next(number, keys) })
    return tenants
  } finally {
    await store.close()
  }
}

/** Search index values are kept as digests alone; their expressions are in the token. */
function createSearchRenderer({ random }: Effects): (token: TokenRecord) => Promise<string[]> {
  let expressions: Promise<import('../domain/expression/expression.js').Expressions> | undefined
  return async ({ data, search_indexes }) => {
    if (search_indexes === undefined || search_indexes.length === 0) return []
    expressions ??= import('../domain/expression/expression.js').then(({ createExpressions }) =>
      createExpressions(random),
    )
    const errors = {}
    const scope = { data }
    const values = await renderSearchIndexes(
      { expressions: await expressions, errors, scope, budget: new Budget(sizeOf(data)) },
      search_indexes,
    )
    if (Object.keys(errors).length === 0) return values
    throw new CofferError('internal', 'A search index of a token renders no more.')
  }
}
