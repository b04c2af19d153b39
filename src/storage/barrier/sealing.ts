/**
 * How a record becomes a row: sealed bytes, the digest of its id, and the digests of what it can be found by. The one
 * place that knows how the two belong together; it knows nothing of engines or units of work.
 */
import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { type IndexField, indexFieldsOf, searchField } from '../../domain/records/index-fields.js'
import { KINDS, type Kind, type RecordOf, type TenantKeyBytes } from '../../domain/records/records.js'
import { damaged } from '../../errors.js'
import { asBuffer, fromBase64 } from '../bytes.js'
import type { Row } from '../engine.js'

const ID_BYTES = 16
const KEY_BYTES = 8
const REVISION_BYTES = 8
const HALF = 2 ** 32
const HALF_BYTES = 4

/** The version of a row that a seal belongs to. */
type RowVersion = Pick<Row, 'id' | 'rev'>

/** The sealed bytes of `record` as the version `rev` of the row `id`. */
export function sealRecord(keys: RecordKeys, { id, rev }: RowVersion, record: RecordOf[Kind]): Uint8Array {
  const plain = Buffer.from(JSON.stringify(record), 'utf8')
  const sealed = keys.data.seal(plain, associate(id, rev))
  plain.fill(0)
  return sealed
}

/** Every key of a record's row; `search` are its rendered search index values. */
export function keysOfRecord<K extends Kind>(
  keys: RecordKeys,
  kind: K,
  record: RecordOf[K],
  search: readonly string[] = [],
): Uint8Array {
  const lookups = indexFieldsOf(kind, record)
  for (const value of new Set(search.map((text) => text.toLowerCase()))) lookups.push(searchField(value))
  return packKeys(keys, kind, lookups)
}

export function idOf(record: RecordOf[Kind]): string {
  // Rows carry a tenant's number, so that is what its record is found by; its UUID is a look-up.
  if ('number' in record) return String(record.number)
  return 'id' in record ? record.id : ''
}

/** The plain bytes of a row; undefined when they do not authenticate. */
export function unseal(keys: RecordKeys, row: RowVersion & Pick<Row, 'sealed'>): Uint8Array | undefined {
  return keys.data.open(row.sealed, associate(row.id, row.rev))
}

/** @throws CofferError `vault_damaged` */
export function openRecord(keys: RecordKeys, row: RowVersion & Pick<Row, 'sealed'>): RecordOf[Kind] {
  const plain = unseal(keys, row)
  if (plain === undefined) throw damaged('A record does not open with its key')
  const record = JSON.parse(asBuffer(plain).toString('utf8')) as RecordOf[Kind]
  plain.fill(0)
  if (keys.renamed !== undefined && 'tenant_id' in record)
    record.tenant_id = keys.renamed.get(record.tenant_id) ?? record.tenant_id
  return record
}

/** A row's seal names its id (hence kind and tenant) and its version, so neither can be exchanged. */
function associate(id: Uint8Array, revision: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(ID_BYTES + REVISION_BYTES)
  bytes.set(id)
  bytes.writeUInt32LE(revision % HALF, ID_BYTES)
  bytes.writeUInt32LE(Math.floor(revision / HALF), ID_BYTES + HALF_BYTES)
  return bytes
}

const CURSOR_BYTES = 6
/** A cursor with nonce and tag, in hexadecimal. */
const CURSOR = /^[0-9a-f]{92}$/

/** A `seq` that is opened under the same `about` only. */
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

/** Of another length than what a record's seal names, so neither opens as the other. */
function associateCursor(keys: RecordKeys, about: string): Uint8Array {
  return keys.index.digest(`["cursor",${JSON.stringify(about)}]`)
}

/** The row id of a record. What is digested is JSON, here and below, which keeps the parts apart whatever they hold. */
export function digestId(keys: RecordKeys, kind: Kind, tenant: number, id: string): Uint8Array {
  return keys.index.digest(`["id",${KINDS[kind]},${tenant},${JSON.stringify(id)}]`)
}

/** The key of one thing that records of a kind are found by. */
export function digestKey(keys: RecordKeys, kind: Kind, lookup: IndexField): Uint8Array {
  return digestLookup(keys, kind, lookup).subarray(0, KEY_BYTES)
}

/** The key that every record of a kind carries. */
export function digestAll(keys: RecordKeys, kind: Kind): Uint8Array {
  return recallAll(keys, kind).subarray(0, KEY_BYTES)
}

/** Of what has few values that many records share, the digests are remembered. */
const SHARED = [
  'application',
  'type',
  'container',
  'ancestor',
  'containers',
  'month',
  'created',
  'created_by',
  'modified_by',
] as const

/** By kind and shared field: the text of a key up to its value. */
const SPACES: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map(
  Object.entries(KINDS).map(([kind, number]) => [
    kind,
    new Map(SHARED.map((field) => [field, `["key",${number},"${field}",`])),
  ]),
)

/** Key first, as its digest begins. */
function digestLookup(keys: RecordKeys, kind: Kind, { field, value }: IndexField): Uint8Array {
  const space = SPACES.get(kind)?.get(field)
  if (space !== undefined) return keys.index.recall(space, value, spellKey)
  return keys.index.digest(spellKey(`["key",${KINDS[kind]},${JSON.stringify(field)},`, value))
}

function recallAll(keys: RecordKeys, kind: Kind): Uint8Array {
  return keys.index.recall('all', kind, spellAll)
}

function spellKey(space: string, value: string): string {
  return `${space}${JSON.stringify(value)}]`
}

function spellAll(_: string, kind: string): string {
  return `["all",${KINDS[kind as Kind]}]`
}

/** "All of this kind" first, then each look-up. Contract: they are distinct. */
function packKeys(keys: RecordKeys, kind: Kind, lookups: readonly IndexField[]): Uint8Array {
  const packed = Buffer.allocUnsafe(KEY_BYTES * (1 + lookups.length))
  copyKey(recallAll(keys, kind), packed, 0)
  lookups.forEach((lookup, index) => {
    copyKey(digestLookup(keys, kind, lookup), packed, KEY_BYTES * (index + 1))
  })
  return packed
}

function copyKey(digest: Uint8Array, target: Uint8Array, at: number): void {
  for (let index = 0; index < KEY_BYTES; index++) target[at + index] = digest[index]!
}

/** The keys that a tenant's record holds, ready for use. */
export function openTenantKeys(keys: VaultKeys, { data, index, fingerprint }: TenantKeyBytes): RecordKeys {
  return keys.openTenant({
    data: fromBase64(data),
    index: fromBase64(index),
    fingerprint: fromBase64(fingerprint),
  })
}
