/**
 * The child processes of a pool: choosing one for a run, keeping idle ones, and ending them. A child runs one version of
 * one reactor with the rights of one application or caller, one run at a time.
 */
import type { Guest, StartGuest } from './child.js'
import type { GuestRun, RunServices } from './guest-run.js'
import { mayUseAnother, type PoolSettings } from './pool-settings.js'

export interface WorkerServices extends RunServices {
  startGuest: StartGuest
}

export interface Assignment {
  caller: string
  /** Identifies tenant and reactor. */
  key: string
  /** Identifies code, configuration and rights. A child never runs two versions. */
  version: string
}

export interface Worker {
  readonly guest: Guest
  /** What it runs or ran last; undefined for a spare. */
  assignment: Assignment | undefined
  runs: number
  busyMs: number
  run: GuestRun | undefined
  isStarting: boolean
  /** A newer version of its reactor was requested. */
  isOutdated: boolean
  isBusy: boolean
  /** It has answered and will soon be idle or ended. */
  isFinishing: boolean
  cancelTimer: () => void
}

export class Workers {
  #settings: PoolSettings
  readonly #services: WorkerServices
  readonly #all = new Set<Worker>()
  /** Called when a child has started or has ended by itself. */
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

  /** `waiting`: the callers in the queue. */
  mayUseAnother(caller: string, waiting: Iterable<string>): boolean {
    const busy = this.#busy()
    const callers = new Set([...waiting, ...busy.map(({ assignment }) => assignment?.caller)]).size
    return mayUseAnother({ total: busy.length, own: this.busyFor(caller), callers }, this.#settings)
  }

  /** A child that can run this now, or undefined. Contract: {@link mayUseAnother} is true for the caller. */
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
    if (same.some(({ assignment, isFinishing }) => isFinishing && assignment?.version === version))
      return undefined
    const blank = idle.find(({ assignment }) => assignment === undefined)
    if (blank !== undefined) return blank
    // Starting a child takes more processor time than most runs, so each caller starts one at a time.
    if (this.#busy().some((worker) => worker.isStarting && worker.assignment?.caller === caller))
      return undefined
    const { mostChildren, reservedChildren } = this.#settings
    if (this.#all.size >= mostChildren + reservedChildren)
      this.discard(idle.find(({ assignment }) => assignment?.caller === caller) ?? idle[0]!)
    return this.#start()
  }

  /** Lowers the priority of long runs of other callers who have several runs in progress. */
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

  /** Ends idle children and starts no more spares. */
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
      isFinishing: false,
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
