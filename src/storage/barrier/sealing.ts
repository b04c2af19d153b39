import type { RecordKeys } from '../../crypto/ports.js'
import {
  type IndexField,
  indexFieldsOf,
  searchField,
  sharedFieldsOf,
  sharingOf,
} from '../../domain/records/index-fields.js'
import { KINDS, type Kind, type RecordOf } from '../../domain/records/records.js'
import { damaged } from '../../errors.js'
import { asBuffer } from '../bytes.js'
import { simplify } from '../condition.js'
import type { Draft, Row, Where } from '../engine.js'
import type { Condition, PutOptions } from '../store.js'

/** A seal begins with its nonce. No two seals have the same nonce. */
export const NONCE_BYTES = 24
const ID_BYTES = 16
const KEY_BYTES = 8
const REVISION_BYTES = 8
const HALF = 2 ** 32
const HALF_BYTES = 4

type SealedVersion = Pick<Row, 'id' | 'rev' | 'sealed'>

export function sealRecord(keys: RecordKeys, { id, rev }: Pick<Row, 'id' | 'rev'>, record: RecordOf[Kind]) {
  const plain = Buffer.from(JSON.stringify(record), 'utf8')
  const sealed = keys.data.seal(plain, associate(id, rev))
  plain.fill(0)
  return sealed
}

export function keysOfRecord<K extends Kind>(
  keys: RecordKeys,
  kind: K,
  record: RecordOf[K],
  search: readonly string[] = [],
): Uint8Array {
  const lookups = indexFieldsOf(kind, record)
  for (const value of new Set(search.map((text) => text.toLowerCase()))) lookups.push(searchField(value))
  const sharing = sharingOf(kind, record)
  // Copies the bytes, because a view would keep Node's whole buffer pool in memory.
  const shared = () =>
    Uint8Array.from(packKeys(keys, kind, digestAll(keys, kind), sharedFieldsOf(record as RecordOf['token'])))
  const first =
    sharing === undefined
      ? digestAll(keys, kind)
      : keys.index.recall(`["keys",${KINDS[kind]},${sharing}]`, shared)
  return packKeys(keys, kind, first, lookups)
}

export function idOf(record: RecordOf[Kind]): string {
  // The record of a tenant is stored under the tenant's number, because other rows contain only this number. The
  // tenant's UUID is one of the row's keys. The type of `number` is checked, because `number` is a text in some other
  // records.
  if ('number' in record && typeof record.number === 'number') return String(record.number)
  return 'id' in record ? record.id : ''
}

export function openRecord(keys: RecordKeys, row: SealedVersion): RecordOf[Kind] {
  const record = openIfWhole(keys, row)
  if (record === undefined) throw damaged('A record does not open with its key')
  return record
}

/** Returns undefined if the seal is damaged, or was made with another key, or for another id or version of the row. */
export function openIfWhole(keys: RecordKeys, row: SealedVersion): RecordOf[Kind] | undefined {
  const plain = keys.data.open(row.sealed, associate(row.id, row.rev))
  if (plain === undefined) return undefined
  const record = JSON.parse(asBuffer(plain).toString('utf8')) as RecordOf[Kind]
  plain.fill(0)
  if (keys.renamed !== undefined && 'tenant_id' in record)
    record.tenant_id = keys.renamed.get(record.tenant_id) ?? record.tenant_id
  return record
}

/** Binds a seal to the version and the id of the row, so that nobody can put one row's seal into another row. */
function associate(id: Uint8Array, revision: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(ID_BYTES + REVISION_BYTES)
  bytes.set(id)
  bytes.writeUInt32LE(revision % HALF, ID_BYTES)
  bytes.writeUInt32LE(Math.floor(revision / HALF), ID_BYTES + HALF_BYTES)
  return bytes
}

const CURSOR_BYTES = 6
/** A sealed cursor in hexadecimal: nonce, ciphertext, tag. */
const CURSOR = /^[0-9a-f]{92}$/

export function sealCursor(keys: RecordKeys, about: string, seq: number): string {
  const plain = Buffer.allocUnsafe(CURSOR_BYTES)
  plain.writeUIntLE(seq, 0, CURSOR_BYTES)
  return asBuffer(keys.data.seal(plain, associateCursor(keys, about))).toString('hex')
}

