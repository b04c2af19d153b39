/** Counts and sizes of a vault. Reads tables only if a tenant was dropped. */
import { toText } from '../bytes.js'
import type { EngineStatus, Row } from '../engine.js'
import type { Contents } from './contents.js'
import { markShadowed } from './flush.js'
import type { Memtable } from './memtable.js'
import type { LiveSSTable } from './sstable/live-sstable.js'

/** @param memtables youngest first */
export function describeContents(
  { sstables }: Contents,
  memtables: readonly Memtable[],
  walBytes: number,
): EngineStatus {
  const rows = { records: 0, dead: 0 }
  const status: EngineStatus = { sstables: sstables.length, walBytes, sstableBytes: 0, rows }
  memtables.forEach((memtable, depth) => {
    const above = memtables.slice(0, depth)
    const isHidden = ({ tenant, id }: Row) => above.some((upper) => upper.hides(tenant, toText(id)))
    for (const row of memtable.each()) if (!isHidden(row)) status.rows.records++
  })
  for (const live of sstables) {
    const { bytes, rows } = live.sstable.meta
    status.sstableBytes += bytes
    const dead = countDead(memtables.reduceRight(markShadowed, live))
    status.rows.records += rows - dead
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
