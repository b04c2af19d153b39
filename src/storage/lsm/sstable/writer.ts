/** Writes a sorted table from front to back: records, sections in sealed blocks, footer, tail; one block in memory. */
import { CofferError, damaged } from '../../../errors.js'
import type { Row } from '../../engine.js'
import type { Files } from '../../files.js'
import {
  associateBlock,
  BLOCK_BYTES,
  blockOf,
  copyRowEntry,
  DICT,
  ENTRY_BYTES,
  EXPIRY,
  encodeFooter,
  encodeTail,
  FOOTER,
  type Footer,
  IDS,
  offsetOf,
  POST,
  type Range,
  type RecordLocation,
  ROWS,
  type RowMeta,
  type Section,
  sstablePath,
  TAG_BYTES,
  writeRowEntry,
} from './format.js'
import type { SSTableContext, SSTableMeta } from './reader.js'

export type SSTableWriterContext = Omit<SSTableContext, 'cache' | 'open'>

const BUFFER = 1024 * 1024
/** Written bytes are synced in steps of this size, so that no sync takes long. */
const SYNC_STEP = 4 * 1024 * 1024

/** A file written from front to back through one buffer. */
class Output {
  readonly #files: Files
  readonly #file: number
  readonly #buffer = Buffer.allocUnsafe(BUFFER)
  #held = 0
  #written = 0
  #synced = 0

  constructor(files: Files, file: number) {
    this.#files = files
    this.#file = file
  }

  get position(): number {
    return this.#written + this.#held
  }

