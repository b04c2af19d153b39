/** Counts and sizes of a vault. Reads tables only where a tenant was dropped. */
import type { EngineStatus } from '../engine.js'
import type { Contents } from './contents.js'
import { markShadowed } from './flush.js'
import type { Memtable } from './memtable.js'
import type { LiveSSTable } from './sstable/live-sstable.js'

/** What a vault consists of at a moment, of what is safe. */
export interface LsmStatus extends EngineStatus {
  generation: number
}

/** @param memtables youngest first */
export function describeContents(
  { sstables, generation }: Contents,
  memtables: readonly Memtable[],
  walBytes: number,
): LsmStatus {
  const shape = { generation, sstables: sstables.length, walBytes, recordBytes: 0, logBytes: 0 }
  const status: LsmStatus = { ...shape, rows: { records: 0, logs: 0, dead: 0 } }
  memtables.forEach((memtable, depth) => {
    const above = memtables.slice(0, depth)
    for (const family of ['records', 'logs'] as const) {
      status.rows[family] += memtable
        .live(family)
        .filter((row) => !above.some((upper) => upper.isShadowed(family, row))).length
    }
  })
  for (const live of sstables) {
    const { family, bytes, rows } = live.sstable.meta
    status[family === 'records' ? 'recordBytes' : 'logBytes'] += bytes
    const dead = countDead(memtables.reduceRight(markShadowed, live))
    status.rows[family] += rows - dead
    status.rows.dead += dead
  }
  return status
}

function countDead({ sstable, dead, dropped }: LiveSSTable): number {
  if (dropped.size === 0) return dead.length
  let count = [...dropped].reduce((sum, tenant) => sum + (sstable.footer.tenants.get(tenant) ?? 0), 0)
  for (const row of dead) if (!dropped.has(sstable.entry(row).tenant)) count++
  return count
}
