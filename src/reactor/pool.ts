import { createHash, randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { CodeFault } from '../domain/reactor/code-fault.js'
import { CofferError } from '../errors.js'
import {
  type Invocation,
  MAX_TRANSFORMED_BYTES,
  type ReactorRun,
  type ReactorRuntime,
  type Sandbox,
} from '../framework/ports/reactors.js'
import {
  describeRun,
  faultsOf,
  GuestRun,
  type RunOutcome,
  toError,
  toStopError,
  type Work,
} from './guest-run.js'
import type { HostMessage } from './messages.js'
import { guestSizeOf, type PoolSettings } from './settings.js'
import { type Assignment, type Worker, type WorkerServices, Workers } from './workers.js'

const START_MS = 10_000
/** In characters. A larger result is read in steps, and the server handles other requests between two steps. */
const LARGE_CHARACTERS = 64 * 1024
/**
 * If the resident memory of a child has grown by more than this after loading its code, the child gets no further run.
 */
const MAX_GROWTH_MIB = 16
/** The limit of growth also includes the memory of this many loads of the code, up to {@link MAX_LOADED_MIB}. */
const LOADS_KEPT = 3
const MAX_LOADED_MIB = 64
/** A check may take this time to load code. A run may take longer, up to its time limit. */
const CHECK_MS = 3_000
/**
 * All checks that load code are queued under this caller name. Names of other callers begin with the number of a
 * tenant.
 */
const CHECKS = 'checks'
/**
 * Checks that only compile code are queued under this name. Compiled code does not run, so these checks share a child.
 */
const COMPILING = { caller: 'compiling', key: 'compiling' }

interface Job extends Assignment, Work {
  packages?: Invocation['packages']
  mayStart?: Invocation['mayStart']
  isAsync: boolean
  resolve(outcome: RunOutcome): void
  reject(error: unknown): void
}

interface PoolServices extends WorkerServices {
  sandbox: Sandbox
  close?(): Promise<void>
}

export class ReactorPool implements ReactorRuntime {
  readonly sandbox: Sandbox
  #settings: PoolSettings
  readonly #services: PoolServices
  readonly #workers: Workers
  /**
   * Waiting jobs by caller, each with a function that cancels the timer of the job. Callers take turns in the order of
   * this map. No queue is empty.
   */
  readonly #queues = new Map<string, Map<Job, () => void>>()
  #waiting = 0
  #isClosed = false

  constructor(settings: PoolSettings, services: PoolServices) {
    this.sandbox = services.sandbox
    this.#settings = settings
    this.#services = services
    this.#workers = new Workers(settings, services, () => this.#dispatch())
  }

  /**
   * Started and waiting runs keep their old limits. Existing children get no further run if the settings have changed.
   */
  configure(settings: PoolSettings): void {
    if (JSON.stringify(settings) === JSON.stringify(this.#settings)) return
    this.#settings = settings
    this.#workers.configure(settings)
  }

  async run(invocation: Invocation): Promise<ReactorRun> {
    const { tenant, caller = '', session = '', rights = '', reactor, code, client } = invocation
    const {
      args,
      rest,
      configuration,
      message: { body, ...head } = {},
      mayStart,
      access,
      packages = [],
    } = invocation
    const digests = packages.map(({ name, digest }) => [name, digest])
    const { prefix, limits: most, time } = this.#settings
    const { isAsync = false } = invocation
    const mostMs = isAsync ? most.asyncTimeMs : most.timeMs
    const limits = {
      ...most,
      timeMs: Math.min(mostMs, invocation.timeMs ?? mostMs),
      memoryMiB: most.memoryMiB * (invocation.memoryFactor ?? 1),
    }
    const isTransform = invocation.message !== undefined
    const message: HostMessage = {
      kind: 'run',
      ...{ code, args, rest, configuration, prefix, hasClient: client !== null, time: time?.() },
      image: invocation.image,
      resultBytes: limits.resultBytes,
      ...(isTransform ? { message: head as typeof invocation.message } : {}),
    }
    const outcome = await this.#enqueue({
      caller: `${tenant}/${caller}`,
      key: `${tenant}/${reactor}`,
      holder: JSON.stringify([caller, session]),
      // A digest, so that versions can be compared without storing code and configuration.
      version: createHash('sha256')
        .update(`${JSON.stringify([rights, configuration, digests])}\n${code}`)
        .digest('base64'),
      size: guestSizeOf({ ...most, memoryMiB: limits.memoryMiB }, isAsync),
      ...{ client, access, limits, message, body, mayStart, isAsync, packages },
      maxBodyBytes: isTransform ? MAX_TRANSFORMED_BYTES : 0,
    })
    // A large result takes three iterations of the event loop: to read its message, to parse its content, and to
    // answer.
    const { raw = '', tokenize = '', res = '' } = typeof outcome.last === 'string' ? {} : outcome.last
    const isLarge = raw.length + tokenize.length + res.length > LARGE_CHARACTERS
    if (isLarge) await setImmediate()
    const described = describeRun(outcome, { limits, prefix, failureStatus: invocation.failureStatus })
    if (isLarge) await setImmediate()
    return described
  }

  async check(code: string, packages: Invocation['packages'] = []): Promise<void> {
    const own = { caller: CHECKS, key: randomUUID() }
    const { limits, last } = await this.#check(own, { kind: 'check', code }, packages)
    if (last === 'time') {
      const message = `The code took longer than ${limits.timeMs} ms to load and was stopped.`
      throw new CofferError('reactor_timeout', message)
    }
    if (typeof last === 'string') throw toStopError(last, limits)
    if (last.failure !== undefined) throw toError(last.failure)
  }

  async compile(code: string): Promise<readonly CodeFault[]> {
    const { last } = await this.#check(COMPILING, { kind: 'check', code, isCompiledOnly: true })
    // If the child exceeded a limit or ended, returns no fault, because a run of the code reports that problem.
    if (typeof last === 'string' || last.failure?.kind !== 'invalid') return []
    return faultsOf(last.failure)
  }

  async #check(
    own: Pick<Assignment, 'caller' | 'key'>,
    message: HostMessage,
    packages: Invocation['packages'] = [],
  ) {
    const { limits: most } = this.#settings
    const limits = { ...most, timeMs: Math.min(most.timeMs, CHECK_MS) }
    const assignment = { ...own, holder: '', version: '', size: guestSizeOf(most, false) }
    const options = { client: null, maxBodyBytes: 0, isAsync: false }
    const { last } = await this.#enqueue({ ...assignment, ...options, message, limits, packages })
    return { limits, last }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const job of [...this.#queues.values()].flatMap((queue) => [...queue.keys()])) {
      this.#remove(job)
      job.reject(this.#closedError())
    }
    await this.#workers.close()
    await this.#services.close?.()
  }

  #closedError(): CofferError {
    return toStopError('closed', this.#settings.limits)
  }

  /**
   * @throws CofferError `rate_limited` if too many runs of the caller wait, `unavailable` if too many runs wait in
   * total or the pool is closed, and one of these errors if the run waits too long
   */
  #enqueue(asked: Omit<Job, 'resolve' | 'reject'>): Promise<RunOutcome> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw this.#closedError()
      const { maxWaiting, maxWaitingOfCaller, limits } = this.#settings
      // An asynchronous run must be able to wait for the longest possible asynchronous run.
      const waitMs = Math.max(this.#settings.waitMs, asked.isAsync ? limits.asyncTimeMs : 0)
      const { caller } = asked
      const job = { ...asked, resolve, reject }
      const queue = this.#queues.get(caller) ?? new Map<Job, () => void>()
      const retryMs = this.#settings.waitMs
      if (queue.size >= maxWaitingOfCaller) throw overloaded(true, retryMs)
      if (this.#waiting >= maxWaiting) throw overloaded(false, retryMs)
      const refuse = () => {
        this.#remove(job)
        reject(overloaded(this.#workers.busyFor(caller) > 0, retryMs))
      }
      queue.set(job, this.#services.clock.after(waitMs, refuse))
      this.#queues.set(caller, queue)
      this.#waiting += 1
      this.#dispatch()
    })
  }

  #remove(job: Job): void {
    const queue = this.#queues.get(job.caller)
    queue?.get(job)?.()
    queue?.delete(job)
    if (queue?.size === 0) this.#queues.delete(job.caller)
    this.#waiting -= 1
  }

  #dispatch(): void {
    while (!this.#isClosed) {
      const [job, worker] = this.#take() ?? []
      if (job === undefined || worker === undefined) return
      const isWarm = worker.assignment !== undefined
      const { caller, key, holder, version, size } = job
      worker.isBusy = true
      worker.assignment = { caller, key, holder, version, size }
      this.#workers.lowerPriorityOfOthers(caller)
      this.#work(worker, job, isWarm).catch(job.reject)
    }
  }

  /**
   * Removes the next job from its queue, and chooses a child. Callers take turns, and the oldest job of a caller comes
   * first.
   */
  #take(): [Job, Worker] | undefined {
    for (const [caller, queue] of this.#queues) {
      if (!this.#workers.mayUseAnother(caller, this.#queues.keys())) continue
      for (const job of queue.keys()) {
        let worker: Worker | undefined
        try {
          worker = this.#workers.choose(job)
        } catch (error) {
          this.#remove(job)
          job.reject(error)
        }
        if (worker === undefined) continue
        this.#remove(job)
        // Moves this caller to the end of the order.
        if (this.#queues.delete(caller)) this.#queues.set(caller, queue)
        return [job, worker]
      }
    }
    return undefined
  }

  async #work(worker: Worker, job: Job, isWarm: boolean): Promise<void> {
    const { guest } = worker
    worker.cancelTimer()
    if (!(await this.#isStarted(worker))) {
      this.#workers.discard(worker)
      throw this.#noProcess()
    }
    await this.#admit(worker, job, isWarm)
    if (!isWarm)
      for (const { name, text } of job.packages ?? []) void guest.send({ kind: 'package', name }, text)
    const message = isWarm ? withoutKnownCode(job.message) : job.message
    const run = new GuestRun(guest, { ...job, message }, this.#services)
    worker.run = run
    const outcome = await run.answered
    job.resolve(outcome)
    worker.isFinishing = true
    const isFit = await run.idle
    worker.isFinishing = false
    worker.run = undefined
    if (worker.loadedMiB === undefined) {
      worker.loadedMiB = run.loadedMiB
      worker.loadingMiB = run.loadedMiB - run.idleMiB
    }
    worker.runs += 1
    worker.busyMs += outcome.durationMs
    this.#release(worker, isFit)
  }

  /** @throws CofferError `unavailable` if the child has ended, and the errors of `mayStart` */
  async #admit(worker: Worker, { mayStart }: Job, isWarm: boolean): Promise<void> {
    try {
      await mayStart?.()
    } catch (error) {
      // A child that is not warm has not received the code of its version, so this child must not be used again.
      this.#release(worker, isWarm)
      throw error
    }
    // The child may have ended while `mayStart` ran.
    if (!this.#workers.has(worker)) throw this.#noProcess()
  }

  #noProcess(): CofferError {
    if (this.#isClosed) return this.#closedError()
    return new CofferError('unavailable', 'No process could be started for the reactor.')
  }

  #release(worker: Worker, isFit: boolean): void {
    if (isFit && this.#mayServeAgain(worker)) this.#workers.keepWarm(worker)
    else this.#workers.discard(worker)
    this.#dispatch()
    if (!this.#isClosed) this.#workers.keepSpares()
  }

  async #isStarted({ guest }: Worker): Promise<boolean> {
    let cancel: () => void = () => undefined
    const late = new Promise<boolean>((resolve) => {
      cancel = this.#services.clock.after(START_MS, () => resolve(false))
    })
    return Promise.race([guest.ready, late]).finally(cancel)
  }

  #mayServeAgain({
    guest,
    size,
    assignment,
    runs,
    busyMs,
    loadedMiB = 0,
    loadingMiB,
    isOutdated,
  }: Worker): boolean {
    const { isolation, maxRuns } = this.#settings
    if (isolation === 'process' || isOutdated || assignment?.caller === CHECKS) return false
    // Memory that a run did not free counts for later runs, and the limit for the processor time applies to all runs of
    // a child together.
    const grownMiB = (this.#services.meter(guest.pid) ?? 0) - loadedMiB
    // Each run loads the code again, and the memory of earlier loads is not freed at once.
    const maxMiB = MAX_GROWTH_MIB + Math.min(LOADS_KEPT * loadingMiB, MAX_LOADED_MIB)
    return runs < maxRuns && grownMiB <= maxMiB && busyMs < size.busyMs
  }
}

/** A child keeps the code of its first run, so later messages omit the code. */
function withoutKnownCode(message: HostMessage): HostMessage {
  if (message.kind !== 'run') return message
  const { code: _, ...others } = message
  return others
}

function overloaded(isOwn: boolean, retryMs: number): CofferError {
  const retryAfterSeconds = Math.ceil(retryMs / 1000)
  const what = isOwn
    ? 'This caller has requested too many runs of reactors at once.'
    : 'All reactors are busy.'
  const message = `${what} Try again in ${retryAfterSeconds} s.`
  return new CofferError(isOwn ? 'rate_limited' : 'unavailable', message, { retryAfterSeconds })
}
