/** Reads an immutable sorted table, a sealed block at a time. {@link LiveSSTable} knows which rows are dead. */
import type { Cipher, RandomSource } from '../../../crypto/ports.js'
import { damaged } from '../../../errors.js'
import { asBuffer, isEqual } from '../../bytes.js'
import type { Row, RowId } from '../../engine.js'
import type { Files } from '../../files.js'
import { firstNotBelow, isKeyAt, lastFence } from './binary-search.js'
import type { BlockCache } from './block-cache.js'
import {
  associateBlock,
  BLOCK_SEAL,
  blockOf,
  DICT,
  decodeFooter,
  decodeTail,
  ENTRY_BYTES,
  EXPIRY,
  FOOTER,
  type Footer,
  IDS,
  offsetOf,
  POST,
  ROWS,
  type RowEntry,
  readRowEntry,
  type Section,
  sstablePath,
  TAG_BYTES,
  TAIL_LENGTH,
  wholeBlock,
} from './format.js'
import { IdFilter } from './id-filter.js'
import type { OpenFiles } from './open-files.js'

export interface SSTableContext {
  files: Files
  directory: string
  cipher: Cipher
  random: RandomSource
  cache: BlockCache
  open: OpenFiles
}

/** A table as `state` describes it. */
export interface SSTableMeta {
  id: Uint8Array
  /** The sealed footer's tag, 16 bytes. */
  tag: Uint8Array
  bytes: number
  rows: number
  /** Lowest and highest `seq`. */
  from: number
  to: number
}

/** Rows that carry one key: `count` numbers in `post` from `start` on, or the one row itself. */
export interface Posting {
  start: number
  count: number
}

/** The end of the file is read in one piece of this length; it holds most footers. */
const END_PIECE = 8192
const NOTHING = new Uint8Array(0)

/** Records up to this many bytes are cached as they are sealed. */
const MOST_CACHED_BYTES = 4096

export class SSTable {
  readonly meta: SSTableMeta
  readonly path: string
  readonly #context: SSTableContext
  readonly #serial: number
  readonly #ids = new IdFilter()
  #footer: Footer | undefined

  constructor(context: SSTableContext, meta: SSTableMeta) {
    this.meta = meta
    this.path = sstablePath(context.directory, meta.id)
    this.#context = context
    this.#serial = context.cache.register()
  }

  /** @throws CofferError `vault_damaged` when it is not the footer that `state` knows. */
  get footer(): Footer {
    this.#footer ??= this.#openFooter()
    return this.#footer
  }

  get file(): number {
    const file = this.#context.open.get(this.path)
    if (file === undefined) throw damaged(`${this.path} is missing`)
    return file
  }

  close(): void {
    this.#context.open.close(this.path)
  }

  #openFooter(): Footer {
    const { bytes, tag, id } = this.meta
    if (this.#context.files.size(this.file) !== bytes)
      throw damaged(`${this.path} has another length than it should`)
    const piece = this.readExactly(Math.max(0, bytes - END_PIECE), Math.min(bytes, END_PIECE))
    const tail = decodeTail(piece.subarray(Math.max(0, piece.length - TAIL_LENGTH)))
    if (tail === undefined || tail.position + tail.length + TAIL_LENGTH !== bytes)
      throw damaged(`${this.path} has a broken end`)
    const inPiece = tail.position - (bytes - piece.length)
    const sealed =
      inPiece >= 0
        ? piece.subarray(inPiece, inPiece + tail.length)
        : this.readExactly(tail.position, tail.length)
    const plain = this.#context.cipher.open(sealed, associateBlock(id, FOOTER, 0))
    if (plain === undefined || !isEqual(sealed.subarray(sealed.length - TAG_BYTES), tag))
      throw damaged(`${this.path} has a footer that does not open`)
    const footer = decodeFooter(plain)
    if (footer === undefined) throw damaged(`${this.path} has a footer of another version`)
    return footer
  }

  /** @throws CofferError `vault_damaged` when the file ends before. */
  readExactly(position: number, length: number): Buffer {
    return this.readInto(Buffer.allocUnsafe(length), position)
  }

