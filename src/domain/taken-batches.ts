/**
 * Which batches of log entries a chain has taken, so that none is taken twice, whoever puts one back in its table. The id
 * of a batch: its maker (5 bytes), its number among those of the maker for the tenant (5), its time (6, ms since the epoch).
 */

const MAKER_BYTES = 5
const NUMBER_BYTES = 5
const TIME_BYTES = 6
/** Makers that a chain remembers, those of the newest batches: a maker is forgotten long after its batches are in a log. */
const MOST_MAKERS = 256
/** Runs of numbers of one maker. Between two of them are numbers that were not taken. */
const MOST_RANGES = 64

type Range = [from: number, to: number]

/** `by`: of each maker the numbers, ascending, and the time of the newest. `until`: that of the newest of a maker who was dropped. */
export interface TakenBatches {
  until: number
  by: Record<string, { at: number; ranges: Range[] }>
}

export function nameBatch(maker: Uint8Array, number: number, at: number): Uint8Array {
  const id = Buffer.alloc(MAKER_BYTES + NUMBER_BYTES + TIME_BYTES)
  id.set(maker.subarray(0, MAKER_BYTES))
  id.writeUIntBE(number, MAKER_BYTES, NUMBER_BYTES)
  id.writeUIntBE(at, MAKER_BYTES + NUMBER_BYTES, TIME_BYTES)
  return new Uint8Array(id)
}

function parseName(id: Uint8Array) {
  const bytes = Buffer.from(id)
  return {
    maker: bytes.toString('hex', 0, MAKER_BYTES),
    number: bytes.readUIntBE(MAKER_BYTES, NUMBER_BYTES),
    at: bytes.readUIntBE(MAKER_BYTES + NUMBER_BYTES, TIME_BYTES),
  }
}

/** Whether one of the chains has taken the batch; undefined where one of them does not know any more. */
export function isTaken(chains: readonly TakenBatches[], id: Uint8Array): boolean | undefined {
  const { maker, number, at } = parseName(id)
  const has = ({ by }: TakenBatches) => by[maker]?.ranges.some(([from, to]) => from <= number && number <= to)
  if (chains.some(has)) return true
  return chains.some(({ until, by }) => by[maker] === undefined && at <= until) ? undefined : false
}

export function takeBatches(taken: TakenBatches, ids: readonly Uint8Array[]): TakenBatches {
  const by = { ...taken.by }
  for (const id of ids) {
    const { maker, number, at } = parseName(id)
    const known = by[maker] ?? { at: 0, ranges: [] }
    by[maker] = { at: Math.max(known.at, at), ranges: addNumber(known.ranges, number) }
  }
  const makers = Object.entries(by).toSorted(([, one], [, other]) => other.at - one.at)
  const until = makers[MOST_MAKERS]?.[1].at ?? 0
  return { until: Math.max(taken.until, until), by: Object.fromEntries(makers.slice(0, MOST_MAKERS)) }
}

function addNumber(ranges: readonly Range[], number: number): Range[] {
  const added: Range[] = []
  for (const [from, to] of [...ranges, [number, number] as Range].toSorted(([one], [other]) => one - other)) {
    const last = added.at(-1)
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else added.push([from, to])
  }
  // Numbers between the two oldest runs belong to commits that failed long ago: they count as taken from here on.
  while (added.length > MOST_RANGES) added.splice(0, 2, [added[0]![0], added[1]![1]])
  return added
}
