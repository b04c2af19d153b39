/** The child processes of a pool. One runs one version of one reactor for one caller, one run at a time. */
import type { Guest, StartGuest } from './child.js'
import type { GuestRun, RunServices } from './guest-run.js'
import { mayUseAnother as hasRoom, type PoolSettings } from './pool-settings.js'

export interface WorkerServices extends RunServices {
  startGuest: StartGuest
}

export interface Assignment {
  caller: string
  /** Identifies tenant and reactor. */
  key: string
  /** Identifies the caller and its session: code can leave marks on frozen objects of its child that later runs find. */
  holder: string
  /** Identifies code, configuration and rights. A child never runs two versions. */
  version: string
}

export interface Worker {
  readonly guest: Guest
  /** The reactor that it runs or ran last; undefined for a spare. */
  assignment: Assignment | undefined
  runs: number
  busyMs: number
  /** Its resident memory before its first run. */
  freshMiB: number | undefined
  run: GuestRun | undefined
  isStarting: boolean
  /** A newer version of its reactor was requested. */
  isOutdated: boolean
  isBusy: boolean
  /** It has answered and will soon be idle or ended. */
  isFinishing: boolean
  cancelTimer: () => void
}

/** `changed` is called when a child has started or has ended by itself. */
export function createWorkers(settings: PoolSettings, services: WorkerServices, changed: () => void) {
  const all = new Set<Worker>()
  let isClosed = false

  return {
    busyFor,
    mayUseAnother,
    choose,
    lowerPriorityOfOthers,
    keepWarm,
    keepSpares,
    discard,
    retire,
    close,
  }

  function busyFor(caller: string): number {
    return listBusy().filter(({ assignment }) => assignment?.caller === caller).length
  }

  /** `waiting`: the callers in the queue. */
  function mayUseAnother(caller: string, waiting: Iterable<string>): boolean {
    const busy = listBusy()
    const callers = new Set([...waiting, ...busy.map(({ assignment }) => assignment?.caller)]).size
    return hasRoom({ total: busy.length, own: busyFor(caller), callers }, settings)
  }

  /** A child that can run this now, or undefined. Contract: {@link mayUseAnother} is true for the caller. */
  function choose({ key, holder, version, caller }: Assignment): Worker | undefined {
    const isOwn = ({ assignment }: Worker) => assignment?.key === key && assignment.holder === holder
    for (const worker of [...all].filter(isOwn)) {
      if (worker.assignment?.version === version) continue
      worker.isOutdated = true
      if (!worker.isBusy) discard(worker)
    }
    const own = listIdle().find(isOwn)
    if (own !== undefined) return own
    const same = [...all].filter(({ assignment }) => assignment?.key === key)
    if (same.some((worker) => worker.isFinishing && !worker.isOutdated && isOwn(worker))) return undefined
    if (same.length >= settings.mostPerReactor) {
      const idleOfOther = same.find(({ isBusy }) => !isBusy)
      if (idleOfOther === undefined) return undefined
      discard(idleOfOther)
    }
    const idle = listIdle()
    const blank = idle.find(({ assignment }) => assignment === undefined)
    if (blank !== undefined) return blank
    // Starting a child takes more processor time than most runs, so each caller starts one at a time.
    if (listBusy().some((worker) => worker.isStarting && worker.assignment?.caller === caller))
      return undefined
    const { mostChildren, reservedChildren } = settings
    if (all.size >= mostChildren + reservedChildren)
      discard(idle.find(({ assignment }) => assignment?.caller === caller) ?? idle[0]!)
    return start()
  }

  /** Lowers the priority of long runs of other callers who have several runs in progress. */
  function lowerPriorityOfOthers(caller: string): void {
    for (const { guest, assignment, run } of listBusy())
      if (run?.isLong() && assignment!.caller !== caller && busyFor(assignment!.caller) > 1)
        guest.lowerPriority()
  }

  function keepWarm(worker: Worker): void {
    worker.isBusy = false
    worker.cancelTimer = services.clock.after(settings.warmMs, () => discard(worker))
  }

  function keepSpares(): void {
    if (isClosed) return
    const blank = listIdle().filter(({ assignment }) => assignment === undefined).length
    for (let count = blank; count < settings.spares; count++) {
      if (all.size >= settings.mostChildren) return
      start()
    }
  }

  function discard(worker: Worker): void {
    worker.cancelTimer()
    worker.guest.kill()
    all.delete(worker)
  }

  /** Ends idle children and starts no more spares. */
  function retire(): void {
    settings = { ...settings, spares: 0 }
    for (const worker of listIdle()) discard(worker)
  }

  async function close(): Promise<void> {
    isClosed = true
    const ending = [...all]
    for (const worker of ending) {
      worker.run?.stop('closed')
      discard(worker)
    }
    await Promise.all(ending.map(({ guest }) => guest.ended))
  }

  function listBusy(): Worker[] {
    return [...all].filter(({ isBusy }) => isBusy)
  }

  function listIdle(): Worker[] {
    return [...all].filter(({ isBusy }) => !isBusy)
  }

  function start(): Worker {
    const worker: Worker = {
      guest: services.startGuest(),
      assignment: undefined,
      runs: 0,
      busyMs: 0,
      freshMiB: undefined,
      run: undefined,
      isStarting: true,
      isOutdated: false,
      isBusy: false,
      isFinishing: false,
      cancelTimer: () => undefined,
    }
    all.add(worker)
    void worker.guest.ready.then(() => {
      worker.isStarting = false
      changed()
    })
    void worker.guest.ended.then(() => {
      worker.cancelTimer()
      all.delete(worker)
      changed()
    })
    return worker
  }
}
