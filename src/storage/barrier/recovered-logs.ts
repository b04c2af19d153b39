/** Log records out of the rows of damaged logs, to be logged anew. */
import { chainOf, isBlock } from '../../domain/records/index-fields.js'
import type { LogBlockRecord, LogHeadRecord } from '../../domain/records/log-record.js'
import type { LogRecord, RecordOf } from '../../domain/records/records.js'
import { unpack } from './log-block.js'

interface Chain {
  head?: LogHeadRecord
  blocks: LogBlockRecord[]
}

export interface RecoveredLog {
  /** Oldest first. */
  records: LogRecord[]
  /** How many are known to be missing. */
  missing: number
}

export class RecoveredLogs {
  /** By tenant, and by the number of the chain. */
  readonly #logs = new Map<number, Map<number, Chain>>()

  add(tenant: number, record: RecordOf['log_block']): void {
    const chains = this.#logs.get(tenant) ?? new Map<number, Chain>()
    const chain = chains.get(chainOf(record)) ?? { blocks: [] }
    this.#logs.set(tenant, chains.set(chainOf(record), chain))
    if ('items' in record) chain.blocks.push(record)
    else if ('mostParts' in record) chain.head = record
  }

  of(tenant: number): RecoveredLog {
    const chains = [...(this.#logs.get(tenant)?.values() ?? [])].map(putInOrder)
    const records = chains.flatMap((chain) => chain.records)
    return {
      // A chain has its own order, even where the clock went back.
      records: chains.length === 1 ? records : records.sort(byTime),
      missing: chains.reduce((sum, chain) => sum + chain.missing, 0),
    }
  }
}

const byTime = (one: LogRecord, other: LogRecord) => Date.parse(one.created_at) - Date.parse(other.created_at)

/** Parts that were joined into blocks may still be there: each record counts once. */
function putInOrder({ head, blocks }: Chain): RecoveredLog {
  const records: LogRecord[] = []
  const firstBlock = Math.min(...blocks.filter(isBlock).map(({ first }) => first))
  let next = head?.dropped ?? (Number.isFinite(firstBlock) ? firstBlock : 0)
  let missing = 0
  // A block comes before a part of the same beginning.
  const longestFirst = (one: LogBlockRecord, other: LogBlockRecord) =>
    one.first - other.first || other.items.length - one.items.length
  for (const block of blocks.sort(longestFirst)) {
    missing += Math.max(0, block.first - next)
    records.push(...unpack(block).slice(Math.max(0, next - block.first)))
    next = Math.max(next, block.first + block.items.length)
  }
  return { records, missing: missing + Math.max(0, (head?.count ?? next) - next) }
}
