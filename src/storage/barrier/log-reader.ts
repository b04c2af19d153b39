/** Finds log records newest first, with exact totals, and checks the chain. */
import type { RecordKeys } from '../../crypto/ports.js'
import { ENTITY_DIGITS, entityField } from '../../domain/index-fields.js'
import type { LogBlockRecord } from '../../domain/log-record.js'
import { type EngineReader, LOG_ROWS, type Where } from '../engine.js'
import type { Condition, LogCheck, Page } from '../store.js'
import {
  countIn,
  type LogFilter,
  type LogPage,
  matchesIn,
  pack,
  recordAt,
  type SealedEntry,
  toFilter,
} from './log-block.js'
import { eachBlock, eachHeader, eachPiece, toPiece, verifyChain } from './log-chain.js'
import { mergePage, type Source } from './log-merge.js'
import { type Chain, FIRST_CHAIN, LogRows, readEnd } from './log-rows.js'
import type { SealedLog } from './sealed-log.js'
import { digestAll, digestKey, openRecord } from './sealing.js'

/** Blocks of one entity that are opened to count its records; of more, the index counts. */
const OPENED = 8
/** A page that no log reaches: it is asked for a total alone. */
const BEYOND = 2 ** 31

type Search = Page & { where?: Condition }

export type LogReader = ReturnType<typeof createLogReader>

/** `listed`: the chains on the tenant's list, if there is one. */
export function createLogReader(
  log: SealedLog,
  reader: EngineReader,
  keys: RecordKeys,
  tenant: number,
  listed: readonly number[] | undefined,
) {
  /** One for each chain; each that is listed must be there. */
  const chains = (listed ?? [FIRST_CHAIN]).map((chain) => new LogRows(reader, keys, tenant, chain))

  return { find, verify }

  async function find({ where, page, size }: Search): Promise<LogPage> {
    const filter = toFilter(where)
    const skip = (page - 1) * size
    const taking = createTaking(filter, skip, size)
    const [rows, ...others] = chains
    if (others.length > 0) return mergePage(await listSources(filter), filter, { skip, size })
    const chain = await log.load(rows!)
    const end = [...(await readEnd(rows!, chain)), await readHeld()]
    for (const part of end.toReversed()) taking.take(part)
    if (filter.entity === undefined) await takeBlocks(rows!, chain, filter, taking)
    else await takeEntity(rows!, chain, filter, filter.entity, taking)
    return taking.result
  }

  /** What is not stored yet. */
  async function readHeld(): Promise<LogBlockRecord & { isWhole: boolean }> {
    const held = ((await reader.held?.(tenant)) ?? []) as readonly (SealedEntry | undefined)[]
    const lines = held.flatMap((entry) => (entry === undefined ? [] : [entry.line]))
    return { ...pack('', 0, lines), isWhole: lines.length === held.length }
  }

  /** The chains, and what is in none yet. */
  async function listSources(filter: LogFilter): Promise<Source[]> {
    const held = await readHeld()
    const sources: Source[] = [{ pieces: eachPiece([held], filter) }]
    for (const rows of chains) {
      const chain = await log.load(rows)
      const end = await readEnd(rows, chain)
      const { count, dropped } = chain.head
      const { entity } = filter
      if (entity === undefined) {
        const pieces = eachPiece(end, filter, eachBlock(rows, chain, filter))
        sources.push({ pieces, ...(isAll(filter) && { total: () => count - dropped }) })
      } else {
        const inEnd = end.reduce((sum, part) => sum + matchesIn(part, filter).length, 0)
        const total = async () => inEnd + (await countEntity(rows.chain, entity))
        const pieces = eachPiece(end, filter, eachEntityBlock(rows.chain, dropped, filter, entity))
        sources.push({ pieces, ...(isCountable(filter) && { total }) })
      }
    }
    return sources
  }

  async function* eachEntityBlock(chain: number, dropped: number, filter: LogFilter, entity: string) {
    for await (const { blocks } of eachEntityPage(chain, entity))
      for (const block of blocks) if (block.first >= dropped) yield toPiece(block, filter)
  }

  /** The blocks of one chain with records of an entity, newest first. */
  async function* eachEntityPage(chain: number, entity: string) {
    const or = entityKeys(chain, entity)
    for (let page = 1, isLast = false; !isLast; page++) {
      const { rows, total } = await findRows({ or }, page, OPENED)
      isLast = page * OPENED >= total
      yield { blocks: rows.map((row) => openRecord(keys, row) as LogBlockRecord), isLast }
    }
  }

  function entityKeys(chain: number, entity: string): { key: Uint8Array }[] {
    return Array.from({ length: ENTITY_DIGITS }, (_, digit) => ({
      key: digestKey(keys, 'log_block', entityField(entity, digit, chain)),
    }))
  }

  /** How many records of the entity are in blocks of the chain. */
  async function countEntity(chain: number, entity: string): Promise<number> {
    let sum = 0
    for (const [digit, key] of entityKeys(chain, entity).entries())
      sum += 2 ** digit * (await findRows(key, BEYOND, 1)).total
    return sum
  }

  /** Blocks are found by the index of entities. */
  async function takeEntity(
    { chain: number }: LogRows,
    { head }: Chain,
    filter: LogFilter,
    entity: string,
    taking: Taking,
  ): Promise<void> {
    const before = taking.result.total
    for await (const { blocks, isLast } of eachEntityPage(number, entity)) {
      for (const block of blocks) if (block.first >= head.dropped) taking.take(block)
      if (!isCountable(filter) || !taking.isFull() || isLast) continue
      taking.result.total = before + (await countEntity(number, entity))
      return
    }
  }

  /** All of the log's rows without `where`. */
  function findRows(where: Where | undefined, page: number, size: number) {
    const all = digestAll(keys, 'log_block')
    const query = { kind: LOG_ROWS, tenant, all, page, size }
    return reader.find(where === undefined ? query : { ...query, where })
  }

  /** Walks the whole log: every chain, and that none is missing. */
  async function verify(): Promise<LogCheck> {
    const sum = { count: 0, rows: 0 }
    for (const rows of chains) {
      const { count, brokenAt, rows: own } = await verifyChain(rows)
      const isMissing = listed !== undefined && own === 0
      if (brokenAt !== undefined || isMissing)
        return { count: sum.count + count, brokenAt: sum.count + (brokenAt ?? 1) }
      sum.count += count
      sum.rows += own
    }
    const { items, isWhole } = await readHeld()
    if (!isWhole || (await findRows(undefined, BEYOND, 1)).total !== sum.rows)
      return { count: sum.count, brokenAt: sum.count + 1 }
    return { count: sum.count + items.length }
  }
}

