/**
 * Makes stores for tests of the log. No operation creates the tenants of these stores, and
 * the tests append the log records.
 */
import { createKeyring, type Keyring } from '../../src/crypto/keyring.js'
import { nativePrimitives } from '../../src/crypto/native.js'
import { createRandom } from '../../src/crypto/random.js'
import { formatDate } from '../../src/domain/dates.js'
import type { LogRecord, TenantRecord } from '../../src/domain/records/records.js'
import { createSealedStore } from '../../src/storage/barrier/sealed-store.js'
import type { Engine } from '../../src/storage/engine.js'
import { createFileEngine, type FileEngine, openFileEngine } from '../../src/storage/engines/file-engine.js'
import { MemoryEngine } from '../../src/storage/engines/memory-engine.js'
import type { Store } from '../../src/storage/store.js'
import { sealAtOnce } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock, testHeader } from './powers.js'

export const TENANT_ID = '7f2c3f9e-0000-4000-8000-000000000001'

export interface LogVault {
  store: Store
  engine: Engine
  keyring: Keyring
  clock: ReturnType<typeof createClock>
  /** The sealed keys of tenant 1. */
  keys: TenantRecord['keys']
}

export function newTenant(keyring: Keyring, number: number): TenantRecord {
  const shape = { owner_id: 'owner', settings: {}, created_at: formatDate(0), keys: keyring.generateTenant() }
  return { ...shape, number, id: `tenant-${number}`, name: `tenant ${number}` }
}

async function fill(engine: Engine, keyring: Keyring, tenants: number) {
  const store = createSealedStore(engine, keyring)
  const records = Array.from({ length: tenants }, (_, index) => newTenant(keyring, index + 1))
  await store.write(async (writer) => {
    for (const record of records) await writer.insert('tenant', 0, record)
  })
  return { store, keys: records[0]!.keys }
}

export const newKeyring = () => createKeyring(nativePrimitives, createRandom(), new Uint8Array(32).fill(7))

export async function openInMemory(tenants = 1, change?: (engine: MemoryEngine) => void): Promise<LogVault> {
  const keyring = newKeyring()
  const clock = createClock(Date.UTC(2030, 0, 1))
  const engine = sealAtOnce(new MemoryEngine(clock))
  change?.(engine)
  return { engine, keyring, clock, ...(await fill(engine, keyring, tenants)) }
}

/** Opens a store on an in-memory disk. The function `reopen` closes the store and opens its files again. */
export async function openOnDisk(tenants = 1) {
  const keyring = newKeyring()
  const clock = createClock(Date.UTC(2030, 0, 1))
  const files = new FakeFiles()
  const shape = { directory: '/vault', header: testHeader(), random: createRandom(), notice: () => undefined }
  const options = { ...shape, files, clock, keys: keyring.engine, role: 'command' as const }
  const engine: FileEngine = await createFileEngine(options)
  const vault = { engine, keyring, clock, files, ...(await fill(engine, keyring, tenants)) }
  const reopen = async () => {
    await vault.store.close()
    vault.engine = await openFileEngine(options)
    vault.store = createSealedStore(vault.engine, keyring)
  }
  return Object.assign(vault, { reopen })
}

const LOG_ID = '5a4b1c6e-9d0f-4e0a-8b57-0c9f6f4d2a11'

export function logRecord(entity_id: string, time: number, more: Partial<LogRecord> = {}): LogRecord {
  return {
    id: LOG_ID,
    tenant_id: TENANT_ID,
    actor_id: 'somebody',
    actor_type: 'user',
    entity_type: 'token',
    entity_id,
    operation: 'read',
    message: 'Token retrieved',
    created_at: formatDate(time),
    trace_id: 'a trace',
    ...more,
  }
}

export function append(
  { store }: Pick<LogVault, 'store'>,
  records: readonly LogRecord[],
  { tenant = 1, durability = 'now' as 'now' | 'soon' } = {},
): Promise<void> {
  return store.write(async (writer) => {
    for (const record of records) await writer.log(tenant, record, Date.parse(record.created_at))
  }, durability)
}
