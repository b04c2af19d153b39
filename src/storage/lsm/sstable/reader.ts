/**
 * Reads one immutable segment: nothing of it is opened before it is asked for, then one sealed block at a time.
 * Knows entries and postings; which of its rows are dead is known to those who hold it.
 */

import type { Cipher } from '../../../crypto/ports.js'
import { AFTER_DAMAGE, CofferError } from '../../../errors.js'
import { asBuffer, isEqual } from '../../bytes.js'
import type { RowId } from '../../engine.js'
import type { Files } from '../../files.js'
import type { BlockCache } from '../block-cache.js'
import type { StoredRow } from '../row-change.js'
import {
  associateBlock,
  BLOCK_SEAL,
  CHAIN,
  DICT,
  decodeFooter,
  decodeTail,
  ENTRY,
  EXPIRY,
  type Family,
  FOOTER,
  type Footer,
  IDS,
  PER_BLOCK,
  POST,
  ROWS,
  type RowEntry,
  readRowEntry,
  type Section,
  segmentPath,
  TAIL_LENGTH,
} from './format.js'

/** What a segment is read with. */
export interface SegmentPlace {
  files: Files
  directory: string
  cipher: Cipher
  cache: BlockCache
}

/** How `state` knows a segment. */
export interface SegmentName {
  id: Uint8Array
  family: Family
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

/** Records up to this many bytes are kept as they are sealed; they are asked for again and again. */
const KEPT_RECORD = 4096

export class Segment {
  readonly name: SegmentName
  readonly path: string
  readonly #place: SegmentPlace
  readonly #serial: number
  #file: number | undefined
  #footer: Footer | undefined

  constructor(place: SegmentPlace, name: SegmentName) {
    this.name = name
    this.path = segmentPath(place.directory, name.family, name.id)
    this.#place = place
    this.#serial = place.cache.register()
  }

  /** @throws CofferError `vault_damaged` when it is not the footer that `state` knows. */
  get footer(): Footer {
    this.#footer ??= this.#openFooter()
    return this.#footer
  }

  get file(): number {
    this.#file ??= this.#place.files.open(this.path, 'write')
    if (this.#file === undefined) throw this.#damaged('is missing')
    return this.#file
  }

  close(): void {
    if (this.#file !== undefined) this.#place.files.close(this.#file)
    this.#file = undefined
  }

  #openFooter(): Footer {
    const { bytes, tag, id, family } = this.name
    if (this.#place.files.size(this.file) !== bytes) throw this.#damaged('has another length than it should')
    const piece = this.#readExactly(Math.max(0, bytes - END_PIECE), Math.min(bytes, END_PIECE))
    const tail = decodeTail(piece.subarray(Math.max(0, piece.length - TAIL_LENGTH)))
    if (tail === undefined || tail.position + tail.length + TAIL_LENGTH !== bytes)
      throw this.#damaged('has a broken end')
    const inPiece = tail.position - (bytes - piece.length)
    const sealed =
      inPiece >= 0
        ? piece.subarray(inPiece, inPiece + tail.length)
        : this.#readExactly(tail.position, tail.length)
    const plain = this.#place.cipher.open(sealed, associateBlock(id, FOOTER, 0))
    if (plain === undefined || !isEqual(sealed.subarray(sealed.length - 16), tag)) {
      throw this.#damaged('has a footer that does not open')
    }
    const footer = decodeFooter(plain)
    if (footer === undefined || footer.family !== family)
      throw this.#damaged('has a footer of another version')
    return footer
  }

  #readExactly(position: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    if (this.#place.files.read(this.file, bytes, position) < length) throw this.#damaged('is too short')
    return bytes
  }

  /** The plain entries of one block. */
  block(section: Section, number: number): Buffer {
    return this.#place.cache.block(this.#serial, section, number, () => this.openBlock(section, number))
  }

  /** The same past the cache, for those who pass over everything once. */
  openBlock(section: Section, number: number): Buffer {
    const { start, length } = this.footer.sections[section]
    const whole = PER_BLOCK[section] * ENTRY[section]
    const expected = Math.min(whole, length - number * whole)
    if (expected <= 0) throw this.#damaged('has fewer blocks than it should')
    const sealed = this.#readExactly(start + number * (whole + BLOCK_SEAL), expected + BLOCK_SEAL)
    this.#place.cache.opened++
    const plain = this.#place.cipher.open(sealed, associateBlock(this.name.id, section, number))
    if (plain === undefined) throw this.#damaged(`has a broken block (section ${section}, number ${number})`)
    return asBuffer(plain)
  }

  /** How many entries a section has. */
  count(section: Section): number {
    return this.footer.sections[section].length / ENTRY[section]
  }

  entry(row: number): RowEntry {
    return readRowEntry(this.block(ROWS, Math.floor(row / 128)), (row % 128) * 64)
  }

  seqOf(row: number): number {
    return this.block(ROWS, Math.floor(row / 128)).readUIntLE((row % 128) * 64 + 16, 6)
  }

  createdOf(row: number): number {
    return this.block(ROWS, Math.floor(row / 128)).readUIntLE((row % 128) * 64 + 28, 6)
  }

  modifiedOf(row: number): number {
    return this.block(ROWS, Math.floor(row / 128)).readUIntLE((row % 128) * 64 + 34, 6)
  }

  /**
   * The row as it was written; its keys stay in the index and are not given back. One that is not kept and has more than
   * `most` sealed bytes is left unread.
   */
  row(number: number, most = Number.POSITIVE_INFINITY): StoredRow {
    const { id, seq, rev, created, modified, expires, offset, length, kind, tenant } = this.entry(number)
    const known = { kind, tenant, id, seq, rev, created, modified, expires, keys: NOTHING }
    if (length > KEPT_RECORD && length > most)
      return { ...known, sealed: NOTHING, chain: undefined, unread: length }
    const read = () => this.#readExactly(offset, length)
    const bytes = length > KEPT_RECORD ? read() : this.#place.cache.record(this.#serial, number, read)
    const isLog = this.name.family === 'logs'
    const sealed = isLog ? bytes.subarray(CHAIN) : bytes
    const chain = isLog ? bytes.subarray(0, CHAIN) : undefined
    return { kind, tenant, id, seq, rev, created, modified, expires, keys: NOTHING, sealed, chain }
  }

  /** Sealed bytes of records, for those who copy them. */
  readRecords(offset: number, length: number): Buffer {
    return this.#readExactly(offset, length)
  }

  /** The number of the row with this id. Opens one block of `ids`, and one of `rows` where the first half matches. */
  find(id: RowId): number | undefined {
    const { idFences } = this.footer
    const key = asBuffer(id)
    for (let number = lastFence(idFences, key); number >= 0; number--) {
      const row = this.#findIn(this.block(IDS, number), key)
      if (row !== undefined) return row
      // Ids of one first half may begin in the block before only where this block begins with it.
      if (!isKeyAt(idFences, number * 8, key)) return undefined
    }
    return undefined
  }

  #findIn(block: Buffer, id: Buffer): number | undefined {
    const count = block.length / 12
    for (let index = firstNotBelow(block, 12, id); index < count; index++) {
      if (!isKeyAt(block, index * 12, id)) return undefined
      const row = block.readUInt32LE(index * 12 + 8)
      if (this.#isRow(row, id)) return row
    }
    return undefined
  }

  #isRow(row: number, id: Buffer): boolean {
    const at = (row % 128) * 64
    return this.block(ROWS, Math.floor(row / 128)).compare(id, 0, 16, at, at + 16) === 0
  }

