/** The barrier between the records of callers and the sealed rows of an engine. */
import { BoundedMap } from '../../bounded-map.js'
import type { VaultKeys } from '../../crypto/ports.js'
import type { TakenBatches } from '../../domain/records/log-record.js'
import type { Engine, EngineReader, EngineWriter } from '../engine.js'
import type { Store } from '../store.js'
import { isTaken } from '../taken-batches.js'
import { openEntries, sealEntries } from './log-block.js'
import { RecordCache, sumCounters } from './record-cache.js'
import { SealedReader, type SharedState } from './sealed-reader.js'
import { SealedWriter } from './sealed-writer.js'

const MAX_HEADS = 1024

/** Additional clocks of a vault under test: see {@link SharedState}. */
interface TestTimes {
  codeLag?: SharedState['codeLag']
  clockEnd?: SharedState['clockEnd'] | undefined
}

/** Closing the store closes the engine. */
export function createSealedStore(
  engine: Engine,
  keys: VaultKeys,
  { codeLag = () => 0, clockEnd = () => 0 }: TestTimes = {},
): Store {
  const heads: SharedState['heads'] = new BoundedMap(MAX_HEADS)
  const shared: SharedState = { keys, cache: new RecordCache(), heads, opened: 0, codeLag, clockEnd }
  const readerOf = (rows: EngineReader) => new SealedReader(rows, shared)
  const writerOf = (rows: EngineWriter) => new SealedWriter(rows, shared)
  /** The batches of log entries that the chains contain, read once for each unit of work and tenant. */
  const taken = new WeakMap<EngineReader, Map<number, Promise<TakenBatches[]>>>()
  const readTaken = (rows: EngineReader, tenant: number) => {
    const known = taken.get(rows) ?? new Map<number, Promise<TakenBatches[]>>()
    const reading =
      known.get(tenant) ??
      readerOf(rows)
        .readLog(tenant)
        .then((log) => log.readTaken())
    taken.set(rows, known.set(tenant, reading))
    return reading
  }
  engine.attach({
    seal: async (rows, entries, chain, batches = []) => {
      for (const tenant of new Set(entries.map((entry) => entry.tenant))) {
        const theirs = entries.filter((entry) => entry.tenant === tenant)
        const ids = batches.filter((batch) => batch.tenant === tenant).map(({ id }) => id)
        await writerOf(rows).putLog(tenant, theirs, chain, ids)
      }
    },
    sealerOf: async (rows, tenant) => {
      const found = await readerOf(rows).findKeys(tenant)
      return found && ((id, entries) => sealEntries(found, id, entries))
    },
    openPending: async (rows, { id, tenant }, sealed) => {
      const found = await readerOf(rows).findKeys(tenant)
      const entries = found && openEntries(found, tenant, id, sealed)
      if (entries === undefined) return undefined
      const isKnown = isTaken(await readTaken(rows, tenant), id)
      return isKnown === undefined ? undefined : isKnown ? [] : entries
    },
  })
  return {
    read: (work) => engine.read((rows) => work(readerOf(rows))),
    write: (work, durability) => engine.write((rows) => work(writerOf(rows)), durability),
    changeCounter: (kinds) => sumCounters(kinds, (kind) => engine.changeCounter?.(kind)),
    isShared: engine.cachedCounter !== undefined,
    cachedCounter: (kinds) => sumCounters(kinds, (kind) => engine.cachedCounter?.(kind)),
    verifyLogs: (tenant) => engine.read(async (rows) => (await readerOf(rows).readLog(tenant)).verify()),
    sealPending: async () => engine.sealPending?.(),
    checkReady: async () => {
      await engine.read((rows) => readerOf(rows).get('settings', 0, 'vault'))
      await engine.checkReady?.()
    },
    close: () => {
      shared.cache.clear()
      shared.heads.clear()
      return engine.close()
    },
  }
}
