/** The binary form of rows and changes: in the index of a table, and in a frame of the write-ahead log before it is sealed. */
import { CofferError, damaged } from '../../errors.js'
import { asBuffer, MAX_U48 } from '../bytes.js'
import { QUEUE_ROWS, type Row } from '../engine.js'

/** Kinds of changes, as encoded in a frame. */
export const INSERT = 1
export const REPLACE = 2
export const REMOVE = 3
export const DROP = 4

export type ChangeKind = typeof INSERT | typeof REPLACE | typeof REMOVE | typeof DROP

/** A removal uses only kind, tenant, id and rev of the row. A drop uses only tenant and rev. */
export interface Change {
  kind: ChangeKind
  row: Row
}

/** Whether the change removes a row that must be overwritten before the answer. */
export function isRemoval({ kind, row }: Change): boolean {
  return kind === REMOVE && !QUEUE_ROWS.has(row.kind)
}

export interface Frame {
  /** Revision of the first change. In a frame without changes, which only stores the time: the next revision. */
  rev: number
  /** ms since the epoch. */
  time: number
  changes: Change[]
}

/** The fields of a row without its record and its keys. */
export type RowHead = Omit<Row, 'keys' | 'sealed' | 'unread'>

/** id 16 | seq, rev, created, modified, expires u48 | kind u8 | tenant u16 */
export const HEAD_BYTES = 49
/** first rev u48 | time u48 | count u32 */
export const FRAME_HEAD = 16
/** change u8 | head | number of keys u8 | length of the sealed record u32 */
const CHANGE_HEAD = 1 + HEAD_BYTES + 5
export const NOTHING = new Uint8Array(0)

/** Decodes fields when they are read, because one buffer for many rows takes a fraction of the memory of their fields. */
export class RowView implements RowHead {
  protected readonly bytes: Buffer
  protected readonly at: number

  /** Contract: `bytes` has a complete head from `at` on. */
  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.at = at
  }

  get id(): Uint8Array {
    return this.bytes.subarray(this.at, this.at + 16)
  }

  get seq(): number {
    return this.bytes.readUIntLE(this.at + 16, 6)
  }

  get rev(): number {
    return this.bytes.readUIntLE(this.at + 22, 6)
  }

  get created(): number {
    return this.bytes.readUIntLE(this.at + 28, 6)
  }

  get modified(): number {
    return this.bytes.readUIntLE(this.at + 34, 6)
  }

  get expires(): number {
    return this.bytes.readUIntLE(this.at + 40, 6)
  }

  get kind(): number {
    return this.bytes.readUInt8(this.at + 46)
  }

  get tenant(): number {
    return this.bytes.readUInt16LE(this.at + 47)
  }
}

export function writeHead(bytes: Buffer, at: number, row: RowHead): void {
  bytes.set(row.id, at)
  bytes.writeUIntLE(row.seq, at + 16, 6)
  bytes.writeUIntLE(row.rev, at + 22, 6)
  bytes.writeUIntLE(row.created, at + 28, 6)
  bytes.writeUIntLE(row.modified, at + 34, 6)
  bytes.writeUIntLE(row.expires, at + 40, 6)
  bytes.writeUInt8(row.kind, at + 46)
  bytes.writeUInt16LE(row.tenant, at + 47)
}

class FrameRow extends RowView implements Row {
  get keys(): Uint8Array {
    return this.bytes.subarray(this.at + HEAD_BYTES + 5, this.#sealedAt)
  }

  get sealed(): Uint8Array {
    const at = this.#sealedAt
    return this.bytes.subarray(at, at + this.bytes.readUInt32LE(this.at + HEAD_BYTES + 1))
  }

  get #sealedAt(): number {
    return this.at + HEAD_BYTES + 5 + 8 * this.bytes.readUInt8(this.at + HEAD_BYTES)
  }
}

