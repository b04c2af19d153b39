/**
 * The line of work that waits for a child, shared out between callers: each has a line of its own, they are served in
 * turn, and nobody waits for ever. It knows nothing of children.
 */
import { CofferError } from '../errors.js'
import type { PoolClock } from './clock.js'
import type { PoolSettings } from './pool-settings.js'

export interface QueuedRun {
  /** A name for whoever asked, of one tenant. */
  caller: string
  reject(error: unknown): void
}

interface Place<W> {
  work: W
  cancelTimer(): void
}

export class FairQueue<W extends QueuedRun> {
  readonly #clock: PoolClock
  /** In the order in which they are served next; none is empty. */
  readonly #lines = new Map<string, Place<W>[]>()
  #size = 0

  constructor(clock: PoolClock) {
    this.#clock = clock
  }

  callers(): Iterable<string> {
    return this.#lines.keys()
  }

  /**
   * `isBusyFor`: whether the caller has children already, asked once the time is over; then the wait is their own doing.
   * @throws CofferError `rate_limited` for a caller of whom too many wait, `unavailable` when too many wait at all.
   */
  add(
    work: W,
    settings: Pick<PoolSettings, 'mostWaiting' | 'mostWaitingOfCaller' | 'waitMs'>,
    isBusyFor: (caller: string) => boolean,
  ): void {
    const { caller } = work
    const line = this.#lines.get(caller) ?? []
    const { mostWaiting, mostWaitingOfCaller, waitMs } = settings
    if (line.length >= mostWaitingOfCaller) throw tooMany(waitMs)
    if (this.#size >= mostWaiting) throw busy(waitMs)
    const place: Place<W> = {
      work,
      cancelTimer: this.#clock.after(waitMs, () => {
        this.#remove(caller, place)
        work.reject(isBusyFor(caller) ? tooMany(waitMs) : busy(waitMs))
      }),
    }
    line.push(place)
    this.#lines.set(caller, line)
    this.#size += 1
  }

  /**
   * Takes out the work whose turn it is among what `accepts` takes: callers in turn, and of each the longest waiting
   * first. `mayHave` is asked once for each caller.
   */
  take<T>(mayHave: (caller: string) => boolean, accept: (work: W) => T | undefined): [W, T] | undefined {
    for (const [caller, line] of this.#lines) {
      if (!mayHave(caller)) continue
      for (const place of [...line]) {
        const accepted = this.#offer(caller, place, accept)
        if (accepted === undefined) continue
        this.#remove(caller, place)
        // Whoever was served goes to the end.
        if (this.#lines.delete(caller)) this.#lines.set(caller, line)
        return [place.work, accepted]
      }
    }
    return undefined
  }

  /** Everybody who waits is told `error`. */
  clear(error: CofferError): void {
    for (const [caller, line] of [...this.#lines])
      for (const place of [...line]) {
        this.#remove(caller, place)
        place.work.reject(error)
      }
  }

  /** What cannot be started is told so, and takes no place any more. */
  #offer<T>(caller: string, place: Place<W>, accept: (work: W) => T | undefined): T | undefined {
    try {
      return accept(place.work)
    } catch (error) {
      this.#remove(caller, place)
      place.work.reject(error)
      return undefined
    }
  }

  #remove(caller: string, place: Place<W>): void {
    const line = this.#lines.get(caller) ?? []
    line.splice(line.indexOf(place), 1)
    if (line.length === 0) this.#lines.delete(caller)
    place.cancelTimer()
    this.#size -= 1
  }
}

function tooMany(waitMs: number): CofferError {
  const retryAfterSeconds = Math.ceil(waitMs / 1000)
  return new CofferError(
    'rate_limited',
    `Too many runs of reactors were asked for at once by this caller. Try again in ${retryAfterSeconds} s.`,
    { retryAfterSeconds },
  )
}

function busy(waitMs: number): CofferError {
  const retryAfterSeconds = Math.ceil(waitMs / 1000)
  return new CofferError('unavailable', `All reactors are busy. Try again in ${retryAfterSeconds} s.`, {
    retryAfterSeconds,
  })
}
