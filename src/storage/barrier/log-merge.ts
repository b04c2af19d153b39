/**
 * A page of a log that has several chains: the newest record of all comes first, and those of each chain in its order.
 * Blocks are opened where records of several chains may be next to each other on the page, or where nothing else tells
 * how many of them match.
 */
import type { LogBlockRecord } from '../../domain/log-record.js'
import type { Awaitable } from '../engine.js'
import { type LogFilter, type LogPage, matchesIn, recordAt } from './log-block.js'

/** Records of one chain that follow each other. */
export interface Piece {
  /** Not later than any of its records, and not earlier, ms. */
  readonly from: number
  readonly to: number
  /** How many of its records match, where that is known. */
  readonly matching: number | undefined
  load(): Awaitable<LogBlockRecord>
}

export interface Source {
  /** The newest first. */
  readonly pieces: AsyncIterator<Piece>
  /** How many of all its records match, where that costs less than looking at all pieces. */
  readonly total?: () => Awaitable<number>
}

/** A source with the piece that is next. */
interface Stream {
  readonly source: Source
  /** No earlier than what is left of it: a clock that went back does not change the order within a chain. */
  low: number
  piece: Piece | undefined
  block: LogBlockRecord | undefined
  /** Of an opened piece: the numbers of its records that match and are left, the newest last. */
  left: number[]
  /** How many of its records were passed or taken. */
  seen: number
}

export async function mergePage(
  sources: readonly Source[],
  filter: LogFilter,
  { skip, size }: { skip: number; size: number },
): Promise<LogPage> {
  const page: LogPage = { records: [], total: 0 }
  const streams = sources.map(
    (source): Stream => ({ source, low: Infinity, piece: undefined, block: undefined, left: [], seen: 0 }),
  )
  for (const stream of streams) await advance(stream)
  let toSkip = skip
  for (;;) {
    const live = streams.filter(({ piece }) => piece !== undefined)
    if (live.length === 0 || page.records.length === size) break
    const unknown = live.find((stream) => countOf(stream) === undefined)
    if (unknown !== undefined) {
      await open(unknown, filter)
      continue
    }
    // All records that are no older than the latest beginning of a piece are in the pieces at hand.
    const latest = live.reduce((one, other) => (fromOf(other) > fromOf(one) ? other : one))
    if (live.reduce((sum, stream) => sum + countOf(stream)!, 0) <= toSkip) {
      toSkip -= countOf(latest)!
      await leave(latest)
      continue
    }
    const next = live.reduce((one, other) => (newestOf(other) > newestOf(one) ? other : one))
    if (next.block === undefined) await open(next, filter)
    else if (next.left.length === 0) await leave(next)
    else {
      next.low = newestOf(next)
      next.seen++
      const at = next.left.pop()!
      if (toSkip > 0) toSkip--
      else page.records.push(recordAt(next.block, at))
    }
  }
  for (const stream of streams) page.total += await totalOf(stream, filter)
  return page
}

async function advance(stream: Stream): Promise<void> {
  const { value, done } = await stream.source.pieces.next()
  Object.assign(stream, { piece: done ? undefined : value, block: undefined, left: [] })
}

/** Passes the piece at hand with all that is left of it. */
async function leave(stream: Stream): Promise<void> {
  stream.seen += countOf(stream) ?? 0
  stream.low = fromOf(stream)
  await advance(stream)
}

async function open(stream: Stream, filter: LogFilter): Promise<void> {
  stream.block = await stream.piece!.load()
  stream.left = matchesIn(stream.block, filter)
}

function countOf({ piece, block, left }: Stream): number | undefined {
  return block === undefined ? piece!.matching : left.length
}

function fromOf({ piece, low }: Stream): number {
  return Math.min(low, piece!.from)
}

/** The time of its newest record, or no earlier than that. */
function newestOf({ piece, block, left, low }: Stream): number {
  if (block === undefined) return Math.min(low, piece!.to)
  return left.length === 0 ? fromOf({ piece, low } as Stream) : Math.min(low, block.items[left.at(-1)!]![0])
}

async function totalOf(stream: Stream, filter: LogFilter): Promise<number> {
  if (stream.piece !== undefined && stream.source.total !== undefined) return stream.source.total()
  while (stream.piece !== undefined) {
    if (countOf(stream) === undefined) await open(stream, filter)
    await leave(stream)
  }
  return stream.seen
}
