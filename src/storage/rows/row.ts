/** The binary form of the fields of a row: in the index of a table, and in a frame of the write-ahead log. */
import { CofferError } from '../../errors.js'
import { MAX_U48 } from '../bytes.js'
import type { CheckRow, Row, Verification } from '../engine.js'

export type RowHead = Omit<Row, 'keys' | 'sealed' | 'unread'>

/** id 16 | seq, rev, created, modified, expires u48 | kind u8 | tenant u16 */
export const HEAD_BYTES = 49
export const NOTHING = new Uint8Array(0)

/**
 * A field is decoded each time it is read, because a buffer of many rows takes a fraction of the memory of decoded
 * fields.
 */
export class RowView implements RowHead {
  protected readonly bytes: Buffer
  protected readonly at: number

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

/** The row has no keys, because tables have keys only in their index. */
export function bareRow(head: RowHead, sealed: Uint8Array): Row {
  const { kind, tenant, id, seq, rev, created, modified, expires } = head
  return { kind, tenant, id, seq, rev, created, modified, expires, keys: NOTHING, sealed }
}

export function tombstone(kind: number, tenant: number, id: Uint8Array, rev: number): Row {
  const none = { seq: 0, created: 0, modified: 0, expires: 0, keys: NOTHING, sealed: NOTHING }
  return { kind, tenant, id, rev, ...none }
}

/** @throws CofferError `internal` if the files cannot store the row */
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

export function recordRow(result: Verification, check: CheckRow, place: string, row: Row): void {
  const { problem, logs, isLost } = check(row)
  if (isLost) return
  if (problem !== undefined) result.findings.push({ place, problem: `Row ${row.seq}: ${problem}` })
  else if (logs === undefined) result.readable.records++
  else result.readable.logs += logs
}