export function openCursor(keys: RecordKeys, about: string, cursor: string): number | undefined {
  if (!CURSOR.test(cursor)) return undefined
  const plain = keys.data.open(Buffer.from(cursor, 'hex'), associateCursor(keys, about))
  return plain === undefined ? undefined : asBuffer(plain).readUIntLE(0, CURSOR_BYTES)
}

/**
 * This associated data is shorter than the associated data of a record. Therefore a sealed cursor never opens as a
 * record, and a sealed record never opens as a cursor.
 */
function associateCursor(keys: RecordKeys, about: string): Uint8Array {
  return keys.index.digest(`["cursor",${JSON.stringify(about)}]`)
}

/** The digest is over JSON, because different lists of parts never have equal JSON. */
export function digestId(keys: RecordKeys, kind: Kind, tenant: number, id: string): Uint8Array {
  return keys.index.digest(`["id",${KINDS[kind]},${tenant},${JSON.stringify(id)}]`)
}

export function digestKey(keys: RecordKeys, kind: Kind, lookup: IndexField): Uint8Array {
  return digestLookup(keys, kind, lookup).subarray(0, KEY_BYTES)
}

export function digestAll(keys: RecordKeys, kind: Kind): Uint8Array {
  return keys.index.recall(`["all",${KINDS[kind]}]`).subarray(0, KEY_BYTES)
}

/** The digests of these fields are cached, because many records and access rules contain the same few values. */
const SHARED: ReadonlySet<string> = new Set(['application', 'container', 'ancestor', 'containers', 'month'])

function digestLookup(keys: RecordKeys, kind: Kind, { field, value }: IndexField): Uint8Array {
  if (SHARED.has(field))
    return keys.index.recall(`["key",${KINDS[kind]},"${field}",${JSON.stringify(value)}]`)
  return keys.index.digest(`["key",${KINDS[kind]},${JSON.stringify(field)},${JSON.stringify(value)}]`)
}

/** Requires: no two keys are equal. */
function packKeys(
  keys: RecordKeys,
  kind: Kind,
  first: Uint8Array,
  lookups: readonly IndexField[],
): Uint8Array {
  const packed = Buffer.allocUnsafe(first.length + KEY_BYTES * lookups.length)
  packed.set(first)
  lookups.forEach((lookup, index) => {
    copyKey(digestLookup(keys, kind, lookup), packed, first.length + KEY_BYTES * index)
  })
  return packed
}

function copyKey(digest: Uint8Array, target: Uint8Array, at: number): void {
  for (let index = 0; index < KEY_BYTES; index++) target[at + index] = digest[index]!
}

export function createDraft<K extends Kind>(
  keys: RecordKeys,
  { kind, tenant, id, record }: { kind: K; tenant: number; id: Uint8Array; record: RecordOf[K] },
  { search = [], expires = 0 }: PutOptions,
): Draft {
  return {
    kind: KINDS[kind],
    tenant,
    id,
    modified: 0,
    expires,
    keys: keysOfRecord(keys, kind, record, search),
    seal: (rev) => sealRecord(keys, { id, rev }, record),
  }
}

export function select(keys: RecordKeys, kind: Kind, tenant: number, where: Condition | undefined) {
  const simple = simplify(where)
  return {
    kind: KINDS[kind],
    tenant,
    all: digestAll(keys, kind),
    ...(simple === undefined ? {} : { where: toWhere(keys, kind, tenant, simple) }),
  }
}

function toWhere(keys: RecordKeys, kind: Kind, tenant: number, condition: Condition): Where {
  const inner = (each: Condition) => toWhere(keys, kind, tenant, each)
  if ('field' in condition) return { key: digestKey(keys, kind, condition) }
  if ('ids' in condition) return { ids: condition.ids.map((id) => digestId(keys, kind, tenant, id)) }
  if ('and' in condition) return { and: condition.and.map(inner) }
  if ('or' in condition) return { or: condition.or.map(inner) }
  if ('not' in condition) return { not: inner(condition.not) }
  return condition
}
