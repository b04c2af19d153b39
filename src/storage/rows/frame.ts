/** The binary form of changes: a frame of the write-ahead log before it is sealed. */
import { type CofferError, damaged } from '../../errors.js'
import { asBuffer } from '../bytes.js'
import { QUEUE_ROWS, type Row } from '../engine.js'
import { HEAD_BYTES, RowView, writeHead } from './row.js'

export const INSERT = 1
export const REPLACE = 2
export const REMOVE = 3
export const DROP = 4

export type ChangeKind = typeof INSERT | typeof REPLACE | typeof REMOVE | typeof DROP

/**
 * A change that removes a row uses only kind, tenant, id and rev of the row. A change that drops a tenant uses only
 * tenant and rev.
 */
export interface Change {
  kind: ChangeKind
  row: Row
}

/** Returns true if the removed row must be overwritten before the removal is acknowledged. */
export function isRemoval({ kind, row }: Change): boolean {
  return kind === REMOVE && !QUEUE_ROWS.has(row.kind)
}

export interface Frame {
  /** The revision of the first change. A frame without changes, which only stores the time, has the next revision. */
  rev: number
  /** ms since the epoch. */
  time: number
  changes: Change[]
}

/** first rev u48 | time u48 | count u32 */
export const FRAME_HEAD = 16
/** change u8 | head | number of keys u8 | length of the sealed record u32 */
const CHANGE_HEAD = 1 + HEAD_BYTES + 5

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

const lengthOf = ({ keys, sealed }: Row) => CHANGE_HEAD + keys.length + sealed.length

/** `next`: the `rev` of a frame without changes. */
export function encodeFrame(changes: readonly Change[], time: number, next = 0): Uint8Array {
  const length = changes.reduce((sum, { row }) => sum + lengthOf(row), FRAME_HEAD)
  // The buffer is not taken from Node's buffer pool, because decoded rows keep the frame's bytes in memory for long,
  // and would keep the whole pool in memory.
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
