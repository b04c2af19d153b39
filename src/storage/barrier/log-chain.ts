/**
 * One chain of a tenant's log, in a unit of work. Each commit adds a part; parts are joined into blocks of about 16 kB.
 * Index rows have a header for each block, and the head says where the chain ends. ARCHITECTURE.md has the layout.
 */
import { BoundedMap } from '../../bounded-map.js'
import type { RecordKeys } from '../../crypto/ports.js'
import { entityField } from '../../domain/records/index-fields.js'
import type {
  LogBlockHeader,
  LogBlockRecord,
  LogHeadRecord,
  LogIndexRecord,
} from '../../domain/records/log-record.js'
import type { RecordOf } from '../../domain/records/records.js'
import { CofferError, damaged } from '../../errors.js'
import { isEqual } from '../bytes.js'
import { type Awaitable, type EngineReader, LOG_ROWS, type Row } from '../engine.js'
import type { LogCheck } from '../store.js'
import { countIn, describe, isAll, type LogFilter, matchesIn } from './log-block.js'
import type { Piece, Source } from './log-merge.js'
import { digestAll, digestId, digestKey, openRecord } from './sealing.js'

/** Headers in one index row. */
export const INDEXED = 128
/** The chain of an engine of one process. */
export const FIRST_CHAIN = 1
const CHAIN_BYTES = 16
const MOST_CHAINS = 1024
/** Blocks that are opened before others have a turn. */
const OPENED_AT_ONCE = 8

const EMPTY: Omit<LogHeadRecord, 'id'> = {
  count: 0,
  dropped: 0,
  blocks: 0,
  gone: 0,
  parts: 0,
  partBytes: 0,
  partRecords: 0,
  mostParts: 0,
  start: '',
  base: '',
  value: '',
}

/** A chain as one version of its head has it; never changed, because readers may still be at work on it. */
export interface Version {
  readonly head: LogHeadRecord
  /** The nonce of the head's seal: no two versions share it. */
  readonly nonce: Uint8Array
  /** The parts that are in no block yet, oldest first; undefined until they are read. */
  parts: readonly LogBlockRecord[] | undefined
}

/** The newest version of each chain, by tenant and chain. */
export class ChainCache extends BoundedMap<string, Version> {
  constructor() {
    super(MOST_CHAINS)
  }
}

/** The names of a chain's rows within the tenant's log. */
export const HEAD = 'head'
export const partName = (number: number) => `part/${number}`
export const blockName = (number: number) => `block/${number}`
export const indexName = (number: number) => `index/${number}`

export class LogChain<Rows extends EngineReader = EngineReader> {
  readonly tenant: number
  readonly number: number
  protected readonly rows: Rows
  protected readonly keys: RecordKeys
  readonly #cache: ChainCache
  #opened = 0

  constructor(rows: Rows, keys: RecordKeys, tenant: number, number: number, cache: ChainCache) {
    this.rows = rows
    this.keys = keys
    this.tenant = tenant
    this.number = number
    this.#cache = cache
  }

  protected nameOf(row: string): string {
    return `${this.number}/${row}`
  }

  find(name: string): Awaitable<Row | undefined> {
    const id = digestId(this.keys, 'log_block', this.tenant, this.nameOf(name))
    return this.rows.get(LOG_ROWS, this.tenant, id)
  }

  /** @throws CofferError `vault_damaged` if there is no such row */
  async read<T extends RecordOf['log_block']>(name: string): Promise<T> {
    const row = await this.find(name)
    if (row === undefined) throw damaged('A part of the log is missing or out of its place')
    return openRecord(this.keys, row) as T
  }

  /** The chain as the rows of this unit have it. */
  async load(): Promise<Version> {
    const row = await this.find(HEAD)
    const known = this.#cache.get(this.#name)
    if (known !== undefined && row !== undefined && isEqual(known.nonce, nonceOf(row.sealed))) return known
    const version = this.#open(row)
    // A reader may be behind the writer, whose version has more records.
    if (known === undefined || known.head.count <= version.head.count) this.#cache.set(this.#name, version)
    return version
  }

  protected keep(version: Version): void {
    this.#cache.set(this.#name, version)
  }

