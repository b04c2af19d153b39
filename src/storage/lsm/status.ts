/** Counts and sizes of a vault, for those who ask how it is. Pure, apart from reading a segment where rows are dead. */
import type { EngineStatus } from '../engine.js'
import type { Contents } from './contents.js'
import { buryUnder } from './flush.js'
import type { Overlay } from './memtable.js'
import type { LiveSegment } from './sstable/search.js'

/** What a vault consists of at a moment, of what is safe. */
export interface LedgerStatus extends EngineStatus {
  generation: number
}

/** Contract: overlays are youngest first. */
export function describeContents(
  { segments, generation }: Contents,
  overlays: readonly Overlay[],
  journalBytes: number,
): LedgerStatus {
  const shape = { generation, segments: segments.length, journalBytes, recordBytes: 0, logBytes: 0 }
  const status: LedgerStatus = { ...shape, rows: { records: 0, logs: 0, dead: 0 } }
  overlays.forEach((overlay, depth) => {
    const above = overlays.slice(0, depth)
    for (const family of ['records', 'logs'] as const) {
      status.rows[family] += overlay
        .live(family)
        .filter((row) => !above.some((upper) => upper.isOver(family, row))).length
    }
  })
  for (const live of segments) {
    const { family, bytes, rows } = live.segment.name
    status[family === 'records' ? 'recordBytes' : 'logBytes'] += bytes
    const dead = countDead(overlays.reduceRight(buryUnder, live))
    status.rows[family] += rows - dead
    status.rows.dead += dead
  }
  return status
}

function countDead({ segment, dead, dropped }: LiveSegment): number {
  if (dropped.size === 0) return dead.length
  let count = [...dropped].reduce((sum, tenant) => sum + (segment.footer.tenants.get(tenant) ?? 0), 0)
  for (const row of dead) if (!dropped.has(segment.entry(row).tenant)) count++
  return count
}
