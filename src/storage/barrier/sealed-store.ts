/**
 * The barrier between records and rows: above it records, below it sealed bytes and keyed digests. It seals every
 * record under its tenant's keys and never learns where rows are kept.
 */
import type { VaultKeys } from '../../crypto/ports.js'
import { KINDS } from '../../domain/records.js'
import type { Engine, EngineReader } from '../engine.js'
import type { Store } from '../store.js'
import { RecordCache } from './record-cache.js'
import { type Caches, type OpenedBytes, SealedReader } from './sealed-reader.js'
import { SealedWriter } from './sealed-writer.js'
import { digestAll, unseal } from './sealing.js'
import { createTenantCache } from './tenant-cache.js'

/** A store over `engine`. Closing it closes the engine. */
export function createSealedStore(engine: Engine, keys: VaultKeys): Store {
  const createCaches = (): Caches => ({ records: new RecordCache(), tenants: createTenantCache(keys) })
  // Without change counters nothing is known to be current in the next unit of work, so each has caches of its own.
  const shared = engine.changeCounter === undefined ? undefined : createCaches()
  const opened: OpenedBytes = { count: 0 }
  const createReader = (rows: EngineReader) => new SealedReader(rows, shared ?? createCaches(), opened)
  return {
    read: (work) => engine.read((rows) => work(createReader(rows))),
    write: (work, durability) =>
      engine.write((rows) => work(new SealedWriter(rows, shared ?? createCaches(), opened)), durability),
    changeCounter: (kinds) =>
      engine.changeCounter && kinds.reduce((sum, kind) => sum + engine.changeCounter!(KINDS[kind]), 0),
    verifyLogs: async (tenant) => {
      const tenantKeys = await engine.read((rows) => createReader(rows).keysOf(tenant))
      const query = { kind: KINDS.log, tenant, all: digestAll(tenantKeys, 'log') }
      return engine.verifyLogs(query, (row) => unseal(tenantKeys, row) !== undefined)
    },
    close: () => {
      shared?.records.clear()
      return engine.close()
    },
  }
}
