/** A clock that a test sets: the real one, one that runs with an offset, or a frozen one. */
import type { Clock } from '../crypto/ports.js'
import { formatDate } from '../domain/dates.js'
import type { ClockState } from '../framework/ports/control.js'

export class TestClock {
  readonly #real: Clock
  #offset = 0
  #frozen: number | undefined

  constructor(real: Clock) {
    this.#real = real
  }

  /** ms since the epoch. */
  readonly now: Clock = () => this.#frozen ?? this.#real() + this.#offset

  get state(): ClockState {
    const mode = this.#frozen !== undefined ? 'frozen' : this.#offset === 0 ? 'real' : 'offset'
    const now = this.now()
    return { mode, now: formatDate(now), offset_ms: Math.round(now - this.#real()) }
  }

  set(mode: ClockState['mode'], at = this.now()): void {
    this.#frozen = mode === 'frozen' ? at : undefined
    this.#offset = mode === 'offset' ? at - this.#real() : 0
  }

  /** The state of the clock for code in another process. */
  get shift(): { offsetMs?: number; frozenMs?: number } | undefined {
    if (this.#frozen !== undefined) return { frozenMs: this.#frozen }
    const offsetMs = this.#real === Date.now ? this.#offset : this.now() - Date.now()
    return offsetMs === 0 ? undefined : { offsetMs }
  }

  advance(ms: number): void {
    if (this.#frozen === undefined) this.#offset += ms
    else this.#frozen += ms
  }

  /** A clock of its own that shows the same. */
  copy(): TestClock {
    const copy = new TestClock(this.#real)
    copy.set(this.state.mode, this.now())
    return copy
  }
}
