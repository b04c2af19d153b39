/**
 * Reads a sorted table, one sealed block at a time. After a table is written, its file changes in one way only: the
 * records of dead rows are overwritten with zeros. A {@link LiveSSTable} stores which rows are dead.
 */
import { damaged } from '../../../errors.js'
import { asBuffer, toBase64 } from '../../bytes.js'
import type { Row, RowId } from '../../engine.js'
import { bareRow, NOTHING } from '../../rows/row.js'
import type { LsmContext } from '../context.js'
import { encodeCopies, encodeOnlyCopy, findCopies, LENGTH_BYTES, SEARCHED_BYTES } from './footer-copies.js'
import * as format from './format.js'

export interface SSTableMeta {
  /** 16 bytes in hexadecimal. */
  id: string
  /** The tag of the sealed footer, base64. Undefined for a table that `state` does not list. */
  tag: string | undefined
  bytes: number
  rows: number
  from: number
  to: number
}

const MAX_CACHED_BYTES = 1024

export class SSTable {
  readonly meta: SSTableMeta
  readonly path: string
  readonly #context: LsmContext
  readonly #id: Uint8Array
  readonly #serial: number
  #footer: format.Footer | undefined
  /** True if {@link checkEnd} found damage. The next compaction writes a table with a damaged end again. */
  hasDamagedEnd = false

  constructor(context: LsmContext, meta: SSTableMeta) {
    this.meta = meta
    this.path = format.sstablePath(context.directory, meta.id)
    this.#context = context
    this.#id = Buffer.from(meta.id, 'hex')
    this.#serial = context.tables++
  }

  get rows(): number {
    return this.meta.rows
  }

  /** @throws CofferError `vault_damaged` if the file has no footer with the tag that `state` lists */
  get footer(): format.Footer {
    this.#footer ??= this.#openFooter()
    return this.#footer
  }

