/** Batches that a chain has taken. Their ids: maker (5 bytes), its number for the tenant (5), ms (6). */

const MAKER_BYTES = 5
const NUMBER_BYTES = 5
const TIME_BYTES = 6
/** A chain remembers the makers of the newest batches. A maker is forgotten long after its batches are in a log. */
const MAX_MAKERS = 256
/** Ranges of taken numbers of one maker. */
const MAX_RANGES = 64

type Range = [from: number, to: number]

interface MakerBatches {
  /** The time of the newest batch. */
  at: number
  /** Ascending. */
  ranges: Range[]
  /** It is no longer known which lower numbers were taken. */
  from?: number
}

/** `until`: the time of the newest batch of a forgotten maker. */
export interface TakenBatches {
  until: number
  by: Record<string, MakerBatches>
}

export function batchKey(maker: Uint8Array, number: number, at: number): Uint8Array {
  const id = Buffer.alloc(MAKER_BYTES + NUMBER_BYTES + TIME_BYTES)
  id.set(maker.subarray(0, MAKER_BYTES))
  id.writeUIntBE(number, MAKER_BYTES, NUMBER_BYTES)
  id.writeUIntBE(at, MAKER_BYTES + NUMBER_BYTES, TIME_BYTES)
  return new Uint8Array(id)
}

function parseBatchKey(id: Uint8Array) {
  const bytes = Buffer.from(id)
  return {
    maker: bytes.toString('hex', 0, MAKER_BYTES),
    number: bytes.readUIntBE(MAKER_BYTES, NUMBER_BYTES),
    at: bytes.readUIntBE(MAKER_BYTES + NUMBER_BYTES, TIME_BYTES),
  }
}

/** Whether one of the chains has taken the batch; undefined if a chain no longer knows. */
export function isTaken(chains: readonly TakenBatches[], id: Uint8Array): boolean | undefined {
  const { maker, number, at } = parseBatchKey(id)
  const has = ({ by }: TakenBatches) => by[maker]?.ranges.some(([from, to]) => from <= number && number <= to)
  if (chains.some(has)) return true
  const hasForgotten = ({ until, by }: TakenBatches) =>
    by[maker] === undefined ? at <= until : number < (by[maker].from ?? 0)
  return chains.some(hasForgotten) ? undefined : false
}

export function takeBatches(taken: TakenBatches, ids: readonly Uint8Array[]): TakenBatches {
  const by = { ...taken.by }
  for (const id of ids) {
    const { maker, number, at } = parseBatchKey(id)
    by[maker] = addNumber(by[maker] ?? { at: 0, ranges: [] }, number, at)
  }
  const makers = Object.entries(by).toSorted(([, one], [, other]) => other.at - one.at)
  const until = makers[MAX_MAKERS]?.[1].at ?? 0
  return { until: Math.max(taken.until, until), by: Object.fromEntries(makers.slice(0, MAX_MAKERS)) }
}

function addNumber({ from, ...known }: MakerBatches, number: number, at: number): MakerBatches {
  const added: Range[] = []
  for (const [first, to] of [...known.ranges, [number, number] as Range].toSorted(
    ([one], [other]) => one - other,
  )) {
    const last = added.at(-1)
    if (last !== undefined && first <= last[1] + 1) last[1] = Math.max(last[1], to)
    else added.push([first, to])
  }
  const ranges = added.slice(-MAX_RANGES)
  const bound = ranges.length < added.length ? ranges[0]![0] : from
  return { at: Math.max(known.at, at), ranges, ...(bound !== undefined && { from: bound }) }
}
