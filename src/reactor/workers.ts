/**
 * The children that run reactor code: who may have one, which one, how long they stay warm, and that none is left. A
 * child serves one version of one reactor with one application's rights, one invocation at a time.
 */
import type { Guest, StartGuest } from './child.js'
import type { GuestRun, RunServices } from './guest-run.js'
import { mayUseAnother, type PoolSettings } from './pool-settings.js'

export interface WorkerServices extends RunServices {
  startGuest: StartGuest
}

/** What a child is wanted for. */
export interface Assignment {
  caller: string
  /** Tenant and reactor. */
  key: string
  /** The code, its configuration and its application: none of them is run where another of them was. */
  version: string
}

export interface Worker {
  readonly guest: Guest
  /** What it runs or ran last; undefined while blank. */
  assignment: Assignment | undefined
  runs: number
  busyMs: number
  run: GuestRun | undefined
  isStarting: boolean
  /** Another version came after what it runs. */
  isOutdated: boolean
  isBusy: boolean
  /** It answered and will soon be idle or gone: worth waiting for. */
  isResting: boolean
  cancelTimer: () => void
}

export class Workers {
  #settings: PoolSettings
  readonly #services: WorkerServices
  readonly #all = new Set<Worker>()
  /** Told of a child that started, or ended by itself. */
  readonly #changed: () => void
  #isClosed = false

  constructor(settings: PoolSettings, services: WorkerServices, changed: () => void) {
    this.#settings = settings
    this.#services = services
    this.#changed = changed
  }

  busyFor(caller: string): number {
    return this.#busy().filter(({ assignment }) => assignment?.caller === caller).length
  }

  /** `waiting`: everybody who waits for a child. */
  mayUseAnother(caller: string, waiting: Iterable<string>): boolean {
    const busy = this.#busy()
    const callers = new Set([...waiting, ...busy.map(({ assignment }) => assignment?.caller)]).size
    return mayUseAnother({ total: busy.length, own: this.busyFor(caller), callers }, this.#settings)
  }

  /** A child that may run this now; undefined for none. Contract: the caller may have another. */
  choose({ key, version, caller }: Assignment): Worker | undefined {
    for (const worker of [...this.#all]) {
      if (worker.assignment?.key !== key || worker.assignment.version === version) continue
      worker.isOutdated = true
      if (!worker.isBusy) this.discard(worker)
    }
    const idle = this.#idle()
    const own = idle.find(({ assignment }) => assignment?.key === key)
    if (own !== undefined) return own
    const same = [...this.#all].filter(({ assignment }) => assignment?.key === key)
    if (same.length >= this.#settings.mostPerReactor) return undefined
    if (same.some(({ assignment, isResting }) => isResting && assignment?.version === version))
      return undefined
    const blank = idle.find(({ assignment }) => assignment === undefined)
    if (blank !== undefined) return blank
    // Starting takes more of the processors than most runs do: a crowd of one caller's would be in everybody's way.
    if (this.#busy().some((worker) => worker.isStarting && worker.assignment?.caller === caller))
      return undefined
    const { mostChildren, reservedChildren } = this.#settings
    if (this.#all.size >= mostChildren + reservedChildren)
      this.discard(idle.find(({ assignment }) => assignment?.caller === caller) ?? idle[0]!)
    return this.#start()
  }

  /** Long runs of callers who have several under way let those of `caller` go first, from now on. */
  lowerPriorityOfOthers(caller: string): void {
    for (const { guest, assignment, run } of this.#busy())
      if (run?.isLong && assignment!.caller !== caller && this.busyFor(assignment!.caller) > 1)
        guest.lowerPriority()
  }

  keepWarm(worker: Worker): void {
    worker.isBusy = false
    worker.cancelTimer = this.#services.clock.after(this.#settings.warmMs, () => this.discard(worker))
  }

  keepSpares(): void {
    if (this.#isClosed) return
    const blank = this.#idle().filter(({ assignment }) => assignment === undefined).length
    for (let count = blank; count < this.#settings.spares; count++) {
      if (this.#all.size >= this.#settings.mostChildren) return
      this.#start()
    }
  }

  discard(worker: Worker): void {
    worker.cancelTimer()
    worker.guest.kill()
    this.#all.delete(worker)
  }

  /** Ends whoever has nothing to do; nobody is started ahead of need any more. */
  retire(): void {
    this.#settings = { ...this.#settings, spares: 0 }
    for (const worker of this.#idle()) this.discard(worker)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const all = [...this.#all]
    for (const worker of all) {
      worker.run?.stop('closed')
      this.discard(worker)
    }
    await Promise.all(all.map(({ guest }) => guest.ended))
  }

  #busy(): Worker[] {
    return [...this.#all].filter(({ isBusy }) => isBusy)
  }

  #idle(): Worker[] {
    return [...this.#all].filter(({ isBusy }) => !isBusy)
  }

  #start(): Worker {
    const worker: Worker = {
      guest: this.#services.startGuest(),
      assignment: undefined,
      runs: 0,
      busyMs: 0,
      run: undefined,
      isStarting: true,
      isOutdated: false,
      isBusy: false,
      isResting: false,
      cancelTimer: () => undefined,
    }
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
