/** The layout of a sorted table on disk: sections, their sealed blocks, footer and tail. Only bytes, no files. */
import { asBuffer, encodeId } from '../../bytes.js'
import type { Row } from '../../engine.js'

/** File order: records, then the sections rows, ids, post, dict, expiry, then footer and tail. */
export const IDS = 1
export const ROWS = 2
export const DICT = 3
export const POST = 4
export const EXPIRY = 5
/** The footer is sealed as block 0 of this section. */
export const FOOTER = 0

export type Section = typeof IDS | typeof ROWS | typeof DICT | typeof POST | typeof EXPIRY

const SECTIONS: readonly Section[] = [IDS, ROWS, DICT, POST, EXPIRY]

export const BLOCK_BYTES = 8192
export const ENTRY_BYTES: Readonly<Record<Section, number>> = Object.freeze({
  [IDS]: 12,
  [ROWS]: 64,
  [DICT]: 16,
  [POST]: 4,
  [EXPIRY]: 12,
})
const ENTRIES_PER_BLOCK: Readonly<Record<Section, number>> = Object.freeze({
  [IDS]: 682,
  [ROWS]: 128,
  [DICT]: 512,
  [POST]: 2048,
  [EXPIRY]: 682,
})

export function blockOf(section: Section, entry: number): number {
  return Math.floor(entry / ENTRIES_PER_BLOCK[section])
}

export function offsetOf(section: Section, entry: number): number {
  return (entry % ENTRIES_PER_BLOCK[section]) * ENTRY_BYTES[section]
}

/** Bytes of the entries of a whole block. */
export function wholeBlock(section: Section): number {
  return ENTRIES_PER_BLOCK[section] * ENTRY_BYTES[section]
}

/** Nonce 24 and tag 16 around each block. */
export const BLOCK_SEAL = 40
export const TAG_BYTES = 16
export const TAIL_LENGTH = 32
/** Most rows of a table, so that compacting it is bounded work. */
export const MAX_ROWS = 262_144
/** Most bytes of the records of a table, apart from its last record. */
export const MAX_BYTES = 256 * 1024 * 1024

const MAGIC = Buffer.from('COFFERS1')
const FOOTER_VERSION = 1
const FIXED_FOOTER = 50 + 12 * 5

export interface Range {
  low: number
  high: number
}

export interface Footer {
  rows: number
  seq: Range
  created: Range
  /** Whether rows ascend by `created` too: they do not if the clock went back between them. */
  isOrdered: boolean
  /** Expiry times; both 0 if no row expires. */
  expires: Range
  /** Bytes of the records, which lie from offset 0 on. */
  recordBytes: number
  /** Offset of each section's first block, and the length of its plain entries. */
  sections: Record<Section, { start: number; length: number }>
  tenants: Map<number, number>
  /** First 8 bytes of each block of `ids` and of `dict`. */
  idFences: Buffer
  keyFences: Buffer
}

/** The fields of a row that are outside its record. */
export type RowMeta = Omit<Row, 'keys' | 'sealed' | 'unread'>

export interface RecordLocation {
  offset: number
  length: number
}

export type RowEntry = RowMeta & RecordLocation

export function sstablePath(directory: string, id: Uint8Array): string {
  return `${directory}/segments/${encodeId(id)}`
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
  const { tenants, idFences, keyFences } = footer
  const bytes = Buffer.alloc(FIXED_FOOTER + 12 + 6 * tenants.size + idFences.length + keyFences.length)
  bytes.writeUInt8(FOOTER_VERSION, 0)
  bytes.writeUInt8(footer.isOrdered ? 0 : 1, 2)
  bytes.writeUInt32LE(footer.rows, 4)
  const { seq, created, expires } = footer
  const numbers = [
    seq.low,
    seq.high,
    created.low,
    created.high,
    expires.low,
    expires.high,
    footer.recordBytes,
  ]
  for (const section of SECTIONS)
    numbers.push(footer.sections[section].start, footer.sections[section].length)
  let at = 8
  for (const number of numbers) at = bytes.writeUIntLE(number, at, 6)
  at = bytes.writeUInt32LE(tenants.size, at)
  for (const [tenant, rows] of tenants) at = bytes.writeUInt32LE(rows, bytes.writeUInt16LE(tenant, at))
  for (const fences of [idFences, keyFences]) {
    at = bytes.writeUInt32LE(fences.length / 8, at)
    bytes.set(fences, at)
    at += fences.length
  }
  return bytes
}

