/** The rows that a log is kept in: their names, and reading and writing them in one unit of work. */
import { BoundedMap } from '../../bounded-map.js'
import type { RecordKeys } from '../../crypto/ports.js'
import type {
  LogBlockHeader,
  LogBlockRecord,
  LogHeadRecord,
  LogIndexRecord,
} from '../../domain/log-record.js'
import type { RecordOf } from '../../domain/records.js'
import { damaged } from '../../errors.js'
import { type EngineReader, type EngineWriter, LOG_ROWS, type LogEntry, type Row } from '../engine.js'
import { bytesOf, linesOf, pack, type SealedEntry } from './log-block.js'
import { digestId, keysOfRecord, openRecord, sealRecord } from './sealing.js'

/** Headers in one record. */
export const INDEXED = 128
const CHAIN_BYTES = 16
const MOST_INDEXES = 256
/** Bytes of a seal's nonce, which tells two versions of a row apart. */
export const NONCE_BYTES = 24
/** The chain of an engine of one process. */
export const FIRST_CHAIN = 1

const nameRows = (chain: number) => ({
  head: `${chain}/head`,
  part: (number: number) => `${chain}/part/${number}`,
  block: (number: number) => `${chain}/block/${number}`,
  index: (number: number) => `${chain}/index/${number}`,
})

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

/**
 * What is remembered of a log, as of one version of its head. Readers that are still at work on it add what they read,
 * so a writer never changes it: it makes the next version.
 */
export interface Chain {
  readonly head: LogHeadRecord
  /** Names the version: a `rev` that was taken back is given again, a nonce is not. */
  readonly rev: number
  readonly nonce: Uint8Array
  /** What is in no block yet; undefined where it was not read. */
  end: readonly LogBlockRecord[] | undefined
  /** The same for the versions between which no block was added. */
  readonly indexes: BoundedMap<number, LogIndexRecord>
}

/** The chain's value after a block: the vault's keyed digest, 16 bytes, base64. A rekey of the vault keeps the key. */
export function chainValue(keys: RecordKeys, previous: string, { first, shapes, items }: LogBlockRecord) {
  const text = JSON.stringify(['log', previous, first, shapes, items])
  return Buffer.from(keys.logChain(Buffer.from(text), CHAIN_BYTES)).toString('base64')
}

/** The rows of one chain of a tenant's log, in one unit of work. */
export class LogRows<Rows extends EngineReader = EngineReader> {
  readonly tenant: number
  readonly keys: RecordKeys
  readonly chain: number
  readonly ids: ReturnType<typeof nameRows>
  protected readonly rows: Rows

  constructor(rows: Rows, keys: RecordKeys, tenant: number, chain: number) {
    this.rows = rows
    this.keys = keys
    this.tenant = tenant
    this.chain = chain
    this.ids = nameRows(chain)
  }

  async find(id: string): Promise<Row | undefined> {
    return this.rows.get(LOG_ROWS, this.tenant, digestId(this.keys, 'log_block', this.tenant, id))
  }

  /** @throws CofferError `vault_damaged` where there is none. */
  async read<T extends RecordOf['log_block']>(id: string): Promise<T> {
    const row = await this.find(id)
    if (row === undefined) throw damaged('A part of the log is missing or out of its place')
    return openRecord(this.keys, row) as T
  }
}

export class LogWriter extends LogRows<EngineWriter> {
  /** `isNew`: there was never one of this id. Gives the version through `written`. */
  async put(
    record: RecordOf['log_block'],
    isNew: boolean,
    written?: (rev: number, nonce: Uint8Array) => void,
  ): Promise<void> {
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
        const sealed = sealRecord(keys, { id, rev }, record)
        written?.(rev, sealed.slice(0, NONCE_BYTES))
        return sealed
      },
    })
  }

  async remove(id: string): Promise<void> {
    await this.rows.remove(LOG_ROWS, this.tenant, digestId(this.keys, 'log_block', this.tenant, id))
  }
}

export function createChain({ keys, ids }: LogRows, row: Row | undefined): Chain {
  return {
    head: row === undefined ? { id: ids.head, ...EMPTY } : (openRecord(keys, row) as LogHeadRecord),
    rev: row?.rev ?? -1,
    nonce: Uint8Array.from(row?.sealed.subarray(0, NONCE_BYTES) ?? []),
    end: row === undefined ? [] : undefined,
    indexes: new BoundedMap(MOST_INDEXES),
  }
}

export function copyIndexes({ indexes }: Chain): Chain['indexes'] {
  const copy: Chain['indexes'] = new BoundedMap(MOST_INDEXES)
  for (const [number, index] of indexes) copy.set(number, index)
  return copy
}

export async function readIndex(rows: LogRows, chain: Chain, number: number): Promise<LogIndexRecord> {
  const known = chain.indexes.get(number)
  if (known !== undefined) return known
  const index = await rows.read<LogIndexRecord>(rows.ids.index(number))
  chain.indexes.set(number, index)
  return index
}

export async function headerOf(rows: LogRows, chain: Chain, block: number): Promise<LogBlockHeader> {
  const number = Math.floor(block / INDEXED)
  const known = chain.indexes.get(number) ?? (await readIndex(rows, chain, number))
  return known.headers[block % INDEXED]!
}

/** The parts that are in no block yet, oldest first. @throws CofferError `vault_damaged` */
export async function readEnd(rows: LogRows, chain: Chain): Promise<readonly LogBlockRecord[]> {
  if (chain.end !== undefined) return chain.end
  const { parts, count, partRecords } = chain.head
  const end: LogBlockRecord[] = []
  let first = count - partRecords
  for (let number = 0; number < parts; number++) {
    const part = await rows.read<LogBlockRecord>(rows.ids.part(number))
    if (part.first !== first) throw damaged('A part of the log is missing or out of its place')
    end.push(part)
    first += part.items.length
  }
  chain.end = end
  return end
}

/** Entries that are put into the log later, bound to `id`. */
export function keepEntries(keys: RecordKeys, id: Uint8Array, entries: readonly LogEntry[]): Uint8Array {
  const lines = (entries as readonly SealedEntry[]).map(({ line }) => line)
  return keys.data.seal(Buffer.from(JSON.stringify(pack('', 0, lines))), associateKept(keys, id))
}

/** Undefined where they do not open. */
export function recallEntries(keys: RecordKeys, tenant: number, id: Uint8Array, kept: Uint8Array) {
  const plain = keys.data.open(kept, associateKept(keys, id))
  if (plain === undefined) return undefined
  const block = JSON.parse(Buffer.from(plain).toString('utf8')) as LogBlockRecord
  return linesOf(block).map((line): SealedEntry => ({ tenant, bytes: bytesOf(line[2], line[3]), line }))
}

/** Of another length than what a record's seal names, so neither opens as the other. */
function associateKept(keys: RecordKeys, id: Uint8Array): Uint8Array {
  return keys.index.digest(`["waiting","${Buffer.from(id).toString('hex')}"]`)
}
