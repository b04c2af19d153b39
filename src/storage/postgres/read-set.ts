/**
 * The reads of an attempt, as preconditions of its commit: the revisions of rows, and the number of rows for each key.
 */
import { LOG_ROWS, type Row } from '../engine.js'
import type { Plan } from './attempt.js'
import type { FoundRow } from './read-sql.js'
import { nameOf, type RowName } from './row-name.js'
import { CHECK, type Change, COUNT, createChange } from './write-sql.js'

export class ReadSet {
  readonly #mode: Plan['mode']
  readonly #cachedKinds: ReadonlySet<number>
  #moments = 0
  /** Undefined: the row does not exist. */
  readonly #rows = new Map<string, FoundRow | undefined>()
  readonly #revisions = new Map<string, Change>()
  readonly #counts = new Map<string, Change>()

  constructor(mode: Plan['mode'], cachedKinds: ReadonlySet<number>) {
    this.#mode = mode
    this.#cachedKinds = cachedKinds
  }

  /**
   * Must be called before each statement that reads. Returns false if the plan does not allow the statement: in mode
   * `read`, all rows must come from one moment.
   */
  beginStatement(isCached: boolean): boolean {
    // All statements of a snapshot see the same moment, even the statements for cached rows.
    if (this.#mode === 'snapshot') this.#moments = 1
    else if (!isCached) this.#moments++
    return this.#mode !== 'read' || this.#moments <= 1
  }

  /** True if the attempt has read rows that are not cached. Other units may have changed these rows since then. */
  get hasMoment(): boolean {
    return this.#moments > 0
  }

  /**
   * True if the attempt has read rows at different moments. Rows from different moments may never have existed
   * together, so the commit must compare these rows.
   */
  get spansMoments(): boolean {
    return this.#moments > 1
  }

  hasRow(name: RowName): boolean {
    return this.#rows.has(nameOf(name))
  }

  rowOf(name: RowName): FoundRow | undefined {
    return this.#rows.get(nameOf(name))
  }

  addRow(name: RowName, row: FoundRow | undefined): void {
    this.#rows.set(nameOf(name), row)
    if (!this.#isExempt(name)) this.requireRevision(name, row?.rev)
  }

  addPage(rows: readonly Row[]): void {
    for (const row of rows) if (!this.#isExempt(row)) this.requireRevision(row, row.rev)
  }

  /**
   * The commit does not compare exempt rows. Cached records are exempt, because {@link StateCheck} compares their
   * counter. Log rows are exempt, because only the server that leases a chain changes the log rows of that chain.
   */
  #isExempt({ kind }: RowName): boolean {
    return this.#cachedKinds.has(kind) || kind === LOG_ROWS
  }

  /**
   * `rev`: undefined if the row must not exist. If a row is required several times, the commit requires the first
   * revision, because the attempt relies on it.
   */
  requireRevision(name: RowName, rev: number | undefined): void {
    const text = nameOf(name)
    if (!this.#revisions.has(text)) this.#revisions.set(text, createChange(CHECK, name, rev))
  }

  /** Returns the revision that the attempt has read: 0 if there was no row, undefined if the row was not read. */
  revisionOf(name: RowName): number | undefined {
    return this.#revisions.get(nameOf(name))?.was
  }

  addCount(key: RowName, count: number): void {
    const text = nameOf(key)
    if (!this.#counts.has(text)) this.#counts.set(text, createChange(COUNT, key, count))
  }

  countOf(key: RowName): number | undefined {
    return this.#counts.get(nameOf(key))?.was
  }

  /**
   * Must be called when the unit of work changes the row: the change itself requires the revision of the row, and the
   * next read must return the changed row.
   */
  forget(name: RowName): void {
    this.#rows.delete(nameOf(name))
    this.#revisions.delete(nameOf(name))
  }

  clear(): void {
    for (const map of [this.#rows, this.#revisions, this.#counts]) map.clear()
  }

  get preconditions(): Map<string, Change> {
    return new Map([...this.#revisions, ...this.#counts])
  }

  takeCounts(kind?: number): Map<string, Change> {
    const taken = new Map([...this.#counts].filter(([, count]) => (kind ?? count.kind) === count.kind))
    for (const name of taken.keys()) this.#counts.delete(name)
    return taken
  }
}
