/** Changes of rows, and their bytes inside a frame of the write-ahead log, before it is sealed. */
import { CofferError, damaged } from '../../../errors.js'
import { asBuffer, MAX_U48 } from '../../bytes.js'
import type { Row } from '../../engine.js'

/** Kinds of changes, as encoded in a frame. */
export const INSERT = 1
export const REPLACE = 2
export const REMOVE = 3
export const DROP = 4

export type ChangeKind = typeof INSERT | typeof REPLACE | typeof REMOVE | typeof DROP

/** A removal uses only kind, tenant, id and rev of the row, a drop only tenant and rev. */
export interface Change {
  kind: ChangeKind
  row: Row
}

export function isRemoval({ kind }: Change): boolean {
  return kind === REMOVE
}

/** Contents of a frame. `rev` is the first change's; each further change has the next. */
export interface Frame {
  rev: number
  /** ms since the epoch. */
  time: number
  changes: Change[]
}

const FRAME_VERSION = 1
/** version u8 | count u16 | first rev u48 | time u48 */
export const FRAME_HEAD = 15
/** op u8 | kind u8 | tenant u16 | id 16 | seq, created, modified, expires u48 | keys u8 | length u32 */
const ROW_HEAD = 49
/** Most changes of a frame, whose count is a u16. */
export const MAX_CHANGES = 65_535

const NOTHING = new Uint8Array(0)

/**
 * A row inside a frame's plain bytes, decoded when a field is read. A memtable holds tens of thousands: one buffer for
 * all rows of a frame takes a fraction of the memory that their fields would.
 */
class FrameRow implements Row {
  readonly rev: number
  readonly #bytes: Buffer
  readonly #at: number

  /** Contract: a whole row lies in `bytes` from `at` on. */
  constructor(bytes: Buffer, at: number, rev: number) {
    this.rev = rev
    this.#bytes = bytes
    this.#at = at
  }

  get kind(): number {
    return this.#bytes.readUInt8(this.#at + 1)
  }

  get tenant(): number {
    return this.#bytes.readUInt16LE(this.#at + 2)
  }

  get id(): Uint8Array {
    return this.#bytes.subarray(this.#at + 4, this.#at + 20)
  }

  get seq(): number {
    return this.#bytes.readUIntLE(this.#at + 20, 6)
  }

  get created(): number {
    return this.#bytes.readUIntLE(this.#at + 26, 6)
  }

  get modified(): number {
    return this.#bytes.readUIntLE(this.#at + 32, 6)
  }

  get expires(): number {
    return this.#bytes.readUIntLE(this.#at + 38, 6)
  }

  get keys(): Uint8Array {
    return this.#bytes.subarray(this.#at + ROW_HEAD, this.#bodyAt)
  }

  get sealed(): Uint8Array {
    const at = this.#bodyAt
    return this.#bytes.subarray(at, at + this.#bytes.readUInt32LE(this.#at + 45))
  }

  get #bodyAt(): number {
    return this.#at + ROW_HEAD + 8 * this.#bytes.readUInt8(this.#at + 44)
  }
}

/** Bytes that the change takes in a frame. */
export function changeLength({ row }: Change): number {
  return ROW_HEAD + row.keys.length + row.sealed.length
}

/** The row of a removal or a drop. */
export function nameRow(kind: number, tenant: number, id: Uint8Array, rev: number): Row {
  return {
    kind,
    tenant,
    id,
    seq: 0,
    rev,
    created: 0,
    modified: 0,
    expires: 0,
    keys: NOTHING,
    sealed: NOTHING,
  }
}

/**
 * The frame's plain bytes. Contract: at most {@link MAX_CHANGES} changes of consecutive `rev`. A frame without changes
 * stores the time; its `rev` is `next`.
 */
export function encodeFrame(changes: readonly Change[], time: number, next = 0): Uint8Array {
  const length = changes.reduce((sum, change) => sum + changeLength(change), FRAME_HEAD)
  // Not out of a pool: rows of a decoded frame keep its bytes for long, and would keep the whole pool.
  const bytes = Buffer.allocUnsafeSlow(length)
  bytes.writeUInt8(FRAME_VERSION, 0)
  bytes.writeUInt16LE(changes.length, 1)
  bytes.writeUIntLE(changes[0]?.row.rev ?? next, 3, 6)
  bytes.writeUIntLE(time, 9, 6)
  let at = FRAME_HEAD
  for (const change of changes) at = writeChange(bytes, at, change)
  return bytes
}

function writeChange(bytes: Buffer, start: number, { kind, row }: Change): number {
  bytes.writeUInt8(kind, start)
  bytes.writeUInt8(row.kind, start + 1)
  bytes.writeUInt16LE(row.tenant, start + 2)
  bytes.set(row.id, start + 4)
  bytes.writeUIntLE(row.seq, start + 20, 6)
  bytes.writeUIntLE(row.created, start + 26, 6)
  bytes.writeUIntLE(row.modified, start + 32, 6)
  bytes.writeUIntLE(row.expires, start + 38, 6)
  bytes.writeUInt8(row.keys.length / 8, start + 44)
  bytes.writeUInt32LE(row.sealed.length, start + 45)
  const keysAt = start + ROW_HEAD
  bytes.set(row.keys, keysAt)
  const sealedAt = keysAt + row.keys.length
  bytes.set(row.sealed, sealedAt)
  return sealedAt + row.sealed.length
}

/**
 * The frame that {@link encodeFrame} wrote; its rows are views into `plain`.
 * @throws CofferError `vault_damaged` when the bytes are no frame, `vault_unsupported` when they are a later version's.
 */
export function decodeFrame(plain: Uint8Array): Frame {
  const bytes = asBuffer(plain)
  if (bytes.length < FRAME_HEAD) throw malformed()
  const version = bytes.readUInt8(0)
  if (version !== FRAME_VERSION)
    throw new CofferError(
      'vault_unsupported',
      `The write-ahead log has a frame of version ${version}, and this program knows ${FRAME_VERSION}. Use a newer coffer.`,
    )
  const count = bytes.readUInt16LE(1)
  const frame: Frame = { rev: bytes.readUIntLE(3, 6), time: bytes.readUIntLE(9, 6), changes: [] }
  let at = FRAME_HEAD
  for (let index = 0; index < count; index++) {
    const end = endOfChange(bytes, at)
    const kind = bytes.readUInt8(at) as ChangeKind
    frame.changes.push({ kind, row: new FrameRow(bytes, at, frame.rev + index) })
    at = end
  }
  if (at !== bytes.length) throw malformed()
  return frame
}

/** The offset after the change at `start`. @throws CofferError `vault_damaged` when it is none. */
function endOfChange(bytes: Buffer, start: number): number {
  if (start + ROW_HEAD > bytes.length) throw malformed()
  const kind = bytes.readUInt8(start)
  if (kind < INSERT || kind > DROP) throw malformed()
  const bodyAt = start + ROW_HEAD + 8 * bytes.readUInt8(start + 44)
  const length = bytes.readUInt32LE(start + 45)
  if (bodyAt + length > bytes.length) throw malformed()
  return bodyAt + length
}

function malformed(): CofferError {
  return damaged('A frame of the write-ahead log opens but holds no rows')
}

/** @throws CofferError `internal` if the files cannot hold the row; every row passes here before it is taken. */
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