/** A plain row without keys. Tables also return rows without keys, because they have keys only in their index. */
export function bareRow(head: RowHead, sealed: Uint8Array): Row {
  const { kind, tenant, id, seq, rev, created, modified, expires } = head
  return { kind, tenant, id, seq, rev, created, modified, expires, keys: NOTHING, sealed }
}

export function tombstone(kind: number, tenant: number, id: Uint8Array, rev: number): Row {
  const none = { seq: 0, created: 0, modified: 0, expires: 0, keys: NOTHING, sealed: NOTHING }
  return { kind, tenant, id, rev, ...none }
}

const lengthOf = ({ keys, sealed }: Row) => CHANGE_HEAD + keys.length + sealed.length

/** `next`: the `rev` of a frame without changes. */
export function encodeFrame(changes: readonly Change[], time: number, next = 0): Uint8Array {
  const length = changes.reduce((sum, { row }) => sum + lengthOf(row), FRAME_HEAD)
  // Not from a pool: decoded rows keep the bytes for a long time, and would keep the whole pool.
  const bytes = Buffer.allocUnsafeSlow(length)
  bytes.writeUIntLE(changes[0]?.row.rev ?? next, 0, 6)
  bytes.writeUIntLE(time, 6, 6)
  bytes.writeUInt32LE(changes.length, 12)
  let at = FRAME_HEAD
  for (const { kind, row } of changes) {
    bytes.writeUInt8(kind, at)
    writeHead(bytes, at + 1, row)
    bytes.writeUInt8(row.keys.length / 8, at + 1 + HEAD_BYTES)
    bytes.writeUInt32LE(row.sealed.length, at + 2 + HEAD_BYTES)
    bytes.set(row.keys, at + CHANGE_HEAD)
    bytes.set(row.sealed, at + CHANGE_HEAD + row.keys.length)
    at += lengthOf(row)
  }
  return bytes
}

/** Decodes the bytes of {@link encodeFrame}. The rows are views into `plain`. @throws CofferError `vault_damaged` */
export function decodeFrame(plain: Uint8Array): Frame {
  const bytes = asBuffer(plain)
  if (bytes.length < FRAME_HEAD) throw malformed()
  const frame: Frame = { rev: bytes.readUIntLE(0, 6), time: bytes.readUIntLE(6, 6), changes: [] }
  let at = FRAME_HEAD
  for (let left = bytes.readUInt32LE(12); left > 0; left--) {
    if (at + CHANGE_HEAD > bytes.length) throw malformed()
    const kind = bytes.readUInt8(at) as ChangeKind
    if (kind < INSERT || kind > DROP) throw malformed()
    frame.changes.push({ kind, row: new FrameRow(bytes, at + 1) })
    const keys = bytes.readUInt8(at + 1 + HEAD_BYTES)
    at += CHANGE_HEAD + 8 * keys + bytes.readUInt32LE(at + 2 + HEAD_BYTES)
  }
  if (at !== bytes.length) throw malformed()
  return frame
}

function malformed(): CofferError {
  return damaged('A frame of the write-ahead log opens, but its content is malformed')
}

/** Checks every row before it is put. @throws CofferError `internal` if the files cannot store it */
export function checkRow(row: Row): void {
  const isTimed = isU48(row.created) && isU48(row.modified) && isU48(row.expires)
  const isNamed = row.id.length === 16 && isWhole(row.kind, 0xff) && isWhole(row.tenant, 0xffff)
  const hasKeys = row.keys.length % 8 === 0 && row.keys.length <= 8 * 255
  if (isTimed && isNamed && hasKeys && isU48(row.seq) && isU48(row.rev)) return
  throw new CofferError('internal', "A row does not fit the fields of the vault's files.")
}

function isU48(number: number): boolean {
  return isWhole(number, MAX_U48)
}

function isWhole(number: number, highest: number): boolean {
  return Number.isInteger(number) && number >= 0 && number <= highest
}
