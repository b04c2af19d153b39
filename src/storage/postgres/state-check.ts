/**
 * The state of the store as an attempt knows it. Each answer of the database includes the state. The state shows
 * whether the cached records that the attempt has used are current. This class only compares states. The session sends
 * the statements.
 */
import type { StoreState } from './read-sql.js'
import { ANY, type ExpectedState } from './write-sql.js'

export class StateCheck {
  /** The state in the last answer. Before the first answer, this field is the newest state that this process had seen. */
  #state: StoreState
  #usesCache = false
  #isConfirmed = false

  constructor(known: StoreState) {
    this.#state = known
  }

  get state(): StoreState {
    return this.#state
  }

  /** Returns the counter of the cached records. After this call, a change of the counter is a collision. */
  useCache(): number {
    this.#usesCache = true
    return this.#state.changes
  }

  get expected(): ExpectedState {
    const { generation, changes } = this.#state
    return { generation, changes: this.#usesCache ? changes : ANY }
  }

  /**
   * Stores the state of an answer. Returns false if the key slots, or cached records that the attempt uses,
   * have changed.
   */
  accept(state: StoreState): boolean {
    this.#isConfirmed = true
    const { generation, changes } = this.#state
    if (state.generation !== generation) return false
    if (this.#usesCache && state.changes !== changes) return false
    this.#state = state
    return true
  }

  /** The attempt has used cached records, and no answer has shown yet whether they are current. */
  get needsConfirmation(): boolean {
    return this.#usesCache && !this.#isConfirmed
  }
}
