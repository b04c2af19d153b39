/** Work that goes on after its request was answered: in order for each caller, a few at a time, within limits. */
import { CofferError } from '../../errors.js'

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

export type Background = ReturnType<typeof createBackground>

export function createBackground() {
  /** The first of each caller run, the others wait. */
  const queues = new Map<string, Work[]>()
  const ids = new Set<string>()
  const running = new Map<Work, Promise<void>>()
  let total = 0
  let isClosed = false

  return { isClosed: () => isClosed, has, reserve, idle, close }

  /** Whether the work with this id waits or runs in this process. */
  function has(id: string): boolean {
    return ids.has(id)
  }

  /** @throws CofferError `rate_limited` if the caller has too many, `unavailable` after `close` */
  function reserve(caller: string, id: string): Place {
    if (isClosed) throw new CofferError('unavailable', 'The server is stopping; try again later.')
    const queue = queues.get(caller) ?? []
    if (queue.length >= MOST_OF_CALLER)
      throw new CofferError('rate_limited', `At most ${MOST_OF_CALLER} runs of a caller can wait.`, {
        retryAfterSeconds: RETRY_SECONDS,
      })
    const work: Work = { id, characters: 0 }
    queue.push(work)
    queues.set(caller, queue)
    ids.add(id)
    return {
      keeps: (characters) => {
        const after = total - work.characters + characters
        if (after > MOST_CHARACTERS)
          throw new CofferError('unavailable', 'The runs that wait have too much data; try again later.')
        total = after
        work.characters = characters
      },
      fill: (run) => {
        work.run = run
        start(caller)
      },
      leave: () => end(caller, work),
    }
  }

  /** Resolves when nothing waits or runs. */
  async function idle(): Promise<void> {
    while (running.size > 0) await Promise.all(running.values())
  }

  /** Drops what waits and takes nothing new. What runs goes on until {@link idle}. */
  function close(): void {
    isClosed = true
  }

  function start(caller: string): void {
    if (isClosed) return
    const isReady = (work: Work) => work.run !== undefined
    const queue = (queues.get(caller) ?? []).filter(isReady).slice(0, AT_ONCE_OF_CALLER)
    for (const work of queue) {
      if (running.has(work)) continue
      const ended = work.run!().finally(() => {
        running.delete(work)
        end(caller, work)
      })
      running.set(work, ended)
    }
  }

  function end(caller: string, work: Work): void {
    const left = (queues.get(caller) ?? []).filter((each) => each !== work)
    if (left.length === 0) queues.delete(caller)
    else queues.set(caller, left)
    ids.delete(work.id)
    total -= work.characters
    start(caller)
  }
}