/** The footer, or undefined when the bytes are of another version. Contract: they are authentic. */
export function decodeFooter(plain: Uint8Array): Footer | undefined {
  const bytes = asBuffer(plain)
  if (bytes.length < FIXED_FOOTER + 12 || bytes.readUInt8(0) !== FOOTER_VERSION) return undefined
  const number = (index: number) => bytes.readUIntLE(8 + 6 * index, 6)
  const section = (index: number) => ({ start: number(7 + 2 * index), length: number(8 + 2 * index) })
  const tenants = new Map<number, number>()
  let at = FIXED_FOOTER
  const count = bytes.readUInt32LE(at)
  at += 4
  for (let index = 0; index < count; index++, at += 6)
    tenants.set(bytes.readUInt16LE(at), bytes.readUInt32LE(at + 2))
  const idFences = bytes.subarray(at + 4, at + 4 + 8 * bytes.readUInt32LE(at))
  at += 4 + idFences.length
  const keyFences = bytes.subarray(at + 4, at + 4 + 8 * bytes.readUInt32LE(at))
  return {
    rows: bytes.readUInt32LE(4),
    seq: { low: number(0), high: number(1) },
    created: { low: number(2), high: number(3) },
    isOrdered: bytes.readUInt8(2) === 0,
    expires: { low: number(4), high: number(5) },
    recordBytes: number(6),
    sections: {
      [IDS]: section(0),
      [ROWS]: section(1),
      [DICT]: section(2),
      [POST]: section(3),
      [EXPIRY]: section(4),
    },
    tenants,
    idFences,
    keyFences,
  }
}

/** "COFFERS1" | footer position u48 | footer length u32 | 0 … */
export function encodeTail(position: number, length: number): Uint8Array {
  const bytes = Buffer.alloc(TAIL_LENGTH)
  bytes.set(MAGIC)
  bytes.writeUIntLE(position, 8, 6)
  bytes.writeUInt32LE(length, 14)
  return bytes
}

/** Locates the sealed footer; undefined when the bytes are no tail. */
export function decodeTail(tail: Uint8Array): { position: number; length: number } | undefined {
  const bytes = asBuffer(tail)
  if (bytes.length !== TAIL_LENGTH) return undefined
  const location = { position: bytes.readUIntLE(8, 6), length: bytes.readUInt32LE(14) }
  return bytes.equals(encodeTail(location.position, location.length)) ? location : undefined
}

export function writeRowEntry(bytes: Buffer, at: number, row: RowMeta, { offset, length }: RecordLocation) {
  bytes.set(row.id, at)
  bytes.writeUIntLE(row.seq, at + 16, 6)
  bytes.writeUIntLE(row.rev, at + 22, 6)
  bytes.writeUIntLE(row.created, at + 28, 6)
  bytes.writeUIntLE(row.modified, at + 34, 6)
  bytes.writeUIntLE(row.expires, at + 40, 6)
  bytes.writeUIntLE(offset, at + 46, 6)
  bytes.writeUInt32LE(length, at + 52)
  bytes.writeUInt8(row.kind, at + 56)
  bytes.writeUInt8(0, at + 57)
  bytes.writeUInt16LE(row.tenant, at + 58)
  bytes.writeUInt32LE(0, at + 60)
}

/** Reads the row entry at `at`. */
export function readRecordLocation(bytes: Buffer, at: number): RecordLocation {
  return { offset: bytes.readUIntLE(at + 46, 6), length: bytes.readUInt32LE(at + 52) }
}

/** Copies a row entry with another offset of its record. Returns the fields that the footer summarizes. */
export function copyRowEntry(from: Buffer, at: number, to: Buffer, target: number, offset: number) {
  from.copy(to, target, at, at + ENTRY_BYTES[ROWS])
  to.writeUIntLE(offset, target + 46, 6)
  return {
    seq: from.readUIntLE(at + 16, 6),
    created: from.readUIntLE(at + 28, 6),
    tenant: from.readUInt16LE(at + 58),
  }
}

export function readRowEntry(bytes: Buffer, at: number): RowEntry {
  return {
    id: bytes.subarray(at, at + 16),
    seq: bytes.readUIntLE(at + 16, 6),
    rev: bytes.readUIntLE(at + 22, 6),
    created: bytes.readUIntLE(at + 28, 6),
    modified: bytes.readUIntLE(at + 34, 6),
    expires: bytes.readUIntLE(at + 40, 6),
    offset: bytes.readUIntLE(at + 46, 6),
    length: bytes.readUInt32LE(at + 52),
    kind: bytes.readUInt8(at + 56),
    tenant: bytes.readUInt16LE(at + 58),
  }
}
