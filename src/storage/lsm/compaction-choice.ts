/** Which segments should be one: by tiers of size, and where much is dead. Reads at most their footers. */

import { MAX_BYTES, MAX_ROWS } from './sstable/format.js'
import type { SegmentName } from './sstable/reader.js'
import type { LiveSegment } from './sstable/search.js'

/** Bounds of the tiers: segments of one tier are merged four at a time. */
const TIERS = [1, 4, 16, 64, 256].map((mebibytes) => mebibytes * 1024 * 1024)
const WIDTH = 4
/** What is due to be merged, of at most `limit` bytes in all, or undefined when nothing is. Lowest tier first. */
export function chooseMerge(segments: readonly LiveSegment[], limit: number): LiveSegment[] | undefined {
  for (let tier = 0; tier < TIERS.length; tier++) {
    for (const family of ['records', 'logs'] as const) {
      const peers = segments.filter(
        ({ segment: { name } }) => name.family === family && tierOf(name.bytes) === tier,
      )
      for (let first = 0; first + WIDTH <= peers.length; first++) {
        const chosen = peers.slice(first, first + WIDTH)
        if (isWithinBounds(chosen, limit)) return chosen
      }
    }
  }
  const worn = segments.find(
    (live) => live.segment.name.bytes <= limit && countGone(live) * 4 >= live.segment.name.rows,
  )
  return worn === undefined ? undefined : [worn]
}

function tierOf(bytes: number): number {
  const tier = TIERS.findIndex((bound) => bytes <= bound)
  return tier < 0 ? TIERS.length : tier
}

function isWithinBounds(chosen: readonly LiveSegment[], limit: number): boolean {
  const sum = (pick: (name: SegmentName) => number) =>
    chosen.reduce((total, { segment }) => total + pick(segment.name), 0)
  const bytes = sum((name) => name.bytes)
  return bytes <= Math.min(limit, MAX_BYTES) && sum((name) => name.rows) <= MAX_ROWS
}

/** Rows that are dead, or of a dropped tenant; those that are both count twice, which only hastens the rewriting. */
function countGone({ segment, dead, dropped }: LiveSegment): number {
  if (dropped.size === 0) return dead.length
  return [...dropped].reduce((sum, tenant) => sum + (segment.footer.tenants.get(tenant) ?? 0), dead.length)
}
