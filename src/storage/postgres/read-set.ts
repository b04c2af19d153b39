/**
 * The reads of an attempt, as preconditions of its commit: the revisions of rows, and the number of rows for each key.
 * This class only records the reads. The session sends the statements.
 */
import { LOG_ROWS, type Row } from '../engine.js'
import type { Plan } from './attempt.js'
import type { FoundRow } from './read-sql.js'
import { nameOf, type RowName } from './row-name.js'
import { CHECK, type Change, COUNT, createChange } from './write-sql.js'

export class ReadSet {
  readonly #mode: Plan['mode']
  readonly #cachedKinds: ReadonlySet<number>
  /** The number of moments at which the attempt has read rows. Reads of cached rows do not count. */
  #moments = 0
  /** Rows that were read by their ids, so that no row is read twice. Undefined: the row does not exist. */
  readonly #rows = new Map<string, FoundRow | undefined>()
  readonly #revisions = new Map<string, Change>()
  readonly #counts = new Map<string, Change>()

  /** `cachedKinds`: {@link StateCheck} compares rows of these kinds. */
  constructor(mode: Plan['mode'], cachedKinds: ReadonlySet<number>) {
    this.#mode = mode
    this.#cachedKinds = cachedKinds
  }

  /**
   * The session calls this method before each statement that reads. Returns false if the plan does not allow the
   * statement: mode `read` may see only one moment.
   */
  beginStatement(isCached: boolean): boolean {
    // All statements of a snapshot see the same moment, even the statements for cached rows.
    if (this.#mode === 'snapshot') this.#moments = 1
    else if (!isCached) this.#moments++
    return this.#mode !== 'read' || this.#moments <= 1
  }

  /** The attempt has read rows that are not cached. It is possible that later commits have changed these rows. */
  get hasMoment(): boolean {
    return this.#moments > 0
  }

  /**
   * The attempt has read rows at different moments. Rows from different moments may never have existed together, so the commit
   * must compare these rows.
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
   * Returns whether the commit does not compare this row. Cached records are exempt, because {@link StateCheck} compares them.
   * Log rows are exempt, because only the server that leases a chain changes the log rows of that chain.
   */
  #isExempt({ kind }: RowName): boolean {
    return this.#cachedKinds.has(kind) || kind === LOG_ROWS
  }

  /**
   * `rev`: undefined if the row must not exist. If a row is required several times, the first revision counts, because
   * the attempt relies on the first revision.
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
   * The caller calls this method when the unit of work changes the row. The change itself requires the revision of the
   * row, and the next read of the row must show the change.
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

  /** Removes and returns the counts of rows: the counts of `kind`, or all counts. */
  takeCounts(kind?: number): Map<string, Change> {
    const taken = new Map([...this.#counts].filter(([, count]) => (kind ?? count.kind) === count.kind))
    for (const name of taken.keys()) this.#counts.delete(name)
    return taken
  }
}
