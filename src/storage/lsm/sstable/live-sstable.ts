/** A sorted table with its dead rows. */
import { lowerBound } from '../../bytes.js'
import type { RowId } from '../../engine.js'
import type { Memtable } from '../memtable.js'
import type { SSTable } from './reader.js'

const NO_ROWS = new Uint32Array(0)

/** Immutable. A change of the dead rows creates a new object, which belongs to a new `state`. */
export class LiveSSTable {
  readonly sstable: SSTable
  /** Row numbers, ascending. */
  readonly dead: Uint32Array
  /** Dead rows whose bytes must still be overwritten. */
  readonly due: Uint32Array
  readonly dropped: ReadonlySet<number>
  readonly #hidden = new WeakMap<Memtable, { seen: number; rows: number[] }>()

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
    if (this.dead.length === 0) return false
    const at = lowerBound(this.dead.length, (index) => this.dead[index]! >= row)
    return this.dead[at] === row
  }

  find(tenant: number, id: RowId): number | undefined {
    if (this.dropped.has(tenant)) return undefined
    const row = this.sstable.find(id)
    return row === undefined || this.isDead(row) ? undefined : row
  }

  /** The result is cached, so that each id is looked up once. */
  hiddenBy(memtable: Memtable): readonly number[] {
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

  /**
   * Returns the table after a flush of the memtable. The rows that the memtable replaced or removed are dead and due to
   * be overwritten. The tenants that the memtable dropped are dropped in the table too.
   */
  shadowedBy(memtable: Memtable): LiveSSTable {
    const { sstable, dead, due, dropped } = this
    const tenants = [...memtable.dropped].filter((tenant) => sstable.footer.tenants.has(tenant))
    const rows = this.hiddenBy(memtable)
    if (rows.length === 0 && tenants.length === 0) return this
    const gone = new Set([...dropped, ...tenants])
    return new LiveSSTable(sstable, addRows(dead, rows), addRows(due, rows), gone)
  }

  get hasLiveRows(): boolean {
    return this.dead.length < this.sstable.rows && this.droppedRows < this.sstable.rows
  }

  get droppedRows(): number {
    return [...this.dropped].reduce((sum, each) => sum + (this.sstable.footer.tenants.get(each) ?? 0), 0)
  }

  erase(ids: readonly RowId[]): void {
    const rows = ids.map((id) => this.sstable.find(id)).filter((row) => row !== undefined)
    if (rows.length > 0) this.sstable.erase(new Set(rows))
  }
}

function addRows(rows: Uint32Array, more: readonly number[]): Uint32Array {
  return Uint32Array.from(new Set([...rows, ...more])).sort()
}
