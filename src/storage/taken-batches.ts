/**
 * Remembers which batches of pending log entries are already in a chain, so that no entry is appended to a log twice. A
 * shared engine gives each batch an id (`batchKey`), and the barrier stores the numbers of the batches in the head of
 * the chain.
 */
import type { TakenBatches } from '../domain/records/log-record.js'

/** An id consists of random bytes of the server, the number of the batch for its tenant, and the time in ms. */
const SERVER_BYTES = 5
const NUMBER_BYTES = 5
const TIME_BYTES = 6
/**
 * The head of a chain remembers the batches of at most this many servers: the servers with the newest batches.
 */
const MAX_SERVERS = 256
/** The head remembers at most this many ranges of batch numbers for each server. */
const MAX_RANGES = 64

type ServerBatches = TakenBatches['by'][string]
type Range = ServerBatches['ranges'][number]

export function batchKey(server: Uint8Array, number: number, at: number): Uint8Array {
  const id = Buffer.alloc(SERVER_BYTES + NUMBER_BYTES + TIME_BYTES)
  id.set(server.subarray(0, SERVER_BYTES))
  id.writeUIntBE(number, SERVER_BYTES, NUMBER_BYTES)
  id.writeUIntBE(at, SERVER_BYTES + NUMBER_BYTES, TIME_BYTES)
  return new Uint8Array(id)
}

function parseBatchKey(id: Uint8Array) {
  const bytes = Buffer.from(id)
  return {
    server: bytes.toString('hex', 0, SERVER_BYTES),
    number: bytes.readUIntBE(SERVER_BYTES, NUMBER_BYTES),
    at: bytes.readUIntBE(SERVER_BYTES + NUMBER_BYTES, TIME_BYTES),
  }
}

/** Returns whether the batch is in one of the chains. Undefined if a chain has forgotten too much to decide this. */
export function isTaken(chains: readonly TakenBatches[], id: Uint8Array): boolean | undefined {
  const { server, number, at } = parseBatchKey(id)
  const has = ({ by }: TakenBatches) =>
    by[server]?.ranges.some(([from, to]) => from <= number && number <= to)
  if (chains.some(has)) return true
  const hasForgotten = ({ until, by }: TakenBatches) =>
    by[server] === undefined ? at <= until : number < (by[server].from ?? 0)
  return chains.some(hasForgotten) ? undefined : false
}

export function takeBatches(taken: TakenBatches, ids: readonly Uint8Array[]): TakenBatches {
  const by = { ...taken.by }
  for (const id of ids) {
    const { server, number, at } = parseBatchKey(id)
    by[server] = addNumber(by[server] ?? { at: 0, ranges: [] }, number, at)
  }
  const servers = Object.entries(by).toSorted(([, one], [, other]) => other.at - one.at)
  const until = servers[MAX_SERVERS]?.[1].at ?? 0
  return { until: Math.max(taken.until, until), by: Object.fromEntries(servers.slice(0, MAX_SERVERS)) }
}

function addNumber({ from, ...known }: ServerBatches, number: number, at: number): ServerBatches {
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
