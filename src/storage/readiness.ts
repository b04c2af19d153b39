/**
 * Checks whether an engine can answer a read and a write now. A check tries a write. A check also fails for a while
 * after a write of a request has failed.
 */

/** A successful check is reused for this many ms. Otherwise callers without an API key could cause many writes. */
const VALID_MS = 500
/** After a failed write of a request, checks fail until a request's write succeeds, but for at most this many ms. */
const FAILED_MS = 5_000

export class Readiness {
  readonly #probe: () => Promise<void>
  #checking: Promise<void> | undefined
  #checkedAt = Number.NEGATIVE_INFINITY
  #failure: { error: unknown; at: number } | undefined

  /** Requires: `probe` tries a write, and rejects with its error if the write fails. */
  constructor(probe: () => Promise<void>) {
    this.#probe = probe
  }

  /** Must be called after each write of a request. `error`: undefined if the write succeeded. */
  recordWrite(error?: unknown): void {
    this.#failure = error === undefined ? undefined : { error, at: performance.now() }
  }

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
