import type { TakenBatches } from '../../domain/records/log-record.js'
import type { LogRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import { type EngineWriter, LOG_ROWS } from '../engine.js'
import type { LogCheck, LogPart, LogPosition, Search } from '../store.js'
import { type LogFilter, type LogLine, toFilter, toRecord } from './log-block.js'
import { countOf, FIRST_CHAIN, LogChain, type LogContext } from './log-chain.js'
import { digestAll } from './sealing.js'

/** The number of a page beyond the end of every log. A query that needs only the total uses this number. */
const BEYOND = 2 ** 31

type Source = AsyncGenerator<LogLine[]>

export class Log {
  readonly #context: LogContext
  readonly #isListed: boolean
  readonly #chains: readonly LogChain[]

  /** `listed`: the numbers in the tenant's list of chains, if the tenant has a list. Each listed chain must exist. */
  constructor(context: LogContext, listed: readonly number[] | undefined) {
    this.#context = context
    this.#isListed = listed !== undefined
    this.#chains = (listed ?? [FIRST_CHAIN]).map((chain) => this.chain(chain))
  }

  chain(number: number): LogChain {
    return new LogChain(this.#context, number)
  }

  /**
   * From each chain, drops up to `limit` blocks in which all records are older than `before` (ms since the epoch). If
   * `read` is given, keeps all records after this position. Returns the number of dropped blocks.
   */
  async drop(writer: EngineWriter, before: number, limit: number, read?: LogPosition): Promise<number> {
    let count = 0
    for (const chain of this.#chains)
      count += await chain.drop(writer, before, limit, read && (read[chain.number] ?? 0))
    return count
  }

  async readAfter(position: LogPosition, limit: number): Promise<LogPart> {
    const part = { records: [] as LogRecord[], position: { ...position }, lost: 0, left: 0 }
    for (const chain of this.#chains) {
      const from = position[chain.number] ?? 0
      const { lines, next, lost, left } = await chain.readAfter(from, limit - part.records.length)
      part.records.push(...lines.map(toRecord))
      part.position[chain.number] = next
      part.lost += lost
      part.left += left
    }
    return part
  }

  /**
   * Returns the batches of log entries that each chain contains. Skips a damaged chain, because {@link verify} reports
   * the damage.
   */
  async readTaken(): Promise<TakenBatches[]> {
    const heads = await Promise.all(this.#chains.map((chain) => chain.load().catch(ignoreDamage)))
    return heads.flatMap((head) => head?.taken ?? [])
  }

  async find({ where, page, size, isUncounted = false }: Search) {
    const filter = toFilter(where)
    const pending = (await this.#readPending()).lines.filter(filter.matches)
    const total = await this.#countMatches(filter, pending.length)
    const skip = (page - 1) * size
    if (total !== undefined && skip >= total) return { records: [], total }
    // If every record matches and the log has only one chain, this chain skips whole blocks without opening them.
    const isOnly = filter.isAll && this.#chains.length === 1 && (!this.#isListed || pending.length === 0)
    const passed = isOnly ? skip : 0
    const newest = pending.slice(0, Math.max(0, pending.length - passed))
    const sources = this.#chains.map((chain) => chain.find(filter, Math.max(0, passed - pending.length)))
    // In an engine that one process uses, pending entries are newer than all records of the chain, even if the
    // clock went back.
    const all = this.#isListed ? [concat(newest), ...sources] : [concat(newest, sources[0])]
    return mergePage(all, { skip: skip - passed, size, total, isUncounted })
  }

  /** Also checks that no chain is missing and that no row exists outside of the chains. */
  async verify(): Promise<LogCheck> {
    let count = 0
    let expected = 0
    for (const chain of this.#chains) {
      const { count: own, brokenAt, rows } = await chain.verify()
      if (brokenAt !== undefined || (this.#isListed && rows === 0))
        return { count: count + own, brokenAt: count + (brokenAt ?? 1) }
      count += own
      expected += rows
    }
    const { lines, isWhole } = await this.#readPending()
    const { rows, keys, tenant } = this.#context
    const query = { kind: LOG_ROWS, tenant, all: digestAll(keys, 'log_block'), page: BEYOND, size: 1 }
    const { total } = await rows.find(query)
    return isWhole && total === expected ? { count: count + lines.length } : { count, brokenAt: count + 1 }
  }

  /** Returns the total from the heads of the chains, or undefined if the records must be counted one by one. */
  async #countMatches({ isAll, isByType, types = [] }: LogFilter, pending: number) {
    if (!isAll && !isByType) return undefined
    let total = pending
    for (const chain of this.#chains) {
      const head = await chain.load()
      const counts = new Map(Object.entries(head.types))
      total += isAll ? countOf(head) : types.reduce((sum, type) => sum + (counts.get(type) ?? 0), 0)
    }
    return total
  }

  /** Entries that are in no chain yet, oldest first. `isWhole`: all entries are readable. */
  async #readPending(): Promise<{ lines: LogLine[]; isWhole: boolean }> {
    const { rows, tenant } = this.#context
    const entries = (await rows.pendingEntries?.(tenant)) ?? []
    const lines = entries.filter((entry) => entry !== undefined) as unknown as LogLine[]
    return { lines, isWhole: lines.length === entries.length }
  }
}

async function* concat(newest: LogLine[], rest?: Source): Source {
  yield newest
  if (rest !== undefined) yield* rest
}

/**
 * `lines`: lines of the source that are not merged yet, the newest last. `low`: the earliest time of the merged lines.
 */
interface Stream {
  readonly source: Source
  lines: LogLine[]
  low: number
}

/** Reads more lines of the source if no line is left. Returns false at the end of the source. */
async function hasLine(stream: Stream): Promise<boolean> {
  while (stream.lines.length === 0) {
    const { value, done } = await stream.source.next()
    if (done) return false
    stream.lines = value
  }
  return true
}

/**
 * The time by which {@link mergePage} sorts the next line of a source. This time never rises within a source, so the
 * merged lines of a source keep their order even if the clock went back.
 */
function nextTime({ lines, low }: Stream): number {
  return Math.min(low, lines.at(-1)!.time)
}

type Merge = { skip: number; size: number; total: number | undefined; isUncounted: boolean }

/**
 * Merges sources by time. If neither `total` nor `isUncounted` is given, reads all sources to the end to count the
 * matches.
 */
async function mergePage(
  sources: readonly Source[],
  { skip, size, total, isUncounted }: Merge,
): Promise<{ records: LogRecord[]; total: number }> {
  const live = new Set<Stream>()
  for (const source of sources) {
    const stream = { source, lines: [], low: Number.POSITIVE_INFINITY }
    if (await hasLine(stream)) live.add(stream)
  }
  const records: LogRecord[] = []
  let passed = 0
  for (; live.size > 0 && records.length < size; passed++) {
    const next = [...live].reduce((one, other) => (nextTime(other) > nextTime(one) ? other : one))
    next.low = nextTime(next)
    const line = next.lines.pop()!
    if (passed >= skip) records.push(toRecord(line))
    if (!(await hasLine(next))) live.delete(next)
  }
  if (total !== undefined) return { records, total }
  if (isUncounted) return { records, total: passed }
  for (const { source, lines } of live) {
    passed += lines.length
    for await (const more of source) passed += more.length
  }
  return { records, total: passed }
}

function ignoreDamage(error: unknown): undefined {
  if (!(error instanceof CofferError) || error.code !== 'vault_damaged') throw error
}
