/** Which segments should be one: by tiers of size, and where much is dead. Reads at most their footers. */

import { MAX_BYTES, MAX_ROWS } from './sstable/format.js'
import type { SSTableMeta } from './sstable/reader.js'
import type { LiveSSTable } from './sstable/search.js'

/** Bounds of the tiers: segments of one tier are merged four at a time. */
const TIERS = [1, 4, 16, 64, 256].map((mebibytes) => mebibytes * 1024 * 1024)
const WIDTH = 4
/** What is due to be merged, of at most `limit` bytes in all, or undefined when nothing is. Lowest tier first. */
export function chooseCompaction(sstables: readonly LiveSSTable[], limit: number): LiveSSTable[] | undefined {
  for (let tier = 0; tier < TIERS.length; tier++) {
    for (const family of ['records', 'logs'] as const) {
      const peers = sstables.filter(
        ({ sstable: { meta: name } }) => name.family === family && tierOf(name.bytes) === tier,
      )
      for (let first = 0; first + WIDTH <= peers.length; first++) {
        const chosen = peers.slice(first, first + WIDTH)
        if (isWithinBounds(chosen, limit)) return chosen
      }
    }
  }
  const worn = sstables.find(
    (live) => live.sstable.meta.bytes <= limit && countGone(live) * 4 >= live.sstable.meta.rows,
  )
  return worn === undefined ? undefined : [worn]
}

function tierOf(bytes: number): number {
  const tier = TIERS.findIndex((bound) => bytes <= bound)
  return tier < 0 ? TIERS.length : tier
}

function isWithinBounds(chosen: readonly LiveSSTable[], limit: number): boolean {
  const sum = (pick: (name: SSTableMeta) => number) =>
    chosen.reduce((total, { sstable }) => total + pick(sstable.meta), 0)
  const bytes = sum((name) => name.bytes)
  return bytes <= Math.min(limit, MAX_BYTES) && sum((name) => name.rows) <= MAX_ROWS
}

/** Rows that are dead, or of a dropped tenant; those that are both count twice, which only hastens the rewriting. */
function countGone({ sstable, dead, dropped }: LiveSSTable): number {
  if (dropped.size === 0) return dead.length
  return [...dropped].reduce((sum, tenant) => sum + (sstable.footer.tenants.get(tenant) ?? 0), dead.length)
}
