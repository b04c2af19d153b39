/**
 * The audit log as a stream of sealed blocks. What a commit logs is sealed as one part; parts are joined into blocks of
 * about 16 KiB; records of headers say what is in each block, and the head where the chain ends. All of these are rows
 * to an engine. ARCHITECTURE.md has the layout.
 */
import { BoundedMap } from '../../bounded-map.js'
import type { LogBlockHeader, LogHeadRecord } from '../../domain/log-record.js'
import { takeBatches } from '../../domain/taken-batches.js'
import { isEqual } from '../bytes.js'
import type { LogEntry } from '../engine.js'
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
import {
  type Chain,
  chainValue,
  copyIndexes,
  createChain,
  headerOf,
  INDEXED,
  type LogRows,
  type LogWriter,
  NONCE_BYTES,
  readEnd,
  readIndex,
} from './log-rows.js'

/** Parts of a log's end before they are joined into a block. */
const MOST_PARTS = 32
const MOST_CHAINS = 1024

export class SealedLog {
  /** By tenant and chain. */
  readonly #chains = new BoundedMap<string, Chain>(MOST_CHAINS)

  /** The log as these rows have it. */
  async load(rows: LogRows): Promise<Chain> {
    const name = nameOf(rows)
    const row = await rows.find(rows.ids.head)
    const known = this.#chains.get(name)
    const isKnown = known !== undefined && row !== undefined && known.rev === row.rev
    if (isKnown && isEqual(known.nonce, row.sealed.subarray(0, NONCE_BYTES))) return known
    const chain = createChain(rows, row)
    // A reader may be behind the writer. A log only grows; over a store a later `rev` may be lower.
    if (known === undefined || known.head.count <= chain.head.count) this.#chains.set(name, chain)
    return chain
  }

  /** Adds the entries to a chain. On failure nothing of the unit of work may be committed. */
  async append(rows: LogWriter, entries: readonly LogEntry[], batches: readonly Uint8Array[] = []) {
    const known = await this.load(rows)
    const lines = entries.map((entry) => (entry as SealedEntry).line)
    const { taken = { until: 0, by: {} } } = known.head
    const head = batches.length === 0 ? known.head : { ...known.head, taken: takeBatches(taken, batches) }
    const chain = { ...known, head }
    const fits = head.parts < MOST_PARTS && head.partBytes + sumBytes(lines) < BLOCK_BYTES
    await this.#put(rows, fits ? await addPart(rows, chain, lines) : await join(rows, chain, lines))
  }

  /** Drops up to `limit` blocks whose records are all older than `before`, and gives how many. The chain goes on. */
  async drop(rows: LogWriter, before: number, limit: number): Promise<number> {
    const chain = await this.load(rows)
    let { gone, dropped, start } = chain.head
    while (gone < chain.head.blocks && gone - chain.head.gone < limit) {
      const header = await headerOf(rows, chain, gone)
      if (header.to >= before) break
      await rows.remove(rows.ids.block(gone))
      if (gone % INDEXED === INDEXED - 1) await rows.remove(rows.ids.index(Math.floor(gone / INDEXED)))
      gone++
      dropped += header.count
      start = header.value
    }
    const count = gone - chain.head.gone
    if (count > 0) await this.#put(rows, { ...chain, head: { ...chain.head, gone, dropped, start } })
    return count
  }

  /** Remembers the version too, which nothing asks for if it is not committed: its nonce tells. */
  async #put(rows: LogWriter, chain: Changed): Promise<void> {
    await rows.put(chain.head, false, (rev, nonce) => {
      this.#chains.set(nameOf(rows), { ...chain, rev, nonce })
    })
  }

  clear(): void {
    this.#chains.clear()
  }
}

function nameOf({ tenant, chain }: LogRows): string {
  return `${tenant}/${chain}`
}

/** The next version of a chain, before its head is put. */
type Changed = Pick<Chain, 'head' | 'end' | 'indexes'>

async function addPart(rows: LogWriter, { head, end, indexes }: Changed, lines: readonly LogLine[]) {
  const part = pack(rows.ids.part(head.parts), head.count, lines)
  await rows.put(part, head.parts >= head.mostParts)
  const next: LogHeadRecord = {
    ...head,
    count: head.count + lines.length,
    parts: head.parts + 1,
    mostParts: Math.max(head.mostParts, head.parts + 1),
    partBytes: head.partBytes + sumBytes(lines),
    partRecords: head.partRecords + lines.length,
    value: chainValue(rows.keys, head.value, part),
  }
  return { head: next, end: end && [...end, part], indexes }
}

/** Makes full blocks of the parts and `lines`, and one part of the rest. Parts stay as rows, to be replaced by later ones. */
async function join(rows: LogWriter, chain: Chain, lines: readonly LogLine[]): Promise<Changed> {
  const { head } = chain
  const waiting = (await readEnd(rows, chain)).flatMap(linesOf)
  const runs = cut([...waiting, ...lines])
  const rest = isFull(runs.at(-1)!) ? [] : runs.pop()!
  let count = head.count - waiting.length
  let value = head.base
  let blocks = head.blocks
  const headers: LogBlockHeader[] = []
  for (const run of runs) {
    const block = pack(rows.ids.block(blocks++), count, run)
    value = chainValue(rows.keys, value, block)
    await rows.put(block, true)
    headers.push(describe(block, value))
    count += run.length
  }
  const indexes = await putHeaders(rows, chain, headers)
  const next = { ...head, count, blocks, parts: 0, partBytes: 0, partRecords: 0, base: value, value }
  const joined = { head: next, end: [], indexes }
  return rest.length === 0 ? joined : addPart(rows, joined, rest)
}

/** Adds the headers to those of the chain; gives the indexes of the next version. */
async function putHeaders(rows: LogWriter, chain: Chain, headers: readonly LogBlockHeader[]) {
  const indexes = copyIndexes(chain)
  for (let done = 0; done < headers.length; ) {
    const block = chain.head.blocks + done
    const at = block % INDEXED
    const number = Math.floor(block / INDEXED)
    const isNew = at === 0
    const before = isNew ? [] : (await readIndex(rows, chain, number)).headers.slice(0, at)
    const more = headers.slice(done, done + INDEXED - at)
    const index = { id: rows.ids.index(number), headers: [...before, ...more] }
    await rows.put(index, isNew)
    indexes.set(number, index)
    done += more.length
  }
  return indexes
}
