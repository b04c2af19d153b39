/**
 * The audit log as a stream of sealed blocks. What a commit logs is sealed as one part; parts are joined into blocks of
 * about 16 KiB; records of headers say what is in each block, and the head where the chain ends. All of these are rows
 * to an engine. ARCHITECTURE.md has the layout.
 */

import { BoundedMap } from '../../bounded-map.js'
import type { LogBlockHeader, LogHeadRecord } from '../../domain/log-record.js'
import { isEqual } from '../bytes.js'
import { isPromise, type LogEntry } from '../engine.js'
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
/** Logs that are remembered. */
const MOST_CHAINS = 1024

export class SealedLog {
  /** By tenant and chain. */
  readonly #chains = new BoundedMap<string, Chain>(MOST_CHAINS)

  /** The log as these rows have it. */
  async load(rows: LogRows): Promise<Chain> {
    const name = nameOf(rows)
    const reading = rows.find(rows.ids.head)
    const row = isPromise(reading) ? await reading : reading
    const known = this.#chains.get(name)
    const isKnown = known !== undefined && row !== undefined && known.rev === row.rev
    if (isKnown && isEqual(known.nonce, row.sealed.subarray(0, NONCE_BYTES))) return known
    const chain = createChain(rows, row)
    this.#chains.set(name, chain)
    return chain
  }

  /** Adds the entries to a chain. On failure nothing of the unit of work may be committed. */
  async append(rows: LogWriter, entries: readonly LogEntry[]): Promise<void> {
    const chain = await this.load(rows)
    // Taken back by whatever fails: then it is read anew.
    this.#chains.delete(nameOf(rows))
    const lines = entries.map((entry) => (entry as SealedEntry).line)
    const { head } = chain
    const fits = head.parts < MOST_PARTS && head.partBytes + sumBytes(lines) < BLOCK_BYTES
    chain.head = fits ? await addPart(rows, chain, head, lines) : await join(rows, chain, lines)
    await putHead(rows, chain)
    this.#chains.set(nameOf(rows), chain)
  }

  /**
   * Drops whole blocks of which every record is older than `before`, at most `limit`; gives their number. The chain
   * goes on from where they end.
   */
  async drop(rows: LogWriter, before: number, limit: number): Promise<number> {
    const chain = await this.load(rows)
    this.#chains.delete(nameOf(rows))
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
    if (count > 0) {
      chain.head = { ...chain.head, gone, dropped, start }
      await putHead(rows, chain)
    }
    this.#chains.set(nameOf(rows), chain)
    return count
  }

  clear(): void {
    this.#chains.clear()
  }
}

function nameOf({ tenant, chain }: LogRows): string {
  return `${tenant}/${chain}`
}

async function putHead(rows: LogWriter, chain: Chain): Promise<void> {
  await rows.put(chain.head, false, (rev, nonce) => {
    chain.rev = rev
    chain.nonce = nonce
  })
}

/** Adds a part to the end. `head` is that of the log without it. */
async function addPart(
  rows: LogWriter,
  chain: Chain,
  head: LogHeadRecord,
  lines: readonly LogLine[],
): Promise<LogHeadRecord> {
  const part = pack(rows.ids.part(head.parts), head.count, lines)
  await rows.put(part, head.parts >= head.mostParts)
  if (chain.end !== undefined) chain.end = [...chain.end, part]
  return {
    ...head,
    count: head.count + lines.length,
    parts: head.parts + 1,
    mostParts: Math.max(head.mostParts, head.parts + 1),
    partBytes: head.partBytes + sumBytes(lines),
    partRecords: head.partRecords + lines.length,
    value: chainValue(rows.keys, head.value, part),
  }
}

/** Makes full blocks of the parts and `lines`, and one part of the rest. Parts stay as rows, to be replaced by later ones. */
async function join(rows: LogWriter, chain: Chain, lines: readonly LogLine[]): Promise<LogHeadRecord> {
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
  await putHeaders(rows, chain, head.blocks, headers)
  chain.end = []
  const joined = { ...head, count, blocks, parts: 0, partBytes: 0, partRecords: 0, base: value, value }
  return rest.length === 0 ? joined : addPart(rows, chain, joined, rest)
}

/** `first` is the number of the first header's block. */
async function putHeaders(
  rows: LogWriter,
  chain: Chain,
  first: number,
  headers: readonly LogBlockHeader[],
): Promise<void> {
  for (let done = 0; done < headers.length; ) {
    const block = first + done
    const at = block % INDEXED
    const number = Math.floor(block / INDEXED)
    const isNew = at === 0 && block >= chain.head.blocks
    const before = isNew ? [] : (await readIndex(rows, chain, number)).headers.slice(0, at)
    const more = headers.slice(done, done + INDEXED - at)
    const index = { id: rows.ids.index(number), headers: [...before, ...more] }
    await rows.put(index, isNew)
    chain.indexes.set(number, index)
    done += more.length
  }
}
