/**
 * One change of the vault's rows, and its bytes inside a journal frame. Pure bytes: nothing here knows of files,
 * chains or ciphers.
 */
import { CofferError } from '../errors.js'
import { asBuffer, MAX_U48 } from './bytes.js'
import type { Row } from './store.js'

/** What a change does, as the journal spells it. */
export const INSERT = 1
export const REPLACE = 2
export const REMOVE = 3
export const LOG = 4
export const DROP = 5

export type ChangeKind = typeof INSERT | typeof REPLACE | typeof REMOVE | typeof LOG | typeof DROP

/** A row as the engine keeps it: log rows carry the chain value that was made of them. */
export interface StoredRow extends Row {
  /** Of a log row, 16 bytes: keyed BLAKE2b over the tenant's previous value and `sealed`. */
  chain: Uint8Array | undefined
}

/** Of a removed row only kind, tenant, id and rev count; of a dropped tenant only tenant and rev. */
export interface Change {
  kind: ChangeKind
  row: StoredRow
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
/** Changes that a frame can count. */
export const MAX_CHANGES = 65_535

const NOTHING = new Uint8Array(0)

/** Bytes that the change takes in a frame. */
export function changeLength({ row }: Change): number {
  return ROW_HEAD + row.keys.length + (row.chain?.length ?? 0) + row.sealed.length
}

/** A row of which only its name counts. */
export function nameRow(kind: number, tenant: number, id: Uint8Array, rev: number): StoredRow {
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
    chain: undefined,
  }
}

/** The frame's plain bytes. Contract: at least one and at most {@link MAX_CHANGES} changes of consecutive `rev`. */
export function encodeFrame(changes: readonly Change[], time: number): Uint8Array {
  const length = changes.reduce((sum, change) => sum + changeLength(change), FRAME_HEAD)
  const bytes = Buffer.allocUnsafe(length)
  bytes.writeUInt8(FRAME_VERSION, 0)
  bytes.writeUInt16LE(changes.length, 1)
  bytes.writeUIntLE(changes[0]?.row.rev ?? 0, 3, 6)
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
  const chained = row.chain?.length ?? 0
  bytes.writeUInt32LE(chained + row.sealed.length, start + 45)
  const keysAt = start + ROW_HEAD
  bytes.set(row.keys, keysAt)
  const sealedAt = keysAt + row.keys.length
  if (row.chain !== undefined) bytes.set(row.chain, sealedAt)
  bytes.set(row.sealed, sealedAt + chained)
  return sealedAt + chained + row.sealed.length
}

/**
 * The frame that {@link encodeFrame} wrote; its rows are views into `plain`.
 * @throws CofferError `vault_damaged` when the bytes are no frame, `vault_unsupported` when they are a later version's.
 */
export function decodeFrame(plain: Uint8Array): Frame {
  const bytes = asBuffer(plain)
  if (bytes.length < FRAME_HEAD) throw malformed()
  const version = bytes.readUInt8(0)
  if (version !== FRAME_VERSION) {
    throw new CofferError(
      'vault_unsupported',
      `The journal has a frame of version ${version}, and this program knows ${FRAME_VERSION}. Use a newer coffer.`,
    )
  }
  const count = bytes.readUInt16LE(1)
  const frame: Frame = { rev: bytes.readUIntLE(3, 6), time: bytes.readUIntLE(9, 6), changes: [] }
  let at = FRAME_HEAD
  for (let index = 0; index < count; index++) {
    const change = readChange(bytes, at, frame.rev + index)
    frame.changes.push(change)
    at += changeLength(change)
  }
  if (at !== bytes.length) throw malformed()
  return frame
}

function readChange(bytes: Buffer, start: number, rev: number): Change {
  if (start + ROW_HEAD > bytes.length) throw malformed()
  const kind = bytes.readUInt8(start)
  if (kind < INSERT || kind > DROP) throw malformed()
  const keysAt = start + ROW_HEAD
  const bodyAt = keysAt + 8 * bytes.readUInt8(start + 44)
  const end = bodyAt + bytes.readUInt32LE(start + 45)
  const sealedAt = kind === LOG ? bodyAt + 16 : bodyAt
  if (sealedAt > end || end > bytes.length) throw malformed()
  const row: StoredRow = {
    kind: bytes.readUInt8(start + 1),
    tenant: bytes.readUInt16LE(start + 2),
    id: bytes.subarray(start + 4, start + 20),
    seq: bytes.readUIntLE(start + 20, 6),
    rev,
    created: bytes.readUIntLE(start + 26, 6),
    modified: bytes.readUIntLE(start + 32, 6),
    expires: bytes.readUIntLE(start + 38, 6),
    keys: bytes.subarray(keysAt, bodyAt),
    sealed: bytes.subarray(sealedAt, end),
    chain: kind === LOG ? bytes.subarray(bodyAt, sealedAt) : undefined,
  }
  return { kind: kind as ChangeKind, row }
}

function malformed(): CofferError {
  return new CofferError(
    'vault_damaged',
    'A frame of the journal opens but holds no rows. Run `coffer vault verify`.',
  )
}

/** Refuses what the files' fields cannot hold; every row passes here before it is taken. */
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