  /** Fills `target` and returns it. */
  readInto(target: Buffer, position: number): Buffer {
    if (this.#context.files.read(this.file, target, position) < target.length)
      throw damaged(`${this.path} is too short`)
    return target
  }

  /** The plain entries of one block. */
  block(section: Section, number: number): Buffer {
    return this.#context.cache.block(this.#serial, section, number, () => this.openBlock(section, number))
  }

  /** Bypasses the cache, for scans of everything. */
  openBlock(section: Section, number: number): Buffer {
    const { start, length } = this.footer.sections[section]
    const whole = wholeBlock(section)
    const expected = Math.min(whole, length - number * whole)
    if (expected <= 0) throw damaged(`${this.path} has fewer blocks than it should`)
    const { cache } = this.#context
    const target = cache.sealed.subarray(0, expected + BLOCK_SEAL)
    const sealed = this.readInto(target, start + number * (whole + BLOCK_SEAL))
    cache.opened++
    const plain = this.#context.cipher.open(sealed, associateBlock(this.meta.id, section, number))
    if (plain === undefined)
      throw damaged(`${this.path} has a broken block (section ${section}, number ${number})`)
    return asBuffer(plain)
  }

  /** How many entries a section has. */
  count(section: Section): number {
    return this.footer.sections[section].length / ENTRY_BYTES[section]
  }

  entry(row: number): RowEntry {
    return readRowEntry(this.#rowBlock(row), offsetOf(ROWS, row))
  }

  seqOf(row: number): number {
    return this.#rowBlock(row).readUIntLE(offsetOf(ROWS, row) + 16, 6)
  }

  createdOf(row: number): number {
    return this.#rowBlock(row).readUIntLE(offsetOf(ROWS, row) + 28, 6)
  }

  modifiedOf(row: number): number {
    return this.#rowBlock(row).readUIntLE(offsetOf(ROWS, row) + 34, 6)
  }

  #rowBlock(row: number): Buffer {
    return this.block(ROWS, blockOf(ROWS, row))
  }

  /**
   * The row as it was written, but without its keys, which only the index has. A row of more than `most` sealed bytes
   * is left unread unless it is small enough to be cached.
   */
  row(number: number, most = Number.POSITIVE_INFINITY): Row {
    const { id, seq, rev, created, modified, expires, offset, length, kind, tenant } = this.entry(number)
    const known = { kind, tenant, id, seq, rev, created, modified, expires, keys: NOTHING }
    if (length > MOST_CACHED_BYTES && length > most) return { ...known, sealed: NOTHING, unread: length }
    const read = () => this.readExactly(offset, length)
    const sealed =
      length > MOST_CACHED_BYTES ? read() : this.#context.cache.record(this.#serial, number, read)
    return { kind, tenant, id, seq, rev, created, modified, expires, keys: NOTHING, sealed }
  }

  /** Returns the number of the row. Opens one block of `ids`, and one of `rows` if the first half of the id matches. */
  find(id: RowId): number | undefined {
    const { idFences, rows } = this.footer
    const key = asBuffer(id)
    if (this.#ids.excludes(key, rows, idFences.length / 8, this.#idBlock)) return undefined
    for (let number = lastFence(idFences, key); number >= 0; number--) {
      const row = this.#findIn(this.#idBlock(number), key)
      if (row !== undefined) return row
      // Ids with this first half lie in the block before only if this block begins with one of them.
      if (!isKeyAt(idFences, number * 8, key)) return undefined
    }
    return undefined
  }

  readonly #idBlock = (number: number): Buffer => this.block(IDS, number)

  #findIn(block: Buffer, id: Buffer): number | undefined {
    const width = ENTRY_BYTES[IDS]
    for (let at = firstNotBelow(block, width, id) * width; at < block.length; at += width) {
      if (!isKeyAt(block, at, id)) return undefined
      const row = block.readUInt32LE(at + 8)
      if (this.#isRow(row, id)) return row
    }
    return undefined
  }

  #isRow(row: number, id: Buffer): boolean {
    const at = offsetOf(ROWS, row)
    return this.#rowBlock(row).compare(id, 0, 16, at, at + 16) === 0
  }

  posting(key: Uint8Array): Posting | undefined {
    const wanted = asBuffer(key)
    const number = lastFence(this.footer.keyFences, wanted)
    if (number < 0) return undefined
    const block = this.block(DICT, number)
    const at = firstNotBelow(block, ENTRY_BYTES[DICT], wanted) * ENTRY_BYTES[DICT]
    if (at === block.length || !isKeyAt(block, at, wanted)) return undefined
    return { start: block.readUInt32LE(at + 8), count: block.readUInt32LE(at + 12) }
  }

  /** The `index`-th row of a posting, ascending. */
  postedRow({ start, count }: Posting, index: number): number {
    if (count === 1) return start
    const at = start + index
    return this.block(POST, blockOf(POST, at)).readUInt32LE(offsetOf(POST, at))
  }

  /** The `index`-th row by time of expiry. */
  expiring(index: number): { expires: number; row: number } {
    const block = this.block(EXPIRY, blockOf(EXPIRY, index))
    const at = offsetOf(EXPIRY, index)
    return { expires: block.readUIntLE(at, 6), row: block.readUInt32LE(at + 6) }
  }

  /** Overwrites the sealed bytes of these rows with zeros, and syncs; doing so again changes nothing. */
  erase(rows: Iterable<number>): void {
    const { files } = this.#context
    for (const row of rows) {
      const { offset, length } = this.entry(row)
      files.write(this.file, new Uint8Array(length), offset)
    }
    files.syncData(this.file)
  }
}
