/**
 * The second copy of the rows that hold the keys of tenants, so that the loss of a single table never loses a tenant's
 * keys. The copy is a sorted table with only these rows. `state` lists the copy apart from the other tables. Queries
 * and compactions do not use the copy. A flush that changes one of these rows writes a new copy. One new `state` then
 * lists the new copy and the flushed tables.
 */
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import { KEY_ROWS, type Row } from '../engine.js'
import { bareRow } from '../rows/row.js'
import { plainRow } from '../vault-rows.js'
import type { LsmContext } from './context.js'
import type { Memtable } from './memtable.js'
import { blockOf, ENTRIES_PER_BLOCK, offsetOf, ROWS, RowEntry } from './sstable/format.js'
import { LiveSSTable } from './sstable/live-sstable.js'
import type { SSTable } from './sstable/reader.js'
import { finish, writeRows } from './sstable/write-tables.js'

/**
 * Null: the vault has no rows with tenant keys. Undefined: an older version wrote the vault, and there is no copy yet.
 */
export type KeyCopies = SSTable | null | undefined

const VAULT = 0

export function writeKeyCopies(context: LsmContext, rows: readonly Row[]): SSTable | null {
  const sorted = [...rows].sort((left, right) => left.seq - right.seq)
  return finish(writeRows(context, sorted))[0]?.sstable ?? null
}

export function nextKeyRows(copies: KeyCopies, flushed: Memtable, tables: readonly LiveSSTable[]): Row[] {
  const changed = [...flushed.each()].filter(({ kind }) => kind === KEY_ROWS).map(plainRow)
  const isKept = ({ tenant, id }: Row) => !flushed.hides(tenant, toText(id))
  return [...readPresent(copies, tables).filter(isKept), ...changed]
}

/**
 * Reads the present copy, so that damage in other tables does not get into the next copy. If no copy is readable, reads
 * the other tables.
 */
function readPresent(copies: KeyCopies, tables: readonly LiveSSTable[]): Row[] {
  if (copies === null) return []
  const present = copies && unlessDamaged(() => readKeyCopies(copies))
  return present ?? findKeyRows(tables)
}

export function unlessDamaged<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof CofferError && error.code === 'vault_damaged') return undefined
    throw error
  }
}

/**
 * Reads the file and not the cache, because the cache may have rows that were overwritten in the file. @throws
 * CofferError `vault_damaged`
 */
export function readKeyCopies(copies: SSTable): Row[] {
  return findIn(new LiveSSTable(copies))
}

export function findKeyRows(tables: readonly LiveSSTable[]): Row[] {
  return tables.flatMap((live) => (live.sstable.footer.tenants.has(VAULT) ? findIn(live) : []))
}

function findIn(live: LiveSSTable): Row[] {
  const { sstable } = live
  const found: Row[] = []
  for (let first = 0; first < sstable.rows; first += ENTRIES_PER_BLOCK[ROWS]) {
    const block = sstable.openBlock(ROWS, blockOf(ROWS, first))
    const end = Math.min(sstable.rows, first + ENTRIES_PER_BLOCK[ROWS])
    for (let number = first; number < end; number++) {
      const entry = new RowEntry(block, offsetOf(ROWS, number))
      if (entry.kind !== KEY_ROWS || live.isDead(number)) continue
      found.push(bareRow(entry, sstable.readExactly(entry.offset, entry.length)))
    }
  }
  return found
}

/** In the copy, overwrites the rows that the memtable replaced or removed. @throws CofferError `vault_damaged` */
export function eraseHidden(copies: SSTable, memtable: Memtable): void {
  const rows = memtable.shadowed.flatMap((id) => copies.find(id) ?? [])
  if (rows.length > 0) copies.erase(rows)
}

/**
 * Returns whether the vault needs no copy, or has an undamaged copy. Only the barrier can check the records in the
 * copy.
 */
export function isWhole(copies: KeyCopies): boolean {
  if (!copies) return copies === null
  const readable = unlessDamaged(() => readKeyCopies(copies).length === copies.rows)
  return readable === true && copies.checkEnd() === undefined
}
