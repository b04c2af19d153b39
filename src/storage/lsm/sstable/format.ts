/**
 * The layout of a sorted table: records | sealed blocks of each section | two copies of the sealed footer
 * (`footer-copies.ts`). An entry of `ROWS` is the head of a row, then the offset u48 and length u32 of its record. An
 * entry of an index is 8 bytes (the beginning of an id, a key, or the time of expiry) and a row number u32. The entries
 * of an index ascend by the 8 bytes and then by the row number.
 */
import { asBuffer, fromBase64, toBase64 } from '../../bytes.js'
import { HEAD_BYTES, RowView } from '../../rows/row.js'

export const ROWS = 0
export const IDS = 1
export const KEYS = 2
export const EXPIRY = 3
/** The footer is sealed as block 0 of this section. */
export const FOOTER = 4

export type Index = typeof IDS | typeof KEYS | typeof EXPIRY
export type Section = typeof ROWS | Index

export const INDEXES: readonly Index[] = [IDS, KEYS, EXPIRY]
export const WIDTH = 12
export const ENTRY_BYTES = [64, WIDTH, WIDTH, WIDTH] as const
/** By section: the number of entries that fit into 8 KiB. */
export const ENTRIES_PER_BLOCK = [128, 682, 682, 682] as const

export function blockOf(section: Section, entry: number): number {
  return Math.floor(entry / ENTRIES_PER_BLOCK[section])
}

export function offsetOf(section: Section, entry: number): number {
  return (entry % ENTRIES_PER_BLOCK[section]) * ENTRY_BYTES[section]
}

export const BLOCK_BYTES = 8192
/** The bytes that a seal adds to a block: nonce 24, tag 16. */
export const BLOCK_SEAL = 40
export const TAG_BYTES = 16
export const RANGES = ['seq', 'created', 'modified', 'expires'] as const

export interface Footer {
  ranges: Record<(typeof RANGES)[number], { low: number; high: number }>
  /** By section: the offset of its first block, and the number of its entries. The records end where `ROWS` starts. */
  sections: { start: number; count: number }[]
  tenants: Map<number, number>
  /** By index: the first 8 bytes of each block. */
  fences: Buffer[]
  /** The number of copies of the footer. Undefined if an older version wrote the table, with only one copy. */
  copies?: 2
}

/** Associated data of a sealed block: table id ‖ section u8 ‖ number u32. */
export function associateBlock(id: Uint8Array, section: number, number: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(21)
  bytes.set(id)
  bytes.writeUInt8(section, 16)
  bytes.writeUInt32LE(number, 17)
  return bytes
}

export function encodeFooter(footer: Footer): Uint8Array {
  const { tenants, fences } = footer
  return Buffer.from(JSON.stringify({ ...footer, tenants: [...tenants], fences: fences.map(toBase64) }))
}

/** Requires: the bytes are authentic. */
export function decodeFooter(plain: Uint8Array): Footer {
  const footer = JSON.parse(asBuffer(plain).toString())
  const fences = footer.fences.map((text: string) => asBuffer(fromBase64(text)))
  return { ...footer, tenants: new Map(footer.tenants), fences }
}

export function sstablePath(directory: string, id: string): string {
  return `${directory}/segments/${id}`
}

/**
 * Returns how many entries are below the 8 bytes that the words `high` and `low` contain. Compares words, because
 * `Buffer.compare` would take most of the time of a search.
 */
export function countBelow(entries: Buffer, width: number, high: number, low: number): number {
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

export class RowEntry extends RowView {
  get offset(): number {
    return this.bytes.readUIntLE(this.at + HEAD_BYTES, 6)
  }

  get length(): number {
    return this.bytes.readUInt32LE(this.at + HEAD_BYTES + 6)
  }

  hasId(id: Buffer): boolean {
    return this.bytes.compare(id, 0, 16, this.at, this.at + 16) === 0
  }
}

export function writeLocation(bytes: Buffer, at: number, offset: number, length: number): void {
  bytes.writeUIntLE(offset, at + HEAD_BYTES, 6)
  bytes.writeUInt32LE(length, at + HEAD_BYTES + 6)
  bytes.fill(0, at + HEAD_BYTES + 10, at + ENTRY_BYTES[ROWS])
}
