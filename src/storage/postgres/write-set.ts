/** The changes of an attempt that no statement has sent yet. */
import type { PendingEntries } from '../engine.js'
import { nameOf, PENDING, type RowName } from './row-name.js'
import { type Change, changePending, REMOVE } from './write-sql.js'

export class WriteSet {
  readonly #unsent = new Map<string, Change>()
  /** The kinds of the changed rows, even if the changes were sent already. */
  readonly #kinds = new Set<number>()

  /** Requires: this row has no unsent change, because one statement cannot change a row twice. */
  add(change: Change): void {
    this.#unsent.set(nameOf(change), change)
    this.#kinds.add(change.kind)
  }

  addPending(pending: PendingEntries, isChained: boolean): void {
    const { tenant, id } = pending
    this.#unsent.set(nameOf({ kind: PENDING, tenant, id }), changePending(pending, isChained))
  }

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

  take(kind?: number): Map<string, Change> {
    const prefix = kind === undefined ? '' : `${kind}/`
    const taken = new Map([...this.#unsent].filter(([name]) => name.startsWith(prefix)))
    for (const name of taken.keys()) this.#unsent.delete(name)
    return taken
  }
}
