/** The barrier between records and sealed rows. It never learns where rows are kept. */
import { BoundedMap } from '../../bounded-map.js'
import type { VaultKeys } from '../../crypto/ports.js'
import type { TakenBatches } from '../../domain/records/log-record.js'
import type { Engine, EngineReader } from '../engine.js'
import type { Store } from '../store.js'
import { isTaken } from '../taken-batches.js'
import { openEntries, sealEntries } from './log-block.js'
import { RecordCache, sumCounters } from './record-cache.js'
import { SealedUnit, type SharedState } from './sealed-unit.js'

const MAX_HEADS = 1024

/** A store over `engine`. Closing it closes the engine. `codeLag`: of {@link StoreReader.codeTime} behind the wall clock, in ms. */
export function createSealedStore(engine: Engine, keys: VaultKeys, codeLag = () => 0): Store {
  const heads: SharedState['heads'] = new BoundedMap(MAX_HEADS)
  const shared: SharedState = { keys, cache: new RecordCache(), heads, opened: 0, codeLag }
  const unitOf = (rows: EngineReader) => new SealedUnit(rows, shared)
  /** The batches that chains have taken, by unit of work and tenant. */
  const taken = new WeakMap<EngineReader, Map<number, Promise<TakenBatches[]>>>()
  const readTaken = (rows: EngineReader, tenant: number) => {
    const known = taken.get(rows) ?? new Map<number, Promise<TakenBatches[]>>()
    const reading =
      known.get(tenant) ??
      unitOf(rows)
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
        await unitOf(rows).putLog(tenant, theirs, chain, ids)
      }
    },
    sealerOf: async (rows, tenant) => {
      const found = await unitOf(rows).findKeys(tenant)
      return found && ((id, entries) => sealEntries(found, id, entries))
    },
    openPending: async (rows, { id, tenant }, sealed) => {
      const found = await unitOf(rows).findKeys(tenant)
      const entries = found && openEntries(found, tenant, id, sealed)
      if (entries === undefined) return undefined
      const isKnown = isTaken(await readTaken(rows, tenant), id)
      return isKnown === undefined ? undefined : isKnown ? [] : entries
    },
  })
  return {
    read: (work) => engine.read((rows) => work(unitOf(rows))),
    write: (work, durability) => engine.write((rows) => work(unitOf(rows)), durability),
    changeCounter: (kinds) => sumCounters(kinds, (kind) => engine.changeCounter?.(kind)),
    isShared: engine.cachedCounter !== undefined,
    cachedCounter: (kinds) => sumCounters(kinds, (kind) => engine.cachedCounter?.(kind)),
    verifyLogs: (tenant) => engine.read(async (rows) => (await unitOf(rows).readLog(tenant)).verify()),
    checkReady: async () => {
      await engine.read((rows) => unitOf(rows).get('settings', 0, 'vault'))
      await engine.checkReady?.()
    },
    close: () => {
      shared.cache.clear()
      shared.heads.clear()
      return engine.close()
    },
  }
}
