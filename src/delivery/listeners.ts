/** Lets listeners wait for events of their webhooks. Each webhook has a name that is unique in the vault. */

interface Known {
  changes: number
  /** When a listener last began or stopped waiting, in ms of `performance.now()`. */
  seenAt?: number
  readonly waiting: Set<() => void>
}

/** Above this number, names without a waiting listener are deleted. */
const MAX_NAMES = 1000

export class Listeners {
  readonly #known = new Map<string, Known>()
  #isReleased = false

  changesOf(name: string): number {
    return this.#known.get(name)?.changes ?? 0
  }

  note(name: string): void {
    const known = this.#known.get(name)
    if (known === undefined) return
    known.changes++
    for (const wake of known.waiting) wake()
  }

  noteAll(): void {
    for (const name of this.#known.keys()) this.note(name)
  }

  silenceOf(name: string): number | undefined {
    const known = this.#known.get(name)
    if (known?.seenAt === undefined) return undefined
    return known.waiting.size > 0 ? 0 : performance.now() - known.seenAt
  }

  async awaitChange(name: string, since: number, ms: number): Promise<number> {
    const known = this.#know(name)
    const began = performance.now()
    known.seenAt = began
    if (known.changes === since && ms > 0 && !this.#isReleased)
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer)
          known.waiting.delete(end)
          resolve()
        }
        const timer = setTimeout(end, ms)
        known.waiting.add(end)
      })
    known.seenAt = performance.now()
    return this.#isReleased ? ms : known.seenAt - began
  }

  release(): void {
    this.#isReleased = true
    for (const { waiting } of this.#known.values()) for (const wake of waiting) wake()
  }

  #know(name: string): Known {
    const known = this.#known.get(name) ?? { changes: 0, waiting: new Set() }
    this.#known.set(name, known)
    for (const [other, { waiting }] of this.#known) {
      if (this.#known.size <= MAX_NAMES) break
      if (waiting.size === 0 && other !== name) this.#known.delete(other)
    }
    return known
  }
}
