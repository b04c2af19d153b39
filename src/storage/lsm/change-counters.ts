/** Counts the changes of each kind of row in this process: a cached read is valid while the count is unchanged. */
import { type Change, DROP } from './sstable/row-change.js'

const KINDS = 256

export class ChangeCounters {
  readonly #changeCounters = new Float64Array(KINDS)

  /** Goes up when a row of this kind is written, removed, or dropped with its tenant. */
  of(kind: number): number {
    return this.#changeCounters[kind]!
  }

  /** Contract: called for every change before a reader can see it. */
  note({ kind, row }: Change): void {
    if (kind === DROP) this.noteAll()
    else this.#changeCounters[row.kind]!++
  }

  /** For changes of unknown kinds. */
  noteAll(): void {
    for (let kind = 0; kind < KINDS; kind++) this.#changeCounters[kind]!++
  }
}