  get #name(): string {
    return `${this.tenant}/${this.number}`
  }

  #open(row: Row | undefined): Version {
    if (row === undefined)
      return { head: { id: this.nameOf(HEAD), ...EMPTY }, nonce: new Uint8Array(0), parts: [] }
    const head = openRecord(this.keys, row) as LogHeadRecord
    return { head, nonce: Uint8Array.from(nonceOf(row.sealed)), parts: undefined }
  }

  /** @throws CofferError `vault_damaged` */
  protected async readParts(version: Version): Promise<readonly LogBlockRecord[]> {
    if (version.parts !== undefined) return version.parts
    const { parts, count, partRecords } = version.head
    const found: LogBlockRecord[] = []
    let first = count - partRecords
    for (let number = 0; number < parts; number++) {
      const part = await this.read<LogBlockRecord>(partName(number))
      if (part.first !== first) throw damaged('A part of the log is missing or out of its place')
      found.push(part)
      first += part.items.length
    }
    version.parts = found
    return found
  }

  /** The chain's value after a block: a keyed digest that a rekey of the vault keeps. */
  protected valueAfter(previous: string, { first, shapes, items }: LogBlockRecord): string {
    const text = JSON.stringify(['log', previous, first, shapes, items])
    return Buffer.from(this.keys.logChain(Buffer.from(text), CHAIN_BYTES)).toString('base64')
  }

  /** The chain's records for a page, newest first. */
  async list(filter: LogFilter): Promise<Source> {
    const version = await this.load()
    const { count, dropped } = version.head
    return { pieces: this.#eachPiece(version, filter), ...(isAll(filter) && { total: count - dropped }) }
  }

  async *#eachPiece(version: Version, filter: LogFilter): AsyncGenerator<Piece> {
    for (const part of (await this.readParts(version)).toReversed()) yield toPiece(part, filter)
    if (filter.entity === undefined) yield* this.#eachBlock(version.head, filter)
    else for await (const block of this.#eachBlockOf(filter.entity)) yield toPiece(block, filter)
  }

  async *#eachBlock({ blocks, gone }: LogHeadRecord, filter: LogFilter): AsyncGenerator<Piece> {
    for (let index = Math.ceil(blocks / INDEXED) - 1; index * INDEXED >= gone - INDEXED + 1; index--) {
      const { headers } = await this.read<LogIndexRecord>(indexName(index))
      const first = index * INDEXED
      for (let number = Math.min(blocks, first + INDEXED) - 1; number >= Math.max(gone, first); number--) {
        const header = headers[number - first]!
        const load = () => this.#readGently(number)
        yield { from: header.from, to: header.to, matching: countIn(header, filter), load }
      }
    }
  }

  /** The blocks with records of an entity, newest first. */
  async *#eachBlockOf(entity: string): AsyncGenerator<LogBlockRecord> {
    const key = digestKey(this.keys, 'log_block', entityField(entity, this.number))
    for (let page = 1, left = 1; left > 0; page++) {
      const all = digestAll(this.keys, 'log_block')
      const query = { kind: LOG_ROWS, tenant: this.tenant, all, where: { key }, page, size: OPENED_AT_ONCE }
      const { rows, total } = await this.rows.find(query)
      left = total - page * OPENED_AT_ONCE
      for (const row of rows) yield openRecord(this.keys, row) as LogBlockRecord
      if (left > 0) await new Promise(setImmediate)
    }
  }

  async #readGently(number: number): Promise<LogBlockRecord> {
    if (++this.#opened % OPENED_AT_ONCE === 0) await new Promise(setImmediate)
    return this.read<LogBlockRecord>(blockName(number))
  }

  /** `rows`: how many rows the chain has; parts that were joined are still there. */
  async verify(): Promise<LogCheck & { rows: number }> {
    // Nothing that is remembered: what is stored is to be checked.
    const version = this.#open(await this.find(HEAD))
    const { head } = version
    const count = head.count - head.dropped
    let first = head.dropped
    let { start: value } = head
    const broken = () => ({ count, brokenAt: first - head.dropped + 1, rows: countRows(head) })
    const follows = (block: LogBlockRecord, header?: LogBlockHeader): boolean => {
      value = this.valueAfter(value, block)
      if (block.first !== first) return false
      if (header !== undefined && JSON.stringify(describe(block, value)) !== JSON.stringify(header))
        return false
      first += block.items.length
      return true
    }
    try {
      let index: LogIndexRecord | undefined
      for (let number = head.gone; number < head.blocks; number++) {
        if (index === undefined || number % INDEXED === 0)
          index = await this.read<LogIndexRecord>(indexName(Math.floor(number / INDEXED)))
        if (!follows(await this.#readGently(number), index.headers[number % INDEXED]!)) return broken()
      }
      for (const part of await this.readParts(version)) if (!follows(part)) return broken()
    } catch (error) {
      if (error instanceof CofferError && error.code === 'vault_damaged') return broken()
      throw error
    }
    return first === head.count && value === head.value ? { count, rows: countRows(head) } : broken()
  }
}

export function toPiece(block: LogBlockRecord, filter: LogFilter): Piece {
  const { from, to } = describe(block, '')
  return { from, to, matching: matchesIn(block, filter).length, load: () => block }
}

const NONCE_BYTES = 24

export function nonceOf(sealed: Uint8Array): Uint8Array {
  return sealed.subarray(0, NONCE_BYTES)
}

/** How many rows the chain has, parts that were joined included. */
function countRows({ count, blocks, gone, mostParts }: LogHeadRecord): number {
  const indexes = Math.ceil(blocks / INDEXED) - Math.floor(gone / INDEXED)
  return count === 0 ? 0 : 1 + mostParts + (blocks - gone) + indexes
}
