/** What is asked for at about the same time goes to the store together: a round trip and a commit are for many. */

/** Each ask gives its answer, or the error that is its own. @throws what all of them fail with */
type Send<Ask, Answer> = (asks: readonly Ask[]) => Promise<readonly (Answer | Error)[]>

interface Waiting<Ask, Answer> {
  ask: Ask
  resolve(answer: Answer): void
  reject(error: unknown): void
}

interface Limits<Ask> {
  /** In one group. */
  most: number
  /** What the asks of a group weigh together at most, unless one alone does. */
  mostWeight: number
  weigh(ask: Ask): number
  /** Groups that are under way. */
  atOnce: number
  /** While so many asks are under way no further group goes: one of more costs less than two of fewer. */
  crowd: number
  /** Where one takes longer and fails, whoever waited for it has waited long enough, and fails too. */
  patienceMs: number
}

export class Gatherer<Ask, Answer> {
  readonly #send: Send<Ask, Answer>
  readonly #limits: Limits<Ask>
  #waiting: Waiting<Ask, Answer>[] = []
  #underWay = 0
  #asked = 0
  #isDue = false

  constructor(send: Send<Ask, Answer>, limits: Limits<Ask>) {
    this.#send = send
    this.#limits = limits
  }

  ask(ask: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ask, resolve, reject })
      if (this.#isDue) return
      this.#isDue = true
      // Whatever this turn of the event loop asks for goes along.
      setImmediate(() => {
        this.#isDue = false
        this.#sendGroups()
      })
    })
  }

  #sendGroups(): void {
    const { atOnce, crowd } = this.#limits
    while (this.#underWay < atOnce && this.#asked < crowd && this.#waiting.length > 0) {
      const group = this.#takeGroup()
      this.#underWay++
      this.#asked += group.length
      void this.#sendGroup(group).then(() => {
        this.#underWay--
        this.#asked -= group.length
        this.#sendGroups()
      })
    }
  }

  #takeGroup(): Waiting<Ask, Answer>[] {
    const { most, mostWeight, weigh } = this.#limits
    let weight = 0
    const end = this.#waiting.findIndex(({ ask }, at) => {
      weight += weigh(ask)
      return at > 0 && (at === most || weight > mostWeight)
    })
    return this.#waiting.splice(0, end === -1 ? most : end)
  }

  async #sendGroup(group: readonly Waiting<Ask, Answer>[]): Promise<void> {
    const since = performance.now()
    try {
      const answers = await this.#send(group.map(({ ask }) => ask))
      for (const [at, { resolve, reject }] of group.entries()) {
        const answer = answers[at] as Answer | Error
        if (answer instanceof Error) reject(answer)
        else resolve(answer)
      }
    } catch (error) {
      const isLate = performance.now() - since > this.#limits.patienceMs
      for (const { reject } of [...group, ...(isLate ? this.#waiting.splice(0) : [])]) reject(error)
    }
  }
}
