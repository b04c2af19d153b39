/** Finds records of a tenant's log, newest first and with exact totals, and verifies its chains. */
import type { RecordKeys } from '../../crypto/ports.js'
import { type EngineReader, LOG_ROWS } from '../engine.js'
import type { Condition, LogCheck, Page } from '../store.js'
import { type LogLine, type LogPage, pack, type SealedEntry, toFilter } from './log-block.js'
import { type ChainCache, FIRST_CHAIN, LogChain, toPiece } from './log-chain.js'
import { mergePage, type Piece, type Source } from './log-merge.js'
import { digestAll } from './sealing.js'

/** A page that no log reaches: it is asked for a total alone. */
const BEYOND = 2 ** 31

export class LogReader {
  readonly #reader: EngineReader
  readonly #keys: RecordKeys
  readonly #tenant: number
  readonly #isListed: boolean
  readonly #chains: readonly LogChain[]

  /** `listed`: the chains on the tenant's list, if there is one; each of them must be there. */
  constructor(
    reader: EngineReader,
    keys: RecordKeys,
    tenant: number,
    listed: readonly number[] | undefined,
    cache: ChainCache,
  ) {
    this.#reader = reader
    this.#keys = keys
    this.#tenant = tenant
    this.#isListed = listed !== undefined
    this.#chains = (listed ?? [FIRST_CHAIN]).map((chain) => new LogChain(reader, keys, tenant, chain, cache))
  }

  async find({ where, page, size }: Page & { where?: Condition }): Promise<LogPage> {
    const filter = toFilter(where)
    const { lines } = await this.#readPending()
    const pending = toPiece(pack('', 0, lines), filter)
    const sources: Source[] = []
    for (const chain of this.#chains) sources.push(await chain.list(filter))
    // An engine of one process puts what is pending behind its chain, whatever the clock says.
    if (this.#isListed) sources.unshift({ pieces: eachAfter(pending) })
    else sources[0] = append(sources[0]!, pending)
    return mergePage(sources, filter, { skip: (page - 1) * size, size })
  }

  /** Walks every chain, and checks that none is missing and that there is no other row. */
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
    const all = digestAll(this.#keys, 'log_block')
    const query = { kind: LOG_ROWS, tenant: this.#tenant, all, page: BEYOND, size: 1 }
    const { total } = await this.#reader.find(query)
    return isWhole && total === expected ? { count: count + lines.length } : { count, brokenAt: count + 1 }
  }

  /** Entries that are in no chain yet, oldest first. */
  async #readPending(): Promise<{ lines: LogLine[]; isWhole: boolean }> {
    const entries = (await this.#reader.pendingEntries?.(this.#tenant)) ?? []
    const lines = entries.filter((entry) => entry !== undefined) as SealedEntry[]
    return { lines, isWhole: lines.length === entries.length }
  }
}

function append({ pieces, total }: Source, newest: Piece): Source {
  const all = eachAfter(newest, pieces)
  return { pieces: all, ...(total !== undefined && { total: total + newest.matching! }) }
}

async function* eachAfter(newest: Piece, pieces?: AsyncGenerator<Piece>): AsyncGenerator<Piece> {
  if (newest.matching! > 0) yield newest
  if (pieces !== undefined) yield* pieces
}
