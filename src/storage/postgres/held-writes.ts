/** What a unit of work has written and not sent yet, in the order in which it takes effect. */
import type { Draft, Row } from '../engine.js'
import type { Waiting } from './log-sql.js'
import type { Statement } from './query-sql.js'
import { insertStatement, type News, replaceStatements } from './write-sql.js'

export class HeldWrites {
  #statements: Statement[] = []
  /** Put as new after all statements. */
  #rows: Row[] = []
  #waiting: Waiting[] = []
  #inserted = 0

  /** Whether there is anything, and whether all of it is put as new. */
  get areNew(): boolean {
    return this.#statements.length === 0 && this.#rows.length + this.#waiting.length > 0
  }

  get news(): News {
    return { rows: this.#rows, waiting: this.#waiting }
  }

  get length(): number {
    return this.#statements.length + this.#rows.length + this.#waiting.length
  }

  add(statements: readonly Statement[]): void {
    this.#statements = [...this.take(), ...statements]
  }

  put(draft: Draft, rev: number, now: number): void {
    const { kind, tenant, id, modified, expires, keys } = draft
    if (draft.seq !== undefined) {
      this.add(replaceStatements(draft, rev))
      return
    }
    const [seq, sealed] = [this.#inserted++, draft.seal(rev)]
    this.#rows.push({ kind, tenant, id, seq, rev, created: now, modified, expires, keys, sealed })
  }

  wait(waiting: Waiting): void {
    this.#waiting.push(waiting)
  }

  /** All of it, which is to be sent now. */
  take(): Statement[] {
    const found = this.#statements
    if (this.#rows.length + this.#waiting.length > 0) found.push(insertStatement(this.news))
    this.#statements = []
    this.#rows = []
    this.#waiting = []
    return found
  }
}
