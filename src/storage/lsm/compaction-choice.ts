/** Chooses what to compact: four tables of one size tier, or one with many dead rows. */
import { MAX_BYTES, MAX_ROWS } from './sstable/format.js'
import type { LiveSSTable } from './sstable/live-sstable.js'
import type { SSTableMeta } from './sstable/reader.js'

/** Upper bounds of the tiers, in bytes. */
const TIERS = [1, 4, 16, 64, 256].map((mebibytes) => mebibytes * 1024 * 1024)
const WIDTH = 4

/** The tables to compact, of at most `limit` bytes in all, lowest tier first; undefined when nothing is due. */
export function chooseInputs(sstables: readonly LiveSSTable[], limit: number): LiveSSTable[] | undefined {
  for (let tier = 0; tier < TIERS.length; tier++) {
    const peers = sstables.filter(({ sstable: { meta } }) => tierOf(meta.bytes) === tier)
    for (let first = 0; first + WIDTH <= peers.length; first++) {
      const chosen = peers.slice(first, first + WIDTH)
      if (isWithinBounds(chosen, limit)) return chosen
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
  const sum = (pick: (meta: SSTableMeta) => number) =>
    chosen.reduce((total, { sstable }) => total + pick(sstable.meta), 0)
  return sum(({ bytes }) => bytes) <= Math.min(limit, MAX_BYTES) && sum(({ rows }) => rows) <= MAX_ROWS
}

/** Dead rows, and those of dropped tenants; a row that is both counts twice, which only brings compaction forward. */
function countGone({ sstable, dead, dropped }: LiveSSTable): number {
  return [...dropped].reduce((sum, tenant) => sum + (sstable.footer.tenants.get(tenant) ?? 0), dead.length)
}