  posting(key: Uint8Array): Posting | undefined {
    const wanted = asBuffer(key)
    const number = lastFence(this.footer.keyFences, wanted)
    if (number < 0) return undefined
    const block = this.block(DICT, number)
    const at = firstNotBelow(block, 16, wanted) * 16
    if (at === block.length || !isKeyAt(block, at, wanted)) return undefined
    return { start: block.readUInt32LE(at + 8), count: block.readUInt32LE(at + 12) }
  }

  /** The `index`-th row of a posting, ascending. */
  postedRow({ start, count }: Posting, index: number): number {
    if (count === 1) return start
    const at = start + index
    return this.block(POST, Math.floor(at / 2048)).readUInt32LE((at % 2048) * 4)
  }

  /** The `index`-th row by time of expiry. */
  expiring(index: number): { expires: number; row: number } {
    const block = this.block(EXPIRY, Math.floor(index / 682))
    const at = (index % 682) * 12
    return { expires: block.readUIntLE(at, 6), row: block.readUInt32LE(at + 6) }
  }

  /** Overwrites the sealed bytes of these rows with zeros, and syncs; doing so again changes nothing. */
  erase(rows: Iterable<number>): void {
    const { files } = this.#place
    for (const row of rows) {
      const { offset, length } = this.entry(row)
      files.write(this.file, new Uint8Array(length), offset)
    }
    files.syncData(this.file)
  }

  #damaged(what: string): CofferError {
    return new CofferError('vault_damaged', `${this.path} ${what}. ${AFTER_DAMAGE}`)
  }
}

/** The least index below `count` of which `isReached` holds, or `count`; it must hold for all after the first. */
export function lowerBound(count: number, isReached: (index: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isReached(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/** The last block whose fence is not above the first 8 bytes of `key`, or -1. */
function lastFence(fences: Buffer, key: Buffer): number {
  let next = firstNotBelow(fences, 8, key)
  while (next * 8 < fences.length && isKeyAt(fences, next * 8, key)) next++
  return next - 1
}

/**
 * The first entry, of `width` bytes each, that does not begin below the first 8 bytes of `key`; or how many there are.
 * As two words: a search is a dozen comparisons, and a call of `compare` for each takes longer than all of them.
 */
function firstNotBelow(entries: Buffer, width: number, key: Buffer): number {
  const high = key.readUInt32BE(0)
  const low = key.readUInt32BE(4)
  let from = 0
  let to = entries.length / width
  while (from < to) {
    const middle = (from + to) >>> 1
    const word = entries.readUInt32BE(middle * width)
    const isBelow = word < high || (word === high && entries.readUInt32BE(middle * width + 4) < low)
    if (isBelow) from = middle + 1
    else to = middle
  }
  return from
}

/** Whether the 8 bytes from `at` on are the first of `key`. */
function isKeyAt(entries: Buffer, at: number, key: Buffer): boolean {
  return (
    entries.readUInt32BE(at) === key.readUInt32BE(0) && entries.readUInt32BE(at + 4) === key.readUInt32BE(4)
  )
}
