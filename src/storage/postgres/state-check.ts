/**
 * The state of the store as an attempt knows it. Each answer has the state, so each answer shows whether the cached records
 * that the attempt has used are up to date. It only compares. The session sends the statements.
 */
import type { StoreState } from './read-sql.js'
import { ANY, type ExpectedState } from './write-sql.js'

export class StateCheck {
  /** The state in the last answer; before the first answer, as this process knew it. */
  #state: StoreState
  #usesCache = false
  #isConfirmed = false

  constructor(known: StoreState) {
    this.#state = known
  }

  get state(): StoreState {
    return this.#state
  }

  /** Returns the counter of the cached records that the attempt may use. From here on it must stay the same. */
  useCache(): number {
    this.#usesCache = true
    return this.#state.changes
  }

  /** The state that a commit requires. */
  get expected(): ExpectedState {
    const { generation, changes } = this.#state
    return { generation, changes: this.#usesCache ? changes : ANY }
  }

  /** Takes the state in an answer. Returns false if other key slots or cached records than the known ones are current. */
  accept(state: StoreState): boolean {
    this.#isConfirmed = true
    const { generation, changes } = this.#state
    if (state.generation !== generation) return false
    if (this.#usesCache && state.changes !== changes) return false
    this.#state = state
    return true
  }

  /** The attempt has used cached records, and no answer has shown yet whether they are up to date. */
  get needsConfirmation(): boolean {
    return this.#usesCache && !this.#isConfirmed
  }
}
