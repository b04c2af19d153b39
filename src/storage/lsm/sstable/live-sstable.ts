/** A sorted table together with which of its rows are dead. */
import { toText } from '../../bytes.js'
import type { RowId } from '../../engine.js'
import { lowerBound } from './binary-search.js'
import { type Bitset, emptyBitset, fullBitset, setBit } from './bitset.js'
import type { Posting, SSTable } from './reader.js'

/** Bit sets of long postings cached per table. */
const KEPT_BITSETS = 8

const NO_ROWS = new Uint32Array(0)

/** Immutable: a new `state` brings a new object. */
export class LiveSSTable {
  readonly sstable: SSTable
  /** Row numbers, ascending. */
  readonly dead: Uint32Array
  /** Dead rows whose bytes are still to be overwritten. */
  readonly due: Uint32Array
  /** Tenants whose rows are all dead. */
  readonly dropped: ReadonlySet<number>
  readonly #hidden = new WeakMap<Shadows, { seen: number; rows: number[] }>()
  readonly #bitsets = new Map<string, Bitset>()

  constructor(
    sstable: SSTable,
    dead: Uint32Array = NO_ROWS,
    due: Uint32Array = NO_ROWS,
    dropped: ReadonlySet<number> = new Set(),
  ) {
    this.sstable = sstable
    this.dead = dead
    this.due = due
    this.dropped = dropped
  }

  isDead(row: number): boolean {
    const at = lowerBound(this.dead.length, (index) => this.dead[index]! >= row)
    return this.dead[at] === row
  }

  find(tenant: number, id: RowId): number | undefined {
    if (this.dropped.has(tenant)) return undefined
    const row = this.sstable.find(id)
    return row === undefined || this.isDead(row) ? undefined : row
  }

  /** Live rows whose ids the memtable replaced or removed; each id is searched for once. */
  hiddenBy(memtable: Shadows): readonly number[] {
    const known = this.#hidden.get(memtable) ?? { seen: 0, rows: [] }
    this.#hidden.set(memtable, known)
    if (known.seen === memtable.shadowed.length) return known.rows
    const ids = memtable.shadowed.slice(known.seen).sort(Buffer.compare)
    for (const id of ids) {
      const row = this.sstable.find(id)
      if (row !== undefined && !this.isDead(row)) known.rows.push(row)
    }
    known.seen = memtable.shadowed.length
    return known.rows
  }

  /** All rows of a posting. Contract: the caller does not change the set. */
  bitsetOf(key: Uint8Array, posting: Posting): Bitset {
    const text = toText(key)
    const kept = this.#bitsets.get(text)
    if (kept !== undefined) return kept
    const { rows } = this.sstable.footer
    const bits = posting.count === rows ? fullBitset(rows) : emptyBitset(rows)
    if (posting.count < rows) {
      for (let index = 0; index < posting.count; index++) setBit(bits, this.sstable.postedRow(posting, index))
    }
    if (posting.count * 32 > rows && this.#bitsets.size < KEPT_BITSETS) this.#bitsets.set(text, bits)
    return bits
  }
}

/** The part of a memtable that hides rows of tables. */
export interface Shadows {
  /** Ids of rows that were replaced or removed, in that order. */
  readonly shadowed: readonly RowId[]
  readonly dropped: ReadonlySet<number>
}
