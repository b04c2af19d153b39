/** Checks whether an engine can answer a read and a write now: it tries a write, or uses the result of a recent write. */

/** A success is reused for this many ms, because anybody may request the check. */
const VALID_MS = 500
/** A failed write counts for this many ms, unless a later one succeeds. */
const FAILED_MS = 5_000

export class Readiness {
  readonly #probe: () => Promise<void>
  #checking: Promise<void> | undefined
  #checkedAt = Number.NEGATIVE_INFINITY
  #failure: { error: unknown; at: number } | undefined

  /** Contract: `probe` tries a write, and throws the error of a failed write. */
  constructor(probe: () => Promise<void>) {
    this.#probe = probe
  }

  /** Records how a write ended. `error`: undefined if it succeeded. */
  recordWrite(error?: unknown): void {
    this.#failure = error === undefined ? undefined : { error, at: performance.now() }
  }

  /** @throws CofferError with the reason why a read or a write would be refused */
  async check(): Promise<void> {
    if (this.#failure === undefined && performance.now() - this.#checkedAt < VALID_MS) return
    this.#checking ??= this.#probe().finally(() => {
      this.#checking = undefined
    })
    await this.#checking
    if (this.#failure !== undefined && performance.now() - this.#failure.at < FAILED_MS)
      throw this.#failure.error
    this.#checkedAt = performance.now()
  }
}
