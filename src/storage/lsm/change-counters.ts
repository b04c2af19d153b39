/**
 * When rows of a kind last changed, as a number: what was read of them may be kept for as long as it stays the same.
 * It counts changes in this process and is never stored.
 */
import { type Change, DROP } from './row-change.js'

const KINDS = 256

export class ChangeCounters {
  readonly #changeCounters = new Float64Array(KINDS)

  /** Another number than before once a row of this kind was written, removed, or dropped with its tenant. */
  of(kind: number): number {
    return this.#changeCounters[kind]!
  }

  /** Contract: told of every change before anybody may see it. */
  note({ kind, row }: Change): void {
    if (kind === DROP) this.noteAll()
    else this.#changeCounters[row.kind]!++
  }

  /** Any row of any kind may be another now. */
  noteAll(): void {
    for (let kind = 0; kind < KINDS; kind++) this.#changeCounters[kind]!++
  }
}
