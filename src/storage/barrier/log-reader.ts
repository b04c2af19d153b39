/** Finds log records newest first, with exact totals, and checks the chain; in format 1 too. */

import type { RecordKeys } from '../../crypto/ports.js'
import { ENTITY_DIGITS, entityField } from '../../domain/index-fields.js'
import type { LogBlockRecord, LogHeadRecord } from '../../domain/log-record.js'
import type { LogRecord } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import { type EngineReader, LOG_ROWS, type OldLog, type Where } from '../engine.js'
import type { Condition, LogCheck, Page } from '../store.js'
import {
  countIn,
  describe,
  type LogFilter,
  lineOf,
  matchesIn,
  pack,
  recordAt,
  type SealedEntry,
  toFilter,
} from './log-block.js'
import {
  type Chain,
  chainValue,
  createChain,
  headerOf,
  INDEXED,
  LogRows,
  logIds,
  readEnd,
  readIndex,
} from './log-rows.js'
import type { SealedLog } from './sealed-log.js'
import { digestAll, digestKey, openRecord, unseal } from './sealing.js'

/** Blocks of one entity that are opened to count its records; of more, the index counts. */
const OPENED = 8
/** A page that no log reaches: it is asked for a total alone. */
const BEYOND = 2 ** 31

export interface LogPage {
  /** Newest first. */
  records: LogRecord[]
  total: number
}

type Search = Page & { where?: Condition }

export class LogReader {
  readonly #log: SealedLog
  readonly #reader: EngineReader
  readonly #rows: LogRows

  constructor(log: SealedLog, reader: EngineReader, keys: RecordKeys, tenant: number) {
    this.#log = log
    this.#reader = reader
    this.#rows = new LogRows(reader, keys, tenant)
  }

