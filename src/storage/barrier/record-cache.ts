/**
 * Opened records of the kinds that are few and asked for at every request, so that they are not looked up, unsealed and
 * parsed again. Kept by version, an entry stands for one sealed version of one row; kept by name, for what a name led to
 * as long as no row of its kind changed. Neither is ever taken for another.
 */
import { BoundedMap } from '../../bounded-map.js'
import { KINDS, type Kind, type RecordOf } from '../../domain/records/records.js'
import { isEqual, toText } from '../bytes.js'
import type { Row } from '../engine.js'

/** Tokens, logs and whatever else grows without end is never kept. */
const KEPT: ReadonlySet<Kind> = new Set(['tenant', 'settings', 'application', 'api_key', 'containers'])
/** Their numbers, for an engine that counts only the changes that somebody asks for. */
export const KEPT_KINDS: ReadonlySet<number> = new Set([...KEPT].map((kind) => KINDS[kind]))
const MOST_ENTRIES = 4096
/** The seal's nonce tells two versions of a row apart even where a work that failed gave its `rev` back. */
const NONCE_BYTES = 24

interface Entry {
  rev: number
  nonce: Uint8Array
  record: RecordOf[Kind]
}

/** Records of one kind by tenant and id, as they were while the kind had this change counter. */
interface Names {
  counter: number
  records: Map<string, RecordOf[Kind]>
}

export class RecordCache {
  readonly #entries = new BoundedMap<string, Entry>(MOST_ENTRIES)
  readonly #names = new Map<Kind, Names>()

  keeps(kind: Kind): boolean {
    return KEPT.has(kind)
  }

  /** What {@link keep} was given for the name under this very change counter of the kind. */
  find(kind: Kind, tenant: number, id: string, counter: number): RecordOf[Kind] | undefined {
    const names = this.#names.get(kind)
    return names?.counter === counter ? names.records.get(`${tenant}/${id}`) : undefined
  }

  /** Contract: the record was read by this name under this change counter, does not expire, and is frozen. */
  keep(kind: Kind, tenant: number, id: string, counter: number, record: RecordOf[Kind]): void {
    const known = this.#names.get(kind)
    const isUsable = known?.counter === counter && known.records.size < MOST_ENTRIES
    const names = isUsable ? known : { counter, records: new Map() }
    names.records.set(`${tenant}/${id}`, record)
    if (!isUsable) this.#names.set(kind, names)
  }

  /** The record of this row, from memory where this very version was opened before; frozen where it is kept. */
  open(kind: Kind, row: Row, open: (row: Row) => RecordOf[Kind]): RecordOf[Kind] {
    if (!KEPT.has(kind)) return open(row)
    const key = toText(row.id)
    const known = this.#entries.get(key)
    const nonce = row.sealed.subarray(0, NONCE_BYTES)
    if (known !== undefined && known.rev === row.rev && isEqual(known.nonce, nonce)) return known.record
    const record = freeze(open(row))
    // A copy: as a view it would keep the frame or segment's bytes that the row was read out of.
    this.#entries.set(key, { rev: row.rev, nonce: Uint8Array.from(nonce), record })
    return record
  }

  /** Forgets a row that is no more, for it may have held keys. */
  forget(id: Uint8Array): void {
    this.#entries.delete(toText(id))
    this.#names.clear()
  }

  clear(): void {
    this.#entries.clear()
    this.#names.clear()
  }
}

/** All of it: several callers share it. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const member of Object.values(value)) freeze(member)
  return Object.freeze(value)
}
