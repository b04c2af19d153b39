/**
 * A chain of log records. Full blocks never change. The head contains the records after the last full block. Each
 * record has a value: a keyed digest of the record and of the previous record's value.
 */
import type { BoundedMap } from '../../bounded-map.js'
import type { RecordKeys } from '../../crypto/ports.js'
import { logField } from '../../domain/records/index-fields.js'
import { BLOCK_RECORDS, type LogBlockRecord, type LogHeadRecord } from '../../domain/records/log-record.js'
import { damaged } from '../../errors.js'
import { isEqual, toBase64, toText } from '../bytes.js'
import {
  type EngineReader,
  type EngineWriter,
  LOG_ROWS,
  type LogEntry,
  type Row,
  type Where,
} from '../engine.js'
import type { LogCheck } from '../store.js'
import { takeBatches } from '../taken-batches.js'
import { addLine, countTypes, type LogFilter, type LogLine, latestOf, unpack } from './log-block.js'
import * as sealing from './sealing.js'

/** In an engine that only one process uses, each log has only this chain. */
export const FIRST_CHAIN = 1
const VALUE_BYTES = 16
/** After this number of opened blocks, the reader lets other requests run. */
const OPENED_AT_ONCE = 16

/** The newest heads, by tenant and chain. A cached head must not be changed, because readers may still use the head. */
export type HeadCache = BoundedMap<string, { nonce: Uint8Array; head: LogHeadRecord }>

export interface LogContext {
  rows: EngineReader
  keys: RecordKeys
  tenant: number
  heads: HeadCache
}

export class LogChain {
  readonly #log: LogContext
  readonly #number: number
  #head: LogHeadRecord | undefined
  #row: Row | undefined
  #batches = 0

  constructor(log: LogContext, number: number) {
    this.#log = log
    this.#number = number
  }

  async load(): Promise<LogHeadRecord> {
    this.#head ??= await this.#load()
    return this.#head
  }

