/** Chooses what to compact: four tables of one size, the smallest of too many tables, or one with many dead rows. */
import { MAX_BYTES, MAX_ROWS } from '../sstable/format.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'

/** Upper bounds of the tiers, in bytes. */
const TIERS = [1, 4, 16, 64, 256].map((mebibytes) => mebibytes * 1024 * 1024)
const WIDTH = 4
/** With more tables than this the smallest are merged, whatever their tiers. */
const MANY_TABLES = 32
/** Tables that are merged at once because there are many. */
const MANY_WIDTH = 16

/** The tables to compact, of at most `limit` bytes in all, lowest tier first; undefined when nothing is due. */
export function chooseInputs(sstables: readonly LiveSSTable[], limit: number): LiveSSTable[] | undefined {
  const bySize = [...sstables].sort((left, right) => left.sstable.meta.bytes - right.sstable.meta.bytes)
  if (sstables.length > MANY_TABLES) {
    const smallest = takeFitting(bySize, MANY_WIDTH, limit)
    if (smallest.length > 1) return smallest
  }
  for (let tier = 0; tier < TIERS.length; tier++) {
    const peers = bySize.filter(({ sstable: { meta } }) => tierOf(meta.bytes) === tier)
    const chosen = takeFitting(peers, WIDTH, limit)
    if (chosen.length === WIDTH) return chosen
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

/** The first tables that fit into one table together, at most `width`; others are passed over. */
function takeFitting(sstables: readonly LiveSSTable[], width: number, limit: number): LiveSSTable[] {
  const taken: LiveSSTable[] = []
  let bytes = 0
  let rows = 0
  for (const live of sstables) {
    const { meta } = live.sstable
    if (bytes + meta.bytes > Math.min(limit, MAX_BYTES) || rows + meta.rows > MAX_ROWS) continue
    bytes += meta.bytes
    rows += meta.rows
    if (taken.push(live) === width) break
  }
  return taken
}

/** Dead rows, and those of dropped tenants; a row that is both counts twice, which only brings compaction forward. */
function countGone({ sstable, dead, dropped }: LiveSSTable): number {
  return [...dropped].reduce((sum, tenant) => sum + (sstable.footer.tenants.get(tenant) ?? 0), dead.length)
}
