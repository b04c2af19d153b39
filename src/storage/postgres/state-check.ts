/**
 * Checks whether the cached records that an attempt has used are current. The check compares the states of the store in
 * the answers of the database.
 */
import type { StoreState } from './read-sql.js'
import { ANY, type ExpectedState } from './write-sql.js'

export class StateCheck {
  /** The state in the last answer. Before the first answer: the newest state that this process had seen. */
  #state: StoreState
  #usesCache = false
  #isConfirmed = false

  constructor(known: StoreState) {
    this.#state = known
  }

  get state(): StoreState {
    return this.#state
  }

  /** Returns the counter of cached records. After this call, {@link accept} refuses a state with another counter. */
  useCache(): number {
    this.#usesCache = true
    return this.#state.changes
  }

  get expected(): ExpectedState {
    const { generation, changes } = this.#state
    return { generation, changes: this.#usesCache ? changes : ANY }
  }

  /**
   * Stores the state of an answer. Returns false if the key slots have changed, or if the attempt has used cached
   * records and the counter has changed.
   */
  accept(state: StoreState): boolean {
    this.#isConfirmed = true
    const { generation, changes } = this.#state
    if (state.generation !== generation) return false
    if (this.#usesCache && state.changes !== changes) return false
    this.#state = state
    return true
  }

  /** True if the attempt has used cached records, and no answer has shown yet whether these records are current. */
  get needsConfirmation(): boolean {
    return this.#usesCache && !this.#isConfirmed
  }
}
