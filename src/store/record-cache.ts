/**
 * Opened records of the kinds that are few and asked for at every request, so that they are not unsealed and parsed
 * again. An entry stands for one sealed version of one row and is never taken for another.
 */
import type { Kind, RecordOf } from '../domain/records.js'
import { isEqual, toText } from './bytes.js'
import type { Row } from './store.js'

/** Tokens, logs and whatever else grows without end is never kept. */
const KEPT: readonly Kind[] = ['tenant', 'settings', 'application', 'api_key', 'containers']
const MOST_ENTRIES = 4096
/** The seal's nonce tells two versions of a row apart even where a work that failed gave its `rev` back. */
const NONCE_BYTES = 24

interface Entry {
  rev: number
  nonce: Uint8Array
  record: RecordOf[Kind]
}

export class RecordCache {
  readonly #entries = new Map<string, Entry>()

  /** The record of this row, from memory where this very version was opened before; frozen where it is kept. */
  open(kind: Kind, row: Row, open: (row: Row) => RecordOf[Kind]): RecordOf[Kind] {
    if (!KEPT.includes(kind)) return open(row)
    const key = toText(row.id)
    const known = this.#entries.get(key)
    const nonce = row.sealed.subarray(0, NONCE_BYTES)
    if (known !== undefined && known.rev === row.rev && isEqual(known.nonce, nonce)) return known.record
    const record = freeze(open(row))
    if (known === undefined && this.#entries.size >= MOST_ENTRIES) this.#dropOldest()
    this.#entries.set(key, { rev: row.rev, nonce: nonce.slice(), record })
    return record
  }

  /** Forgets a row that is no more, for it may have held keys. */
  forget(id: Uint8Array): void {
    this.#entries.delete(toText(id))
  }

  clear(): void {
    this.#entries.clear()
  }

  #dropOldest(): void {
    for (const key of this.#entries.keys()) {
      this.#entries.delete(key)
      return
    }
  }
}

/** All of it: several callers share it. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const member of Object.values(value)) freeze(member)
  return Object.freeze(value)
}