  async #load(): Promise<LogHeadRecord> {
    this.#row = await this.#findHead()
    if (this.#row === undefined) return this.#emptyHead()
    const known = this.#log.heads.get(this.#name)
    if (known !== undefined && isEqual(known.nonce, nonceOf(this.#row.sealed))) return known.head
    const head = sealing.openRecord(this.#log.keys, this.#row) as LogHeadRecord
    this.#remember(head, this.#row.sealed)
    return head
  }

  async exists(): Promise<boolean> {
    return (await this.#findHead()) !== undefined
  }

  /**
   * `batches`: the ids of the pending batches from which the entries come. Requires: after a failure, the unit of work
   * must not commit.
   */
  async append(
    writer: EngineWriter,
    entries: readonly LogEntry[],
    batches: readonly Uint8Array[] = [],
  ): Promise<void> {
    const head = await this.load()
    const added = entries as readonly (LogEntry & LogLine)[]
    const { taken = { until: 0, by: {} } } = head
    let { blocks, value } = head
    let tail = { shapes: [...head.tail.shapes], items: [...head.tail.items] }
    for (const line of added) {
      addLine(tail, line)
      value = this.#valueAfter(value, line)
      if (tail.items.length < BLOCK_RECORDS) continue
      const block = { id: this.#idOf(`block/${blocks++}`), value, ...tail }
      await this.#put(writer, block, undefined, latestOf(block))
      tail = { shapes: [], items: [] }
    }
    const types = countTypes(head.types, added, 1)
    const next = { ...head, types, blocks, value, tail }
    await this.#putHead(writer, batches.length === 0 ? next : { ...next, taken: takeBatches(taken, batches) })
  }

  get number(): number {
    return this.#number
  }

  /**
   * Reads at most `limit` records after the first `from` records of the chain. `next`: the position after the records
   * that were read. `lost`: the number of records after `from` that were dropped. `left`: the number of records after
   * `next`.
   */
  async readAfter(from: number, limit: number) {
    const { blocks, gone, tail } = await this.load()
    const first = gone * BLOCK_RECORDS
    const end = blocks * BLOCK_RECORDS + tail.items.length
    // If `from` is after the end of the chain, the vault was restored to an earlier state. Then reading begins at the
    // first record that the chain still has.
    const start = from > end ? first : Math.max(from, first)
    const lines: LogLine[] = []
    while (lines.length < limit && start + lines.length < end) {
      const at = start + lines.length
      const block = Math.floor(at / BLOCK_RECORDS)
      const known = block < blocks ? (await this.#readBlocks(block, block + 1))[0] : tail
      if (known === undefined) throw missingBlock()
      const skipped = at % BLOCK_RECORDS
      lines.push(...unpack(known).slice(skipped, skipped + limit - lines.length))
    }
    const next = start + lines.length
    return { lines, next, lost: Math.max(0, start - from), left: end - next }
  }

  /**
   * Drops up to `limit` blocks. All records of a dropped block are older than `before` (ms since the epoch) and among
   * the first `read` records of the chain. Returns the number of dropped blocks.
   */
  async drop(
    writer: EngineWriter,
    before: number,
    limit: number,
    read = Number.POSITIVE_INFINITY,
  ): Promise<number> {
    const head = await this.load()
    let { gone, start, types } = head
    while (gone < head.blocks && gone - head.gone < limit) {
      if ((gone + 1) * BLOCK_RECORDS > read) break
      const [block] = await this.#readBlocks(gone, gone + 1)
      if (block === undefined) throw missingBlock()
      if (latestOf(block) >= before) break
      await writer.remove(LOG_ROWS, this.#log.tenant, this.#rowId(`block/${gone}`))
      types = countTypes(types, unpack(block), -1)
      start = block.value
      gone++
    }
    if (gone > head.gone) await this.#putHead(writer, { ...head, gone, start, types })
    return gone - head.gone
  }

  /**
   * Yields matching log records in portions, the newest portion first. In each portion the oldest record comes first.
   * Requires: `skip` is 0, or the filter matches all records.
   */
  async *find(filter: LogFilter, skip = 0): AsyncGenerator<LogLine[]> {
    const { tail, blocks, gone } = await this.load()
    const newest = unpack(tail).filter(filter.matches)
    yield newest.slice(0, Math.max(0, newest.length - skip))
    if (blocks === gone) return
    let left = Math.max(0, skip - newest.length)
    const passed = Math.floor(left / BLOCK_RECORDS)
    for await (const block of filter.isAll
      ? this.#eachBlock(blocks - passed)
      : this.#matchingBlocks(filter)) {
      left %= BLOCK_RECORDS
      const lines = unpack(block).filter(filter.matches)
      yield lines.slice(0, lines.length - left)
      left = 0
    }
  }

  async *#eachBlock(end: number): AsyncGenerator<LogBlockRecord> {
    const { gone } = await this.load()
    for (let next = end; next > gone; next -= OPENED_AT_ONCE)
      for (const block of (await this.#readBlocks(Math.max(gone, next - OPENED_AT_ONCE), next)).reverse()) {
        if (block === undefined) throw missingBlock()
        yield block
      }
  }

  /** Yields the blocks that may have matches according to the index, newest first. */
  async *#matchingBlocks(filter: LogFilter): AsyncGenerator<LogBlockRecord> {
    const query = {
      kind: LOG_ROWS,
      tenant: this.#log.tenant,
      all: sealing.digestAll(this.#log.keys, 'log_block'),
    }
    let below: number | undefined
    do {
      const where = this.#blocksFor(filter)
      const rows = await this.#log.rows.seek({ ...query, where, below, size: OPENED_AT_ONCE })
      for (const row of rows) yield sealing.openRecord(this.#log.keys, row) as LogBlockRecord
      below = rows.length < OPENED_AT_ONCE ? undefined : rows.at(-1)!.seq
      await new Promise(setImmediate)
    } while (below !== undefined)
  }

  /** `rows`: the number of rows of the chain. */
  async verify(): Promise<LogCheck & { rows: number }> {
    // Reads no cached head, because the stored rows must be checked.
    const row = await this.#findHead()
    if (row === undefined) return { count: 0, rows: 0 }
    const head = sealing.openRecord(this.#log.keys, row) as LogHeadRecord
    const { gone, blocks, tail } = head
    const found = { count: countOf(head), rows: 1 + blocks - gone }
    let { start: value } = head
    const follows = (lines: readonly LogLine[], end: string) => {
      for (const line of lines) value = this.#valueAfter(value, line)
      return value === end
    }
    let at = 1
    for (let first = gone; first < blocks; first += OPENED_AT_ONCE) {
      const some = await this.#readBlocks(first, Math.min(blocks, first + OPENED_AT_ONCE))
      for (const block of some) {
        const isWhole = block !== undefined && block.items.length === BLOCK_RECORDS
        if (!isWhole || !follows(unpack(block), block.value)) return { ...found, brokenAt: at }
        at += BLOCK_RECORDS
      }
    }
    const isWhole = follows(unpack(tail), head.value) && head.proof === this.#proofOf(head)
    return isWhole ? found : { ...found, brokenAt: at }
  }

  #blocksFor({ entity, trace, types, from }: LogFilter): Where {
    const keyOf = (field: string, value: string) => ({
      key: sealing.digestKey(this.#log.keys, 'log_block', logField(this.#number, field, value)),
    })
    const some = types === undefined ? keyOf('block', '') : { or: types.map((type) => keyOf('type', type)) }
    const about = entity === undefined ? some : keyOf('entity', entity)
    const which = trace === undefined ? about : keyOf('trace', trace)
    return from === undefined ? which : { and: [which, { range: 'modified', from }] }
  }

  get #name(): string {
    return `${this.#log.tenant}/${this.#number}`
  }

  #idOf(row: string): string {
    return `${this.#number}/${row}`
  }

  #rowId(row: string): Uint8Array {
    const { keys, tenant } = this.#log
    return sealing.digestId(keys, 'log_block', tenant, this.#idOf(row))
  }

  async #findHead(): Promise<Row | undefined> {
    const { rows, tenant } = this.#log
    return rows.get(LOG_ROWS, tenant, this.#rowId('head'))
  }

  /**
   * Reads the blocks from `first` up to, but without, `end`. In the result, a block that is missing or cannot be opened
   * is undefined.
   */
  async #readBlocks(first: number, end: number): Promise<(LogBlockRecord | undefined)[]> {
    if (this.#batches++ > 0) await new Promise(setImmediate)
    const numbers = Array.from({ length: end - first }, (_, index) => first + index)
    const ids = numbers.map((number) => this.#rowId(`block/${number}`))
    const all = sealing.digestAll(this.#log.keys, 'log_block')
    const query = { kind: LOG_ROWS, tenant: this.#log.tenant, all, where: { ids }, page: 1, size: ids.length }
    const { rows } = await this.#log.rows.find(query)
    const found = new Map(rows.map((row) => [toText(row.id), row]))
    return ids.map((id) => {
      const row = found.get(toText(id))
      return row && (sealing.openIfWhole(this.#log.keys, row) as LogBlockRecord | undefined)
    })
  }

  #emptyHead(): LogHeadRecord {
    const tail = { shapes: [], items: [] }
    return { id: this.#idOf('head'), blocks: 0, gone: 0, start: '', value: '', proof: '', types: {}, tail }
  }

  /** A rekey of the vault does not change the key of the digests in a log chain. */
  #digest(parts: readonly unknown[]): string {
    return toBase64(this.#log.keys.logChain(Buffer.from(JSON.stringify(parts)), VALUE_BYTES))
  }

  #valueAfter(value: string, { time, shape, entity_id, trace_id, id }: LogLine): string {
    return this.#digest(['log', value, time, shape, entity_id, trace_id, id])
  }

  #proofOf({ blocks, gone, start, value }: LogHeadRecord): string {
    return this.#digest(['head', blocks, gone, start, value])
  }

  /**
   * Stores and caches the head of the chain. If the unit of work does not commit, the cached head is never used,
   * because no stored head has the same nonce.
   */
  async #putHead(writer: EngineWriter, head: LogHeadRecord): Promise<void> {
    const next = { ...head, proof: this.#proofOf(head) }
    await this.#put(writer, next, this.#row, 0, (sealed) => this.#remember(next, sealed))
  }

  /** `row`: the row to replace, if there is one. `modified`: the time of the newest record in a block. 0 for a head. */
  async #put(
    writer: EngineWriter,
    record: LogBlockRecord | LogHeadRecord,
    row: Row | undefined,
    modified: number,
    recordSealed?: (bytes: Uint8Array) => void,
  ): Promise<void> {
    const { keys, tenant } = this.#log
    const id = sealing.digestId(keys, 'log_block', tenant, record.id)
    await writer.put({
      kind: LOG_ROWS,
      tenant,
      id,
      ...(row && { seq: row.seq, created: row.created }),
      modified,
      expires: 0,
      keys: sealing.keysOfRecord(keys, 'log_block', record),
      seal: (rev) => {
        const bytes = sealing.sealRecord(keys, { id, rev }, record)
        recordSealed?.(bytes)
        return bytes
      },
    })
  }

  #remember(head: LogHeadRecord, sealed: Uint8Array): void {
    this.#log.heads.set(this.#name, { head, nonce: Uint8Array.from(nonceOf(sealed)) })
  }
}

const missingBlock = () => damaged('A block of the log is missing or does not open')

export function countOf({ blocks, gone, tail }: LogHeadRecord): number {
  return (blocks - gone) * BLOCK_RECORDS + tail.items.length
}

function nonceOf(sealed: Uint8Array): Uint8Array {
  return sealed.subarray(0, sealing.NONCE_BYTES)
}
