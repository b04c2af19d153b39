/**
 * What a unit of work takes for the state of the store, as earlier answers had it, until an answer of its own tells
 * whether that is still so.
 */
import type { StoreState } from './query-sql.js'
import type { Shared } from './shared.js'

export class Belief {
  readonly #shared: Shared
  #state: StoreState
  #isConfirmed = false
  #relies = false

  constructor(shared: Shared) {
    this.#shared = shared
    this.#state = shared.state
  }

  get state(): StoreState {
    return this.#state
  }

  /** Whether it has to be confirmed before the unit may end: the unit relies on something that was remembered. */
  get isOpen(): boolean {
    return this.#relies && !this.#isConfirmed
  }

  /** The counter under which remembered things are true. */
  relyOn(): number {
    this.#relies = true
    return this.#state.changes
  }

  /** Takes what the database says; false where the unit relied on something else. */
  confirm(state: StoreState): boolean {
    this.#isConfirmed = true
    this.#learn(state)
    const { changes, generation } = this.#state
    if (state.generation !== generation || (this.#relies && state.changes !== changes)) return false
    this.#state = state
    return true
  }

  /** What the unit itself has changed is so, if nobody else changed anything: then it was confirmed. */
  change(change: Partial<StoreState>): void {
    if (this.#isConfirmed) this.#learn({ ...this.#state, ...change })
  }

  /** Answers may arrive in another order than they were given. */
  #learn(state: StoreState): void {
    const { generation, changes } = this.#shared.state
    if (state.generation === generation && state.changes >= changes) this.#shared.state = state
  }
}
