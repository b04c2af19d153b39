/** Work that continues after its request was answered. The work of one caller starts in the order of the requests. */
import { CofferError } from '../../errors.js'

const MAX_OF_CALLER = 1000
const AT_ONCE_OF_CALLER = 4
/** The limit for all input that the work keeps in memory, in characters. */
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
       * Declares how much input this work keeps in memory, in characters, approximately.
       * @throws CofferError `unavailable` if all work together exceeds the limit
       */
      keeps: (characters: number) => {
        const after = this.#characters - work.characters + characters
        if (after > MAX_CHARACTERS)
          throw new CofferError('unavailable', 'The runs that wait have too much data; try again later.')
        this.#characters = after
        work.characters = characters
      },
      /**
       * The queue calls `run` to start the work. Requires: `fill` is called at most once, and `run` reports its own
       * errors.
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

  /** Drops waiting work, and accepts no new work. {@link idle} waits for running work. */
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
   * Returns undefined while the claim is taken. `isLong`: the claim covers several units of work. Only long claims are
   * visible to other servers.
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