async function takeBlocks(rows: LogRows, chain: Chain, filter: LogFilter, taking: Taking): Promise<void> {
  const { count, dropped, partRecords } = chain.head
  let left = count - dropped - partRecords
  for await (const { header, load } of eachHeader(rows, chain)) {
    // Of all records the rest is known without another header.
    if (isAll(filter) && taking.isFull()) return taking.skip(left)
    const matching = countIn(header, filter)
    left -= header.count
    if (matching !== undefined && taking.skips(matching)) taking.skip(matching)
    else taking.take(await load())
  }
}

/** Whether the number of an entity's records is known from the keys of blocks. */
function isCountable(filter: LogFilter): boolean {
  const isRanged = filter.from !== Number.NEGATIVE_INFINITY || filter.below !== Number.POSITIVE_INFINITY
  return filter.types === undefined && !filter.isSpecial && !isRanged
}

function isAll(filter: LogFilter): boolean {
  return filter.entity === undefined && isCountable(filter)
}

/** Gathers a page from blocks, newest first, and counts what matches. */
type Taking = ReturnType<typeof createTaking>

function createTaking(filter: LogFilter, skip: number, size: number) {
  const result: LogPage = { records: [], total: 0 }
  let before = skip
  return { result, isFull, skips, skip: skipOver, take }

  function isFull(): boolean {
    return result.records.length === size
  }

  /** Whether none of so many records is on the page. */
  function skips(count: number): boolean {
    return isFull() || count <= before
  }

  function skipOver(count: number): void {
    result.total += count
    before = Math.max(0, before - count)
  }

  function take(block: LogBlockRecord): void {
    const found = matchesIn(block, filter)
    const records = skips(found.length) ? [] : found.toReversed()
    const page = records.slice(before, before + size - result.records.length)
    for (const index of page) result.records.push(recordAt(block, index))
    skipOver(found.length)
  }
}
