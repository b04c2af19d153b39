/**
 * Writes a sorted table from front to back. The sealed blocks of `ROWS` and about 1 MiB of unwritten bytes are in
 * memory.
 */
import { toBase64, toHex } from '../../bytes.js'
import { type RowHead, writeHead } from '../../rows/row.js'
import type { LsmContext } from '../context.js'
import { encodeCopies } from './footer-copies.js'
import * as format from './format.js'
import type { SSTableMeta } from './reader.js'

const BUFFER = 1024 * 1024
const SYNC_STEP = 4 * 1024 * 1024

const emptyRange = () => ({ low: Number.POSITIVE_INFINITY, high: 0 })

export class SSTableWriter {
  readonly #context: LsmContext
  readonly #id: Uint8Array
  readonly #path: string
  readonly #file: number
  readonly #block = Buffer.alloc(format.BLOCK_BYTES)
  readonly #fences: Buffer[][] = [[], [], [], []]
  readonly #footer: format.Footer = {
    ranges: { seq: emptyRange(), created: emptyRange(), modified: emptyRange(), expires: emptyRange() },
    sections: this.#fences.map(() => ({ start: 0, count: 0 })),
    tenants: new Map(),
    fences: [],
    copies: 2,
  }
  #rowBlocks: Uint8Array[] = []
  #section: format.Section = format.ROWS
  #entries = 0
  #held: Uint8Array[] = []
  #position = 0
  #written = 0
  #synced = 0

  constructor(context: LsmContext) {
    this.#context = context
    this.#id = context.random.bytes(16)
    this.#path = format.sstablePath(context.directory, toHex(this.#id))
    this.#file = context.files.create(this.#path)
  }

  /** Requires: rows ascend by `seq`. */
  addRow(row: RowHead, sealed: Uint8Array): void {
    const at = this.#slot()
    writeHead(this.#block, at, row)
    format.writeLocation(this.#block, at, this.#position, sealed.length)
    this.#add(sealed)
    const { ranges, tenants } = this.#footer
    for (const field of format.RANGES) {
      const range = ranges[field]
      if (row[field] < range.low) range.low = row[field]
      if (row[field] > range.high) range.high = row[field]
    }
    tenants.set(row.tenant, (tenants.get(row.tenant) ?? 0) + 1)
  }

  /** Requires: called after all rows, in the order of `INDEXES`. */
  begin(index: format.Index): void {
    this.#end()
    this.#section = index
    this.#entries = 0
    this.#footer.sections[index]!.start = this.#position
  }

  /** Requires: entries ascend by the words `high` and `low`, and then by row. */
  addEntry(high: number, low: number, row: number): void {
    const at = this.#slot()
    this.#block.writeUInt32BE(high, at)
    this.#block.writeUInt32BE(low, at + 4)
    this.#block.writeUInt32LE(row, at + 8)
    if (at === 0) this.#fences[this.#section]!.push(Buffer.from(this.#block.subarray(0, 8)))
  }

  /** Writes the footer twice and syncs the file. The caller syncs the directory. */
  finish(): SSTableMeta {
    this.#end()
    const { files, keys } = this.#context
    const footer = format.encodeFooter({
      ...this.#footer,
      fences: this.#fences.map((pieces) => Buffer.concat(pieces)),
    })
    const sealed = keys.sstable.seal(footer, format.associateBlock(this.#id, format.FOOTER, 0))
    this.#add(encodeCopies(sealed))
    this.#flush()
    files.sync(this.#file)
    files.close(this.#file)
    return {
      id: toHex(this.#id),
      tag: toBase64(sealed.subarray(sealed.length - format.TAG_BYTES)),
      bytes: this.#position,
      rows: this.#footer.sections[format.ROWS]!.count,
      from: this.#footer.ranges.seq.low,
      to: this.#footer.ranges.seq.high,
    }
  }

  abandon(): void {
    this.#context.files.close(this.#file)
    this.#context.files.remove(this.#path)
  }

  /** Requires: the caller does not change the bytes after this call. */
  #add(bytes: Uint8Array): void {
    this.#held.push(bytes)
    this.#position += bytes.length
    if (this.#position - this.#written >= BUFFER) this.#flush()
  }

  #flush(): void {
    const { files } = this.#context
    files.write(this.#file, Buffer.concat(this.#held), this.#written)
    this.#held = []
    this.#written = this.#position
    if (this.#written - this.#synced < SYNC_STEP) return
    files.syncData(this.#file)
    this.#synced = this.#written
  }

  #slot(): number {
    const at = format.offsetOf(this.#section, this.#entries)
    if (at === 0 && this.#entries > 0) this.#seal()
    this.#entries++
    return at
  }

  #seal(): void {
    const section = this.#section
    const last = this.#entries - 1
    const plain = this.#block.subarray(0, format.offsetOf(section, last) + format.ENTRY_BYTES[section])
    const sealed = this.#context.keys.sstable.seal(
      plain,
      format.associateBlock(this.#id, section, format.blockOf(section, last)),
    )
    if (section === format.ROWS) this.#rowBlocks.push(sealed)
    else this.#add(sealed)
  }

  #end(): void {
    if (this.#entries > 0) this.#seal()
    const section = this.#footer.sections[this.#section]!
    section.count = this.#entries
    if (this.#section !== format.ROWS) return
    section.start = this.#position
    for (const block of this.#rowBlocks) this.#add(block)
    this.#rowBlocks = []
  }
}
