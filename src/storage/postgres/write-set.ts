/** The changes of an attempt. This class only records changes. The session sends the statements. */
import type { PendingEntries } from '../engine.js'
import { nameOf, PENDING, type RowName } from './row-name.js'
import { type Change, changePending, REMOVE } from './write-sql.js'

export class WriteSet {
  /** Changes that no statement has sent yet, in their order, by the names of their rows. */
  readonly #unsent = new Map<string, Change>()
  /** The kinds of the changed rows, even if the change was sent already. */
  readonly #kinds = new Set<number>()

  /** Requires: this row has no unsent change, because one statement cannot change a row twice. */
  add(change: Change): void {
    this.#unsent.set(nameOf(change), change)
    this.#kinds.add(change.kind)
  }

  /** Pending log entries have a table of their own. `isChained`: removes the entries, because they are in a chain now. */
  addPending(pending: PendingEntries, isChained: boolean): void {
    const { tenant, id } = pending
    this.#unsent.set(nameOf({ kind: PENDING, tenant, id }), changePending(pending, isChained))
  }

  /** Notes that every row of these kinds may have changed. */
  addKinds(kinds: Iterable<number>): void {
    for (const kind of kinds) this.#kinds.add(kind)
  }

  hasUnsent(name: RowName): boolean {
    return this.#unsent.has(nameOf(name))
  }

  hasUnsentWith(prefix: string): boolean {
    for (const name of this.#unsent.keys()) if (name.startsWith(prefix)) return true
    return false
  }

  unsentRows(): Change[] {
    return [...this.#unsent.values()].filter(({ action }) => action <= REMOVE)
  }

  hasChanged(kind: number): boolean {
    return this.#kinds.has(kind)
  }

  hasChangedRows(): boolean {
    return this.#kinds.size > 0
  }

  /** Removes and returns the unsent changes: the changes of `kind`, or all changes. */
  take(kind?: number): Map<string, Change> {
    const prefix = kind === undefined ? '' : `${kind}/`
    const taken = new Map([...this.#unsent].filter(([name]) => name.startsWith(prefix)))
    for (const name of taken.keys()) this.#unsent.delete(name)
    return taken
  }
}
