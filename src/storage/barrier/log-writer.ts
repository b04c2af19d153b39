/** Adds to a chain of a log, and drops its oldest blocks. On failure nothing of the unit of work may be committed. */
import type { LogBlockHeader, LogHeadRecord, LogIndexRecord } from '../../domain/records/log-record.js'
import type { RecordOf } from '../../domain/records/records.js'
import { takeBatches } from '../../domain/records/taken-batches.js'
import { type EngineWriter, LOG_ROWS, type LogEntry } from '../engine.js'
import {
  BLOCK_BYTES,
  cut,
  describe,
  isFull,
  type LogLine,
  linesOf,
  pack,
  type SealedEntry,
  sumBytes,
} from './log-block.js'
import { blockName, INDEXED, indexName, LogChain, nonceOf, partName, type Version } from './log-chain.js'
import { digestId, keysOfRecord, sealRecord } from './sealing.js'

/** Parts of a chain's end before they are joined into a block. */
const MOST_PARTS = 32

/** The next version of a chain, before its head is put. */
type Next = Pick<Version, 'head' | 'parts'>

export class LogWriter extends LogChain<EngineWriter> {
  /** `batches`: the ids of what the entries were pending in. */
  async append(entries: readonly LogEntry[], batches: readonly Uint8Array[] = []): Promise<void> {
    const { head: before, parts } = await this.load()
    const lines = entries as readonly SealedEntry[]
    const { taken = { until: 0, by: {} } } = before
    const head = batches.length === 0 ? before : { ...before, taken: takeBatches(taken, batches) }
    const fits = head.parts < MOST_PARTS && head.partBytes + sumBytes(lines) < BLOCK_BYTES
    const next = { head, parts }
    await this.#putHead(fits ? await this.#addPart(next, lines) : await this.#join(next, lines))
  }

  /** Drops up to `limit` blocks whose records are all older than `before`, and gives how many. The chain goes on. */
  async drop(before: number, limit: number): Promise<number> {
    const { head, parts } = await this.load()
    let { gone, dropped, start } = head
    while (gone < head.blocks && gone - head.gone < limit) {
      const index = Math.floor(gone / INDEXED)
      const header = (await this.read<LogIndexRecord>(indexName(index))).headers[gone % INDEXED]!
      if (header.to >= before) break
      await this.#remove(blockName(gone))
      if (gone % INDEXED === INDEXED - 1) await this.#remove(indexName(index))
      gone++
      dropped += header.count
      start = header.value
    }
    if (gone > head.gone) await this.#putHead({ head: { ...head, gone, dropped, start }, parts })
    return gone - head.gone
  }

  async #addPart({ head, parts }: Next, lines: readonly LogLine[]): Promise<Next> {
    const part = pack(this.nameOf(partName(head.parts)), head.count, lines)
    await this.#put(part, head.parts >= head.mostParts)
    const next: LogHeadRecord = {
      ...head,
      count: head.count + lines.length,
      parts: head.parts + 1,
      mostParts: Math.max(head.mostParts, head.parts + 1),
      partBytes: head.partBytes + sumBytes(lines),
      partRecords: head.partRecords + lines.length,
      value: this.valueAfter(head.value, part),
    }
    return { head: next, parts: parts && [...parts, part] }
  }

  /** Makes full blocks of the parts and `lines`, and one part of the rest. Rows of parts are replaced by later ones. */
  async #join({ head, parts }: Next, lines: readonly LogLine[]): Promise<Next> {
    const before = parts ?? (await this.readParts({ head, parts, nonce: new Uint8Array(0) }))
    const all = [...before.flatMap(linesOf), ...lines]
    const runs = cut(all)
    const rest = isFull(runs.at(-1)!) ? [] : runs.pop()!
    let count = head.count + lines.length - all.length
    let { base: value, blocks } = head
    const headers: LogBlockHeader[] = []
    for (const run of runs) {
      const block = pack(this.nameOf(blockName(blocks++)), count, run)
      value = this.valueAfter(value, block)
      await this.#put(block, true)
      headers.push(describe(block, value))
      count += run.length
    }
    await this.#putHeaders(head.blocks, headers)
    const next = { ...head, count, blocks, parts: 0, partBytes: 0, partRecords: 0, base: value, value }
    return rest.length === 0 ? { head: next, parts: [] } : this.#addPart({ head: next, parts: [] }, rest)
  }

  /** Adds the headers of the blocks from number `blocks` on to the index. */
  async #putHeaders(blocks: number, headers: readonly LogBlockHeader[]): Promise<void> {
    for (let done = 0; done < headers.length; ) {
      const at = (blocks + done) % INDEXED
      const name = indexName(Math.floor((blocks + done) / INDEXED))
      const before = at === 0 ? [] : (await this.read<LogIndexRecord>(name)).headers.slice(0, at)
      const more = headers.slice(done, done + INDEXED - at)
      await this.#put({ id: this.nameOf(name), headers: [...before, ...more] }, at === 0)
      done += more.length
    }
  }

  /** The version is remembered too. If it is not committed, no later head has its nonce. */
  async #putHead(next: Next): Promise<void> {
    await this.#put(next.head, false, (sealed) => {
      this.keep({ ...next, nonce: Uint8Array.from(nonceOf(sealed)) })
    })
  }

  /** `isNew`: there was never a row of this name. */
  async #put(record: RecordOf['log_block'], isNew: boolean, sealed?: (bytes: Uint8Array) => void) {
    const { keys, tenant } = this
    const id = digestId(keys, 'log_block', tenant, record.id)
    const row = isNew ? undefined : await this.rows.get(LOG_ROWS, tenant, id)
    await this.rows.put({
      kind: LOG_ROWS,
      tenant,
      id,
      ...(row === undefined ? {} : { seq: row.seq, created: row.created }),
      modified: 0,
      expires: 0,
      keys: keysOfRecord(keys, 'log_block', record),
      seal: (rev) => {
        const bytes = sealRecord(keys, { id, rev }, record)
        sealed?.(bytes)
        return bytes
      },
    })
  }

  async #remove(name: string): Promise<void> {
    await this.rows.remove(
      LOG_ROWS,
      this.tenant,
      digestId(this.keys, 'log_block', this.tenant, this.nameOf(name)),
    )
  }
}
