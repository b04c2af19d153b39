/**
 * Work that continues after its request was answered. The pieces of work of each caller start in the order of the
 * requests. Few pieces of work run at the same time, and the number of waiting pieces is limited.
 */
import { CofferError } from '../../errors.js'

const MAX_OF_CALLER = 1000
const AT_ONCE_OF_CALLER = 4
/** The limit for the input that all pieces of work keep in memory together, in characters. */
const MAX_CHARACTERS = 64 * 1024 * 1024
const RETRY_SECONDS = 10

interface Work {
  readonly id: string
  characters: number
  run?: () => Promise<void>
}

export class Background {
  readonly #queues = new Map<string, Work[]>()
  readonly #running = new Map<Work, Promise<void>>()
  #characters = 0
  isClosed = false

  has(id: string): boolean {
    return [...this.#queues.values()].some((queue) => queue.some((work) => work.id === id))
  }

  /**
   * Reserves a place in the queue.
   * @throws CofferError `rate_limited` if too many runs of the caller wait, or `unavailable` after `close`
   */
  reserve(caller: string, id: string) {
    if (this.isClosed) throw new CofferError('unavailable', 'The server is stopping; try again later.')
    const queue = this.#queues.get(caller) ?? []
    if (queue.length >= MAX_OF_CALLER)
      throw new CofferError('rate_limited', `At most ${MAX_OF_CALLER} runs of a caller can wait.`, {
        retryAfterSeconds: RETRY_SECONDS,
      })
    const work: Work = { id, characters: 0 }
    queue.push(work)
    this.#queues.set(caller, queue)
    return {
      /**
       * Declares how many characters of input this piece of work keeps in memory, approximately.
       * @throws CofferError `unavailable` if all pieces of work together exceed the limit
       */
      keeps: (characters: number) => {
        const after = this.#characters - work.characters + characters
        if (after > MAX_CHARACTERS)
          throw new CofferError('unavailable', 'The runs that wait have too much data; try again later.')
        this.#characters = after
        work.characters = characters
      },
      /**
       * Sets the function that does the work when the queue starts this piece of work. Requires: `fill` is called at
       * most once, and `run` reports its own errors.
       */
      fill: (run: () => Promise<void>) => {
        work.run = run
        this.#start(caller)
      },
      leave: () => this.#end(caller, work),
    }
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values())
  }

  /**
   * Drops the pieces of work that wait, and accepts no new work. Work that is running continues, and {@link idle} waits
   * until this work has ended.
   */
  close(): void {
    this.isClosed = true
  }

  #start(caller: string): void {
    if (this.isClosed) return
    const ready = (this.#queues.get(caller) ?? []).filter(({ run }) => run !== undefined)
    for (const work of ready.slice(0, AT_ONCE_OF_CALLER)) {
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
    this.#characters -= work.characters
    this.#start(caller)
  }
}

export interface Claim {
  end(): void | Promise<void>
}

export interface Claims {
  /**
   * Takes the claim with the name `name`. Returns undefined while another process has the claim. `isLong`: the claim
   * covers several units of work. Only long claims are visible to other servers.
   */
  take(tenant: number, name: string, options?: { isLong?: boolean }): Promise<Claim | undefined>
  has(tenant: number, name: string): Promise<boolean>
}

export function createClaims(): Claims {
  const taken = new Set<string>()
  return {
    async take(tenant, name) {
      const claimed = `${tenant}/${name}`
      if (taken.has(claimed)) return undefined
      taken.add(claimed)
      return { end: () => void taken.delete(claimed) }
    },
    has: async (tenant, name) => taken.has(`${tenant}/${name}`),
  }
}