  add(bytes: Uint8Array): void {
    if (this.#held + bytes.length > BUFFER) this.flush()
    if (bytes.length > BUFFER) {
      this.#write(bytes)
      return
    }
    this.#buffer.set(bytes, this.#held)
    this.#held += bytes.length
  }

  flush(): void {
    if (this.#held > 0) this.#write(this.#buffer.subarray(0, this.#held))
    this.#held = 0
  }

  #write(bytes: Uint8Array): void {
    this.#files.write(this.#file, bytes, this.#written)
    this.#written += bytes.length
    if (this.#written - this.#synced < SYNC_STEP) return
    this.#files.syncData(this.#file)
    this.#synced = this.#written
  }
}

export class SSTableWriter {
  readonly id: Uint8Array
  readonly path: string
  readonly #context: SSTableWriterContext
  readonly #file: number
  readonly #output: Output
  readonly #block = Buffer.alloc(BLOCK_BYTES)
  readonly #fences: Record<typeof IDS | typeof DICT, Buffer[]> = { [IDS]: [], [DICT]: [] }
  readonly #sections: Footer['sections']
  readonly #tenants = new Map<number, number>()
  readonly #seq: Range = { low: 0, high: 0 }
  readonly #created: Range = { low: Number.POSITIVE_INFINITY, high: 0 }
  #lastCreated = 0
  #isOrdered = true
  readonly #expires: Range = { low: 0, high: 0 }
  #recordBytes = 0
  #rows = 0
  #section: Section | undefined
  #entries = 0

  /** @throws CofferError `storage_failed`. */
  constructor(context: SSTableWriterContext) {
    this.id = context.random.bytes(16)
    this.path = sstablePath(context.directory, this.id)
    this.#context = context
    const file = context.files.open(this.path, 'create')
    if (file === undefined) throw damaged(`${context.directory}/segments is missing`)
    this.#file = file
    this.#output = new Output(context.files, file)
    const none = () => ({ start: 0, length: 0 })
    this.#sections = { [IDS]: none(), [ROWS]: none(), [DICT]: none(), [POST]: none(), [EXPIRY]: none() }
  }

  addRecord(row: Row): RecordLocation {
    const offset = this.#output.position
    this.#output.add(row.sealed)
    this.#recordBytes = this.#output.position
    return { offset, length: this.#recordBytes - offset }
  }

  /** Appends bytes of records of another table. */
  addBytes(bytes: Uint8Array): void {
    this.#output.add(bytes)
    this.#recordBytes = this.#output.position
  }

  /** Sections come in the order rows, ids, post, dict, expiry; one without entries may be left out. */
  begin(section: Section): void {
    this.#end()
    this.#section = section
    this.#entries = 0
    this.#sections[section] = { start: this.#output.position, length: 0 }
  }

  /** Ascending by `seq`. */
  addRow(row: RowMeta, location: RecordLocation): void {
    const at = this.#slot(ROWS)
    writeRowEntry(this.#block, at, row, location)
    this.#noteRow(row.seq, row.created, row.tenant)
  }

  /** Adds the entry at `at` of another table's `block`, with a new offset of its record. */
  copyRow(block: Buffer, at: number, offset: number): void {
    const { seq, created, tenant } = copyRowEntry(block, at, this.#block, this.#slot(ROWS), offset)
    this.#noteRow(seq, created, tenant)
  }

  #noteRow(seq: number, created: number, tenant: number): void {
    if (this.#rows++ === 0) this.#seq.low = seq
    this.#seq.high = seq
    this.#created.low = Math.min(this.#created.low, created)
    this.#created.high = Math.max(this.#created.high, created)
    if (created < this.#lastCreated) this.#isOrdered = false
    this.#lastCreated = created
    this.#tenants.set(tenant, (this.#tenants.get(tenant) ?? 0) + 1)
  }

  /** Ascending by the first 8 bytes of the id, given as two words. */
  addId(high: number, low: number, row: number): void {
    const at = this.#slot(IDS)
    this.#writeKey(at, high, low)
    this.#block.writeUInt32LE(row, at + 8)
    this.#fence(IDS, at)
  }

  /** Rows of several keys, ascending within a key, keys ascending. */
  addPosted(row: number): void {
    this.#block.writeUInt32LE(row, this.#slot(POST))
  }

  /** Ascending by key, given as two words; `start` is the first number in `post`, or the row itself when `count` is 1. */
  addKey(high: number, low: number, start: number, count: number): void {
    const at = this.#slot(DICT)
    this.#writeKey(at, high, low)
    this.#block.writeUInt32LE(start, at + 8)
    this.#block.writeUInt32LE(count, at + 12)
    this.#fence(DICT, at)
  }

  /** Ascending by time. */
  addExpiry(expires: number, row: number): void {
    const at = this.#slot(EXPIRY)
    this.#block.writeUIntLE(expires, at, 6)
    this.#block.writeUInt32LE(row, at + 6)
    this.#block.writeUInt16LE(0, at + 10)
    if (this.#expires.low === 0) this.#expires.low = expires
    this.#expires.high = expires
  }

  /** Writes footer and tail, and syncs the file; its name is durable only after a sync of the directory. */
  finish(): SSTableMeta {
    this.#end()
    const footer: Footer = {
      rows: this.#rows,
      seq: this.#seq,
      created: this.#created,
      isOrdered: this.#isOrdered,
      expires: this.#expires,
      recordBytes: this.#recordBytes,
      sections: this.#sections,
      tenants: this.#tenants,
      idFences: Buffer.concat(this.#fences[IDS]),
      keyFences: Buffer.concat(this.#fences[DICT]),
    }
    const sealed = this.#context.cipher.seal(encodeFooter(footer), associateBlock(this.id, FOOTER, 0))
    const position = this.#output.position
    this.#output.add(sealed)
    this.#output.add(encodeTail(position, sealed.length))
    this.#output.flush()
    this.#context.files.sync(this.#file)
    this.#context.files.close(this.#file)
    return {
      id: this.id,
      tag: sealed.slice(sealed.length - TAG_BYTES),
      bytes: this.#output.position,
      rows: this.#rows,
      from: this.#seq.low,
      to: this.#seq.high,
    }
  }

  /** Closes and removes the unfinished file. */
  abandon(): void {
    this.#context.files.close(this.#file)
    this.#context.files.remove(this.path)
  }

  /** The offset of the next entry in its block. */
  #slot(section: Section): number {
    if (this.#section !== section)
      throw new CofferError('internal', 'A sorted table was written out of order.')
    const at = offsetOf(section, this.#entries)
    if (at === 0 && this.#entries > 0) this.#seal(section)
    this.#entries++
    return at
  }

  #writeKey(at: number, high: number, low: number): void {
    this.#block.writeUInt32BE(high, at)
    this.#block.writeUInt32BE(low, at + 4)
  }

  #fence(section: typeof IDS | typeof DICT, at: number): void {
    if (at === 0) this.#fences[section].push(Buffer.from(this.#block.subarray(0, 8)))
  }

  /** Seals the block of the last entry. */
  #seal(section: Section): void {
    const number = blockOf(section, this.#entries - 1)
    const plain = this.#block.subarray(0, offsetOf(section, this.#entries - 1) + ENTRY_BYTES[section])
    this.#output.add(this.#context.cipher.seal(plain, associateBlock(this.id, section, number)))
  }

  #end(): void {
    const section = this.#section
    if (section === undefined || this.#entries === 0) return
    this.#seal(section)
    this.#sections[section].length = this.#entries * ENTRY_BYTES[section]
    this.#entries = 0
  }
}