  async find({ where, page, size }: Search): Promise<LogPage> {
    const filter = toFilter(where)
    const taking = new Taking(filter, (page - 1) * size, size)
    const old = this.old()
    if (old !== undefined) return findOld(old, this.#rows.keys, taking, where === undefined)
    const chain = await this.#log.load(this.#rows)
    const end = [...(await readEnd(this.#rows, chain)), await this.#held()]
    for (const part of end.toReversed()) taking.take(part)
    if (filter.entity === undefined) await this.#takeBlocks(chain, filter, taking)
    else await this.#takeEntity(chain, filter, filter.entity, taking)
    return taking.result
  }

  /** The log as format 1 has it. */
  old(): OldLog | undefined {
    return this.#reader.oldLog?.(this.#rows.tenant, digestAll(this.#rows.keys, 'log'))
  }

  /** The log of format 1, oldest first, so many records at once. @throws CofferError `vault_damaged` */
  *adopt(most: number): Generator<LogRecord[]> {
    const old = this.old()
    for (let first = 0; old !== undefined && first < old.count; first += most) {
      const count = Math.min(most, old.count - first)
      yield Array.from(
        { length: count },
        (_, index) => openRecord(this.#rows.keys, old.row(first + index)) as LogRecord,
      )
    }
  }

  /** What is not stored yet. */
  async #held(): Promise<LogBlockRecord> {
    const entries = (await this.#reader.held?.(this.#rows.tenant)) ?? []
    const lines = (entries as readonly SealedEntry[]).map(({ line }) => line)
    return pack('', 0, lines)
  }

  async #takeBlocks(chain: Chain, filter: LogFilter, taking: Taking): Promise<void> {
    const { blocks, gone, count, dropped, partRecords } = chain.head
    const isAll = filter.types === undefined && !filter.isSpecial && !isRanged(filter)
    let left = count - dropped - partRecords
    for (let index = Math.ceil(blocks / INDEXED) - 1; index * INDEXED >= gone - INDEXED + 1; index--) {
      const { headers } = chain.indexes.get(index) ?? (await readIndex(this.#rows, chain, index))
      const first = index * INDEXED
      for (let number = Math.min(blocks, first + INDEXED) - 1; number >= Math.max(gone, first); number--) {
        // Of all records the rest is known without another header.
        if (isAll && taking.isFull) return taking.skip(left)
        const header = headers[number - first]!
        const matching = countIn(header, filter)
        left -= header.count
        if (matching !== undefined && taking.skips(matching)) taking.skip(matching)
        else taking.take(await this.#rows.read<LogBlockRecord>(logIds.block(number)))
      }
    }
  }

  /** Blocks are found by the index of entities. */
  async #takeEntity(chain: Chain, filter: LogFilter, entity: string, taking: Taking): Promise<void> {
    const keys = Array.from({ length: ENTITY_DIGITS }, (_, digit) => ({
      key: digestKey(this.#rows.keys, 'log_block', entityField(entity, digit)),
    }))
    const isCountable = filter.types === undefined && !filter.isSpecial && !isRanged(filter)
    const before = taking.result.total
    for (let page = 1, total = 1; (page - 1) * OPENED < total; page++) {
      const found = await this.#find({ or: keys }, page, OPENED)
      total = found.total
      for (const row of found.rows) {
        const block = openRecord(this.#rows.keys, row) as LogBlockRecord
        if (block.first >= chain.head.dropped) taking.take(block)
      }
      if (!isCountable || !taking.isFull || page * OPENED >= total) continue
      let sum = 0
      for (const [digit, key] of keys.entries()) sum += 2 ** digit * (await this.#find(key, BEYOND, 1)).total
      taking.result.total = before + sum
      return
    }
  }

  /** All of the log's rows without `where`. */
  #find(where: Where | undefined, page: number, size: number) {
    const { keys, tenant } = this.#rows
    const query = { kind: LOG_ROWS, tenant, all: digestAll(keys, 'log_block'), page, size }
    return this.#reader.find(where === undefined ? query : { ...query, where })
  }

  /** Walks the whole log. */
  async verify(): Promise<LogCheck> {
    const isAuthentic = (row: Parameters<typeof unseal>[1]) => unseal(this.#rows.keys, row) !== undefined
    const old = this.old()
    if (old !== undefined) return old.check(isAuthentic)
    // Nothing that is remembered: what is stored is to be checked.
    const chain = createChain(this.#rows.keys, await this.#rows.find(logIds.head))
    const { head } = chain
    let first = head.dropped
    let { start: value } = head
    const broken = () => ({ count: head.count - head.dropped, brokenAt: first - head.dropped + 1 })
    const follows = (block: LogBlockRecord): boolean => {
      value = chainValue(this.#rows.keys, value, block)
      if (block.first !== first) return false
      first += block.items.length
      return true
    }
    try {
      for (let number = head.gone; number < head.blocks; number++) {
        const header = await headerOf(this.#rows, chain, number)
        const before = first
        const block = await this.#rows.read<LogBlockRecord>(logIds.block(number))
        const isNext = follows(block)
        if (isNext && JSON.stringify(describe(block, value)) === JSON.stringify(header)) continue
        first = before
        return broken()
      }
      for (const part of await readEnd(this.#rows, chain)) if (!follows(part)) return broken()
    } catch (error) {
      if (error instanceof CofferError && error.code === 'vault_damaged') return broken()
      throw error
    }
    const { total } = await this.#find(undefined, BEYOND, 1)
    const isEnd = first === head.count && value === head.value && total === rowsOf(head)
    return isEnd ? { count: head.count - head.dropped + (await this.#held()).items.length } : broken()
  }
}

function isRanged({ from, below }: LogFilter): boolean {
  return from !== Number.NEGATIVE_INFINITY || below !== Number.POSITIVE_INFINITY
}

/** How many rows the log has, parts that were joined included. */
function rowsOf({ count, blocks, gone, mostParts }: LogHeadRecord): number {
  const indexes = Math.ceil(blocks / INDEXED) - Math.floor(gone / INDEXED)
  return count === 0 ? 0 : 1 + mostParts + (blocks - gone) + indexes
}

/** Gathers a page from blocks, newest first, and counts what matches. */
class Taking {
  readonly #filter: LogFilter
  readonly #size: number
  #skip: number
  readonly result: LogPage = { records: [], total: 0 }

  constructor(filter: LogFilter, skip: number, size: number) {
    this.#filter = filter
    this.#skip = skip
    this.#size = size
  }

  get isFull(): boolean {
    return this.result.records.length === this.#size
  }

  /** Whether none of so many records is on the page. */
  skips(count: number): boolean {
    return this.isFull || count <= this.#skip
  }

  skip(count: number): void {
    this.result.total += count
    this.#skip = Math.max(0, this.#skip - count)
  }

  take(block: LogBlockRecord): void {
    const found = matchesIn(block, this.#filter)
    const records = this.skips(found.length) ? [] : found.toReversed()
    const page = records.slice(this.#skip, this.#skip + this.#size - this.result.records.length)
    for (const index of page) this.result.records.push(recordAt(block, index))
    this.skip(found.length)
  }
}

/** Without an index of this format: reads all rows where there is a condition. */
function findOld(old: OldLog, keys: RecordKeys, taking: Taking, isAll: boolean): LogPage {
  for (let left = old.count; left > 0; left--) {
    if (isAll && taking.skips(1)) {
      const count = taking.isFull ? left : 1
      taking.skip(count)
      left -= count - 1
    } else taking.take(pack('', 0, [lineOf(openRecord(keys, old.row(left - 1)) as LogRecord)]))
  }
  return taking.result
}