  get #file(): number {
    const file = this.#context.open.get(this.path)
    if (file === undefined) throw damaged(`${this.path} is missing`)
    return file
  }

  close(): void {
    this.#context.open.close(this.path)
  }

  #openFooter(): format.Footer {
    return format.decodeFooter(this.#findFooter().plain)
  }

  /** Returns the copy of the footer at the end of the file, or else a copy that a search finds. */
  #findFooter(): { sealed: Buffer; plain: Uint8Array } {
    for (const sealed of this.#copies()) {
      const plain = this.#unseal(sealed)
      if (plain !== undefined) return { sealed, plain }
    }
    const size = this.#context.files.size(this.#file)
    if (size !== this.meta.bytes)
      throw damaged(
        `${this.path} does not have the length that the vault's state lists, and has lost its footer`,
      )
    throw damaged(`${this.path} has a footer that does not open`)
  }

  *#copies(): Generator<Buffer> {
    const listed = this.#readListed()
    if (listed !== undefined) yield listed
    const size = this.#context.files.size(this.#file)
    const searched = Math.min(size, SEARCHED_BYTES)
    yield* findCopies(this.readExactly(size - searched, searched))
  }

  /**
   * Reads the last copy of the footer. The place of this copy is known, because `state` lists the length of the file.
   * Returns undefined if no footer is at this place.
   */
  #readListed(): Buffer | undefined {
    const { bytes } = this.meta
    if (this.#context.files.size(this.#file) < bytes) return undefined
    const end = bytes - LENGTH_BYTES
    const length = end < 0 ? 0 : this.readExactly(end, LENGTH_BYTES).readUInt32LE()
    if (length < format.BLOCK_SEAL || length > end) return undefined
    return this.readExactly(end - length, length)
  }

  #unseal(sealed: Buffer): Uint8Array | undefined {
    const { tag } = this.meta
    if (tag !== undefined && toBase64(sealed.subarray(sealed.length - format.TAG_BYTES)) !== tag)
      return undefined
    return this.#context.keys.sstable.open(sealed, format.associateBlock(this.#id, format.FOOTER, 0))
  }

  /**
   * Compares the end of the file with the two copies of the footer. Returns the damage, if any. A table with one
   * undamaged copy is still readable. @throws CofferError `vault_damaged` if no copy can be opened
   */
  checkEnd(): string | undefined {
    const { sealed } = this.#findFooter()
    const expected = this.footer.copies === undefined ? encodeOnlyCopy(sealed) : encodeCopies(sealed)
    const { bytes } = this.meta
    const difference = this.#context.files.size(this.#file) - bytes
    const isWhole =
      difference === 0 && this.readExactly(bytes - expected.length, expected.length).equals(expected)
    this.hasDamagedEnd = !isWhole
    if (isWhole) return undefined
    if (difference === 0) return 'One of the two copies of its footer is damaged.'
    const distance = Math.abs(difference)
    const amount = distance === 1 ? '1 byte' : `${distance} bytes`
    return difference < 0 ? `The file is ${amount} too short.` : `The file is ${amount} too long.`
  }

  readExactly(position: number, length: number): Buffer {
    const target = Buffer.allocUnsafe(length)
    if (this.#context.files.read(this.#file, target, position) < target.length)
      throw damaged(`${this.path} is too short`)
    return target
  }

  block(section: format.Section, number: number): Buffer {
    const { blocks } = this.#context
    // A key has 53 bits: 24 for the number of the block, 2 for the section, and 27 for the table.
    const key = (this.#serial * 4 + section) * 2 ** 24 + number
    const known = blocks.get(key)
    if (known !== undefined) return known
    const block = this.openBlock(section, number)
    blocks.set(key, block)
    return block
  }

  /** Bypasses the cache, for scans of whole tables. */
  openBlock(section: format.Section, number: number): Buffer {
    const { start, count } = this.footer.sections[section]!
    const most = format.ENTRIES_PER_BLOCK[section]
    const entries = Math.min(most, count - number * most)
    if (entries <= 0) throw damaged(`${this.path} has too few blocks`)
    const width = format.ENTRY_BYTES[section]
    const sealed = this.readExactly(
      start + number * (most * width + format.BLOCK_SEAL),
      entries * width + format.BLOCK_SEAL,
    )
    const plain = this.#context.keys.sstable.open(sealed, format.associateBlock(this.#id, section, number))
    if (plain === undefined)
      throw damaged(`${this.path} has a broken block (section ${section}, number ${number})`)
    return asBuffer(plain)
  }

  count(section: format.Section): number {
    return this.footer.sections[section]!.count
  }

  entry(row: number): format.RowEntry {
    return new format.RowEntry(
      this.block(format.ROWS, format.blockOf(format.ROWS, row)),
      format.offsetOf(format.ROWS, row),
    )
  }

  /**
   * Returns the row without keys. A record of more than `most` bytes is left unread, unless the record is small enough
   * for the cache. If `read` is given, `read` returns the record, and the cache and the file are not used.
   */
  row(
    number: number,
    most = Number.POSITIVE_INFINITY,
    read?: (offset: number, length: number) => Buffer,
  ): Row {
    const entry = this.entry(number)
    const { offset, length } = entry
    if (length > MAX_CACHED_BYTES && length > most) return { ...bareRow(entry, NOTHING), unread: length }
    if (read !== undefined) return bareRow(entry, read(offset, length))
    if (length > MAX_CACHED_BYTES) return bareRow(entry, this.readExactly(offset, length))
    const { records } = this.#context
    const key = this.#serial * 2 ** 24 + number
    let sealed = records.get(key)
    if (sealed === undefined) {
      sealed = this.readExactly(offset, length)
      records.set(key, sealed)
    }
    return bareRow(entry, sealed)
  }

  /**
   * Returns how many entries of an index are below the 8 bytes that the words `high` and `low` contain. Opens at most
   * one block of the index.
   */
  countBelow(index: format.Index, high: number, low: number): number {
    const number = format.countBelow(this.footer.fences[index]!, 8, high, low) - 1
    if (number < 0) return 0
    return (
      number * format.ENTRIES_PER_BLOCK[index] +
      format.countBelow(this.block(index, number), format.WIDTH, high, low)
    )
  }

  rowAt(index: format.Index, entry: number): number {
    return this.block(index, format.blockOf(index, entry)).readUInt32LE(format.offsetOf(index, entry) + 8)
  }

  /**
   * Calls `visit` with the row of each entry of `KEYS` from number `from` up to, but without, number `to`. Reads one
   * block at a time.
   */
  eachPosted(from: number, to: number, visit: (row: number) => void): void {
    for (let entry = from; entry < to; ) {
      const block = this.block(format.KEYS, format.blockOf(format.KEYS, entry))
      const first = format.offsetOf(format.KEYS, entry)
      const end = Math.min(block.length, first + (to - entry) * format.WIDTH)
      for (let at = first; at < end; at += format.WIDTH) visit(block.readUInt32LE(at + 8))
      entry += (end - first) / format.WIDTH
    }
  }

  find(id: RowId): number | undefined {
    const key = asBuffer(id)
    const count = this.count(format.IDS)
    const high = key.readUInt32BE(0)
    const low = key.readUInt32BE(4)
    for (let entry = this.countBelow(format.IDS, high, low); entry < count; entry++) {
      const block = this.block(format.IDS, format.blockOf(format.IDS, entry))
      const at = format.offsetOf(format.IDS, entry)
      if (block.readUInt32BE(at) !== high || block.readUInt32BE(at + 4) !== low) return undefined
      const row = block.readUInt32LE(at + 8)
      if (this.entry(row).hasId(key)) return row
    }
    return undefined
  }

  /** The posting of a key: the `count` entries of `KEYS` from `start` on. */
  posting(key: Uint8Array): { start: number; count: number } {
    const bytes = asBuffer(key)
    const high = bytes.readUInt32BE(0)
    const low = bytes.readUInt32BE(4)
    const start = this.countBelow(format.KEYS, high, low)
    const end =
      low === 0xffffffff
        ? this.countBelow(format.KEYS, high + 1, 0)
        : this.countBelow(format.KEYS, high, low + 1)
    return { start, count: end - start }
  }

  /** The number of expired rows, which are the first entries of `EXPIRY`. */
  countExpired(now: number): number {
    return this.countBelow(format.EXPIRY, Math.floor((now + 1) / 2 ** 32), (now + 1) >>> 0)
  }

  /** Overwrites the sealed bytes of these rows with zeros, and syncs. The call may be repeated. */
  erase(rows: Iterable<number>): void {
    const { files } = this.#context
    for (const row of rows) {
      const { offset, length } = this.entry(row)
      files.write(this.#file, new Uint8Array(length), offset)
    }
    files.syncData(this.#file)
  }
}
