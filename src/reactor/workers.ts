/** The child processes of a pool. Each child runs one version of one reactor for one caller, one run at a time. */
import type { Guest } from './child.js'
import type { GuestRun, RunServices } from './guest-run.js'
import { type GuestSize, guestSizeOf, type PoolSettings } from './settings.js'

export type WorkerServices = RunServices & { startGuest(size: GuestSize): Guest }

export interface Assignment {
  caller: string
  key: string
  /**
   * Identifies the caller and its session. Each caller and each session has a separate child, because a run can find
   * traces of earlier runs.
   */
  holder: string
  /** Identifies code, packages, configuration and rights. */
  version: string
  size: GuestSize
}

export class Worker {
  readonly guest: Guest
  readonly size: GuestSize
  /** The assignment of the current or last run. Undefined for a spare child. */
  assignment: Assignment | undefined
  runs = 0
  busyMs = 0
  /** Resident memory in MiB after the first run had loaded the code. */
  loadedMiB: number | undefined
  /** Resident memory in MiB that loading the code has added. */
  loadingMiB = 0
  run: GuestRun | undefined
  isStarting = true
  isOutdated = false
  isBusy = false
  isFinishing = false
  cancelTimer: () => void = () => undefined

  constructor(guest: Guest, size: GuestSize) {
    this.guest = guest
    this.size = size
  }
}

export class Workers {
  readonly #all = new Set<Worker>()
  #settings: PoolSettings
  readonly #services: WorkerServices
  readonly #changed: () => void
  /** The number of children that were started for a waiting run. Spare children do not count. */
  #neededChildren = 0

  constructor(settings: PoolSettings, services: WorkerServices, changed: () => void) {
    this.#settings = settings
    this.#services = services
    this.#changed = changed
  }

  /** Children with old settings end after their current run. */
  configure(settings: PoolSettings): void {
    this.#settings = settings
    for (const worker of this.#all) this.#retire(worker)
  }

  #retire(worker: Worker): void {
    worker.isOutdated = true
    if (!worker.isBusy) this.discard(worker)
  }

  has(worker: Worker): boolean {
    return this.#all.has(worker)
  }

  busyFor(caller: string): number {
    return this.#list(true).filter(({ assignment }) => assignment?.caller === caller).length
  }

  /**
   * A caller who already has a child does not get the last free child. Callers with fewer children than their share may
   * also get a reserved child.
   */
  mayUseAnother(caller: string, waiting: Iterable<string>): boolean {
    const { maxChildren, reservedChildren } = this.#settings
    const busy = this.#list(true)
    const own = this.busyFor(caller)
    const most = maxChildren + reservedChildren
    if (own === 0) return busy.length < most
    const callers = new Set([...waiting, ...busy.map(({ assignment }) => assignment?.caller)]).size
    const share = Math.floor(maxChildren / Math.max(2, callers))
    return busy.length + 1 < (own < share ? most : maxChildren)
  }

  /**
   * Returns a child that can run the assignment now, or undefined. Call only if {@link mayUseAnother} is true for the
   * caller.
   */
  choose({ key, holder, version, caller, size }: Assignment): Worker | undefined {
    const isOwn = ({ assignment }: Worker) => assignment?.key === key && assignment.holder === holder
    for (const worker of [...this.#all].filter(isOwn))
      if (worker.assignment?.version !== version) this.#retire(worker)
    const isFit = (worker: Worker) => isSame(worker.size, size)
    const own = this.#list(false).find((worker) => isOwn(worker) && isFit(worker))
    if (own !== undefined) return own
    const same = [...this.#all].filter(({ assignment }) => assignment?.key === key)
    const isAlmostFree = (worker: Worker) =>
      worker.isFinishing && !worker.isOutdated && isOwn(worker) && isFit(worker)
    if (same.some(isAlmostFree)) return undefined
    if (same.length >= this.#settings.maxPerReactor) {
      const idleOfOther = same.find(({ isBusy }) => !isBusy)
      if (idleOfOther === undefined) return undefined
      this.discard(idleOfOther)
    }
    const idle = this.#list(false)
    const blank = idle.find((worker) => worker.assignment === undefined && isFit(worker))
    if (blank !== undefined) return blank
    // Starting a child takes more processor time than most runs, so only one child of a caller starts at a time.
    const isStartingOne = ({ isStarting, assignment }: Worker) => isStarting && assignment?.caller === caller
    if (this.#list(true).some(isStartingOne)) return undefined
    const { maxChildren, reservedChildren } = this.#settings
    if (this.#all.size >= maxChildren + reservedChildren)
      this.discard(idle.find(({ assignment }) => assignment?.caller === caller) ?? idle[0]!)
    this.#neededChildren += 1
    return this.#start(size)
  }

  lowerPriorityOfOthers(caller: string): void {
    for (const { guest, assignment, run } of this.#list(true))
      if (run?.isLong() && assignment!.caller !== caller && this.busyFor(assignment!.caller) > 1)
        guest.lowerPriority()
  }

  keepWarm(worker: Worker): void {
    worker.isBusy = false
    worker.cancelTimer = this.#services.clock.after(this.#settings.warmMs, () => this.discard(worker))
  }

  /**
   * Starts spare children only after a second child was needed. Many vaults run only one reactor, and the start of a
   * spare child would slow the first run of this reactor.
   */
  keepSpares(): void {
    if (this.#neededChildren < 2) return
    const blank = this.#list(false).filter(({ assignment }) => assignment === undefined).length
    const { spares, maxChildren } = this.#settings
    for (let count = blank; count < spares && this.#all.size < maxChildren; count++)
      this.#start(guestSizeOf(this.#settings.limits, false))
  }

  discard(worker: Worker): void {
    worker.cancelTimer()
    worker.guest.kill()
    this.#all.delete(worker)
  }

  async close(): Promise<void> {
    const ending = [...this.#all]
    for (const worker of ending) {
      worker.run?.stop('closed')
      this.discard(worker)
    }
    await Promise.all(ending.map(({ guest }) => guest.ended))
  }

  #list(isBusy: boolean): Worker[] {
    return [...this.#all].filter((worker) => worker.isBusy === isBusy)
  }

  #start(size: GuestSize): Worker {
    const worker = new Worker(this.#services.startGuest(size), size)
    this.#all.add(worker)
    void worker.guest.ready.then(() => {
      worker.isStarting = false
      this.#changed()
    })
    void worker.guest.ended.then(() => {
      worker.cancelTimer()
      this.#all.delete(worker)
      this.#changed()
    })
    return worker
  }
}

function isSame(one: GuestSize, other: GuestSize): boolean {
  return one.memoryMiB === other.memoryMiB && one.busyMs === other.busyMs && one.longestMs === other.longestMs
}
