/**
 * Checks whether an engine can answer a read and a write now. A check tries a write. After a write of a request has failed,
 * checks fail for a while, even if the write of the check succeeds.
 */

/** A successful check is reused for this many ms, because a caller without an API key can request checks. */
const VALID_MS = 500
/** Checks fail for this many ms after a failed write, or until a later write succeeds. */
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

  /** Records how a write of a request ended. `error`: undefined if the write succeeded. */
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
