/** Work that goes on after its request was answered: in order for each caller, a few at a time, within limits. */
import { CofferError } from '../errors.js'

/** Works of one caller that wait or run. */
const MOST_OF_CALLER = 1000
const AT_ONCE_OF_CALLER = 4
/** What all works keep in memory, about. */
const MOST_CHARACTERS = 64 * 1024 * 1024
const RETRY_SECONDS = 10

interface Work {
  readonly id: string
  characters: number
  run?: () => Promise<void>
}

export interface Place {
  /** States about how much its work keeps in memory. @throws CofferError `unavailable` if that is too much now */
  keeps(characters: number): void
  /** Runs the work when it is its turn. Contract: it reports its own errors, and is called at most once. */
  fill(work: () => Promise<void>): void
  leave(): void
}

export class Background {
  /** The first of each caller run, the others wait. */
  readonly #queues = new Map<string, Work[]>()
  readonly #ids = new Set<string>()
  readonly #running = new Map<Work, Promise<void>>()
  #characters = 0
  #isClosed = false

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Whether the work with this id waits or runs in this process. */
  has(id: string): boolean {
    return this.#ids.has(id)
  }

  /** @throws CofferError `rate_limited` if the caller has too many, `unavailable` after `close` */
  reserve(caller: string, id: string): Place {
    if (this.#isClosed) throw new CofferError('unavailable', 'The server is stopping; try again later.')
    const queue = this.#queues.get(caller) ?? []
    if (queue.length >= MOST_OF_CALLER)
      throw new CofferError('rate_limited', `At most ${MOST_OF_CALLER} runs of a caller can wait.`, {
        retryAfterSeconds: RETRY_SECONDS,
      })
    const work: Work = { id, characters: 0 }
    queue.push(work)
    this.#queues.set(caller, queue)
    this.#ids.add(id)
    return {
      keeps: (characters) => {
        const total = this.#characters - work.characters + characters
        if (total > MOST_CHARACTERS)
          throw new CofferError('unavailable', 'The runs that wait have too much data; try again later.')
        this.#characters = total
        work.characters = characters
      },
      fill: (run) => {
        work.run = run
        this.#start(caller)
      },
      leave: () => this.#end(caller, work),
    }
  }

  /** Resolves when nothing waits or runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values())
  }

  /** Drops what waits and takes nothing new. What runs goes on until {@link idle}. */
  close(): void {
    this.#isClosed = true
  }

  #start(caller: string): void {
    if (this.#isClosed) return
    const isReady = (work: Work) => work.run !== undefined
    const queue = (this.#queues.get(caller) ?? []).filter(isReady).slice(0, AT_ONCE_OF_CALLER)
    for (const work of queue) {
      if (this.#running.has(work)) continue
      const ended = work.run!().finally(() => {
        this.#running.delete(work)
        this.#end(caller, work)
      })
      this.#running.set(work, ended)
    }
  }

  #end(caller: string, work: Work): void {
    const left = (this.#queues.get(caller) ?? []).filter((each) => each !== work)
    if (left.length === 0) this.#queues.delete(caller)
    else this.#queues.set(caller, left)
    this.#ids.delete(work.id)
    this.#characters -= work.characters
    this.#start(caller)
  }
}
