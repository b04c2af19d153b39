/** What can be read of the logs of a damaged vault, to be written anew. */
import { chainOf, isBlock } from '../../domain/index-fields.js'
import type { LogBlockRecord, LogHeadRecord } from '../../domain/log-record.js'
import type { LogRecord, RecordOf } from '../../domain/records.js'
import type { Row } from '../engine.js'
import type { Store } from '../store.js'
import { unpack } from './log-block.js'
import { FIRST_CHAIN } from './log-rows.js'

/** Records written in one unit of work. */
const BATCH = 5000

interface FoundLog {
  head?: LogHeadRecord
  blocks: LogBlockRecord[]
  /** Rows that do not open. */
  lost: number
}

export function createLogSalvage() {
  /** By tenant, and by chain. */
  const logs = new Map<number, Map<number, FoundLog>>()

  return { take, lose, restore }

  function of(tenant: number, chain: number): FoundLog {
    const chains = logs.get(tenant) ?? new Map<number, FoundLog>()
    const known = chains.get(chain) ?? { blocks: [], lost: 0 }
    logs.set(tenant, chains.set(chain, known))
    return known
  }

  function take(row: Row, record: RecordOf['log_block']): void {
    const log = of(row.tenant, chainOf(record as LogBlockRecord))
    if ('items' in record) log.blocks.push(record)
    else if ('mostParts' in record) log.head = record
  }

  function lose(tenant: number): void {
    of(tenant, FIRST_CHAIN).lost++
  }

  /** Writes all logs into the new vault; gives how many records, and how many of each tenant are known to be missing. */
  async function restore(store: Store): Promise<{ salvaged: number; missing: Map<number, number> }> {
    const missing = new Map<number, number>()
    let salvaged = 0
    for (const [tenant, chains] of logs) {
      const found = [...chains.values()].map(putInOrder)
      const gaps = found.reduce((sum, each) => sum + each.gaps, 0)
      const all = found.flatMap(({ records }) => records)
      // A chain has its own order, even where the clock went back.
      const records = found.length === 1 ? all : all.sort(byTime)
      if (gaps > 0) missing.set(tenant, gaps)
      if ((await store.read((reader) => reader.get('tenant', 0, String(tenant)))) === undefined) continue
      salvaged += records.length
      for (let first = 0; first < records.length; first += BATCH)
        await store.write(async (writer) => {
          for (const record of records.slice(first, first + BATCH)) await writer.log(tenant, record)
        })
    }
    return { salvaged, missing }
  }
}

const byTime = (one: LogRecord, other: LogRecord) => Date.parse(one.created_at) - Date.parse(other.created_at)

/** Parts that were joined into blocks are still there; what they hold counts once. */
function putInOrder({ head, blocks, lost }: FoundLog) {
  const start =
    head?.dropped ?? Math.min(...blocks.filter(isBlock).map(({ first }) => first), Number.MAX_SAFE_INTEGER)
  const records: LogRecord[] = []
  let next = start === Number.MAX_SAFE_INTEGER ? 0 : start
  let gaps = 0
  // The block before a part of the same beginning.
  const sorted = blocks.sort(
    (left, right) => left.first - right.first || right.items.length - left.items.length,
  )
  for (const block of sorted) {
    gaps += Math.max(0, block.first - next)
    records.push(...unpack(block).slice(Math.max(0, next - block.first)))
    next = Math.max(next, block.first + block.items.length)
  }
  if (head !== undefined) gaps += Math.max(0, head.count - next)
  const isUnknown = head === undefined && lost > 0 && gaps === 0
  return { records, gaps: isUnknown ? Math.max(gaps, lost) : gaps }
}
