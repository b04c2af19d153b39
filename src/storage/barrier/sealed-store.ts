/**
 * The barrier between records and rows: above it records, below it sealed bytes and keyed digests. It seals every
 * record under its tenant's keys and never learns where rows are kept.
 */
import type { VaultKeys } from '../../crypto/ports.js'
import { isTaken, type TakenBatches } from '../../domain/records/taken-batches.js'
import type { Engine, EngineReader, EngineWriter } from '../engine.js'
import type { Store } from '../store.js'
import { ChainCache } from './log-chain.js'
import { openEntries, sealEntries } from './pending-entries.js'
import { RecordCache } from './record-cache.js'
import { type Caches, type OpenedBytes, SealedReader, sumCounters } from './sealed-reader.js'
import { SealedWriter } from './sealed-writer.js'
import { createTenantCache } from './tenant-cache.js'

/** A store over `engine`. Closing it closes the engine. */
export function createSealedStore(engine: Engine, keys: VaultKeys): Store {
  const createCaches = (): Caches => ({ records: new RecordCache(), tenants: createTenantCache(keys) })
  const shared = createCaches()
  // Without change counters nothing is known to be current in the next unit of work, so each has caches of its own.
  const cachesFor = (rows: EngineReader) => (rows.changeCounter === undefined ? createCaches() : shared)
  const opened: OpenedBytes = { count: 0 }
  const chains = new ChainCache()
  const createReader = (rows: EngineReader) => new SealedReader(rows, cachesFor(rows), opened, chains)
  const createWriter = (rows: EngineWriter) => new SealedWriter(rows, cachesFor(rows), opened, chains)
  /** What chains have taken, by unit of work and tenant. */
  const taken = new WeakMap<EngineReader, Map<number, Promise<TakenBatches[]>>>()
  const readTaken = (rows: EngineReader, tenant: number) => {
    const known = taken.get(rows) ?? new Map<number, Promise<TakenBatches[]>>()
    taken.set(rows, known)
    const reading = known.get(tenant) ?? createReader(rows).readTaken(tenant)
    known.set(tenant, reading)
    return reading
  }
  engine.attach({
    seal: async (rows, entries, chain, batches = []) => {
      const writer = createWriter(rows)
      for (const tenant of new Set(entries.map((entry) => entry.tenant))) {
        const theirs = entries.filter((entry) => entry.tenant === tenant)
        const ids = batches.filter((batch) => batch.tenant === tenant).map(({ id }) => id)
        await writer.putLog(tenant, theirs, chain, ids)
      }
    },
    sealPending: async (reader, { id, tenant }, entries) => {
      const keys = await createReader(reader).findKeys(tenant)
      return keys && sealEntries(keys, id, entries)
    },
    openPending: async (reader, { id, tenant }, sealed) => {
      const keys = await createReader(reader).findKeys(tenant)
      const entries = keys && openEntries(keys, tenant, id, sealed)
      if (entries === undefined) return undefined
      const isKnown = isTaken(await readTaken(reader, tenant), id)
      return isKnown === undefined ? undefined : isKnown ? [] : entries
    },
  })
  return {
    read: (work) => engine.read((rows) => work(createReader(rows))),
    write: (work, durability) => engine.write((rows) => work(createWriter(rows)), durability),
    changeCounter: (kinds) => sumCounters(kinds, engine.changeCounter?.bind(engine)),
    isShared: engine.believedCounter !== undefined,
    believedCounter: (kinds) => sumCounters(kinds, engine.believedCounter?.bind(engine)),
    verifyLogs: (tenant) => engine.read(async (rows) => (await createReader(rows).readLog(tenant)).verify()),
    checkReady: async () => {
      await engine.read((rows) => createReader(rows).get('settings', 0, 'vault'))
      await engine.checkReady?.()
    },
    close: () => {
      shared.records.clear()
      chains.clear()
      return engine.close()
    },
  }
}
