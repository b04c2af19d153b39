/** The pool: queues the runs of reactors, assigns them to child processes and returns their results. */
import { execFileSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { CofferError } from '../errors.js'
import {
  type ClientCall,
  type CompileReport,
  type Invocation,
  MOST_TRANSFORMED_BYTES,
  type ReactorOptions,
  type ReactorRun,
  type ReactorRuntime,
  type Sandbox,
} from '../framework/ports/reactors.js'
import { startGuest } from './child.js'
import { createPoolClock } from './clock.js'
import { describeSandbox } from './confinement.js'
import { createHostFetch } from './fetch.js'
import { GuestRun, type RunOutcome } from './guest-run.js'
import { type Confinement, findGuestFile, type NodeProgram } from './launch.js'
import { mostFrameBytes, type ReactorLimits } from './limits.js'
import { createMemoryMeter, type MemoryMeter } from './memory.js'
import type { GuestMessage, HostMessage } from './messages.js'
import { DEFAULT_SETTINGS, type PoolSettings } from './pool-settings.js'
import { createFairQueue, type QueuedRun } from './queue.js'
import { describeRun, toError, toStopError } from './run-outcome.js'
import { Watchdog } from './watchdog.js'
import { type Assignment, createWorkers, type Worker, type WorkerServices } from './workers.js'

const START_MS = 10_000
/** Above this size other requests are handled between the steps of reading a result. */
const LARGE_CHARACTERS = 64 * 1024
/** A child whose resident memory has grown by more since its start serves no further run. */
const MOST_GROWTH_MIB = 16
/** The caller of checks of code; callers of runs begin with the number of a tenant. */
const CHECKS = 'checks'
const NOTHING_READ = { args: [], configuration: [], unknown: [] }

interface PoolOptions extends Pick<ReactorOptions, 'modulesDirectory' | 'allowNet' | 'ca'> {
  node: NodeProgram
  settings?: Partial<PoolSettings>
  confinement: Confinement
}

/** Runs reactor code in child processes. @throws CofferError `usage` for an invalid entry of `allowNet`. */
export function createReactorPool(options: PoolOptions): ReactorRuntime {
  const { node, modulesDirectory, allowNet = [], ca, settings, confinement } = options
  const complete = { ...DEFAULT_SETTINGS, ...settings }
  const guestFile = findGuestFile()
  const watchdog = new Watchdog(node.platform)
  const fetch = createHostFetch({ allowNet, ...(ca === undefined ? {} : { ca }) })
  const pool = createPool(complete, {
    clock: createPoolClock(),
    meter: createMemoryMeter(node.platform, { readFileSync, execFileSync }),
    watch: watchdog.watch,
    fetch,
    startGuest: () => {
      watchdog.start()
      return startGuest({ node, guestFile, modulesDirectory, limits: complete.limits, confinement })
    },
    sandbox: describeSandbox(confinement, node),
  })
  const close = async () => {
    await pool.close()
    fetch.close()
    await watchdog.close()
  }
  return { ...pool, close }
}

interface Job extends QueuedRun, Assignment {
  client: ClientCall | null
  limits: ReactorLimits
  /** The message that starts the run; `hasCode`: the guest has the code already. */
  describe(hasCode: boolean): HostMessage
  /** The body of the message that is transformed. */
  body: Uint8Array | undefined
  mostBodyBytes: number
  resolve(outcome: RunOutcome): void
}

export function createPool(
  settings: PoolSettings,
  services: WorkerServices & { sandbox: Sandbox },
): ReactorRuntime {
  const workers = createWorkers(settings, services, dispatch)
  const queue = createFairQueue<Job>(services.clock)
  const closed = () => toStopError('closed', settings.limits)
  let isClosed = false

  return { sandbox: services.sandbox, run, check, retire, close }

  async function run(invocation: Invocation): Promise<ReactorRun> {
    const { tenant, caller = '', session = '', rights = '', reactor, code, client, timeMs } = invocation
    const { args, rest, configuration, message } = invocation
    const { prefix, limits: most, time } = settings
    const limits = { ...most, timeMs: Math.min(most.timeMs, timeMs ?? most.timeMs) }
    const { body, ...head } = message ?? {}
    const hasBody = body !== undefined && body.length > 0
    const given = {
      ...{ args, rest, configuration, prefix, hasClient: client !== null, time: time?.() },
      resultBytes: limits.resultBytes,
      ...(message === undefined ? {} : { message: { ...(head as typeof message), hasBody } }),
    }
    const describe = (hasCode: boolean): HostMessage =>
      hasCode ? { kind: 'run', ...given } : { kind: 'run', code, ...given }
    const outcome = await enqueue({
      caller: `${tenant}/${caller}`,
      key: `${tenant}/${reactor}`,
      holder: JSON.stringify([caller, session]),
      version: digest(JSON.stringify([rights, configuration]), code),
      client,
      limits,
      describe,
      body: hasBody ? body : undefined,
      mostBodyBytes: message === undefined ? 0 : MOST_TRANSFORMED_BYTES,
    })
    const { last } = outcome
    // Three turns of the event loop: its message was parsed in this one; next its content is, then the answer is written.
    const isLarge = typeof last === 'object' && last.kind === 'done' && sizeOf(last) > LARGE_CHARACTERS
    if (isLarge) await setImmediate()
    const described = describeRun(outcome, limits, prefix)
    if (isLarge) await setImmediate()
    return described
  }

  async function check(code: string): Promise<CompileReport> {
    const { limits } = settings
    const describe = (): HostMessage => ({ kind: 'check', code })
    const { last } = await enqueue({
      caller: CHECKS,
      key: randomUUID(),
      holder: '',
      version: '',
      client: null,
      limits,
      describe,
      body: undefined,
      mostBodyBytes: 0,
    })
    if (typeof last === 'string') return { fault: toStopError(last, limits), ...NOTHING_READ }
    if (last.kind === 'report') {
      const { failure, args, configuration, unknown } = last
      return { ...(failure === undefined ? {} : { fault: toError(failure) }), args, configuration, unknown }
    }
    const failure =
      last.kind === 'failed' ? toError(last.failure) : new CofferError('internal', 'No report came.')
    return { fault: failure, ...NOTHING_READ }
  }

  function retire(): void {
    settings = { ...settings, isolation: 'process' }
    workers.retire()
  }

  async function close(): Promise<void> {
    isClosed = true
    queue.clear(closed())
    await workers.close()
  }

  function enqueue(job: Omit<Job, 'resolve' | 'reject'>): Promise<RunOutcome> {
    return new Promise((resolve, reject) => {
      if (isClosed) throw closed()
      queue.add({ ...job, resolve, reject }, settings, (caller) => workers.busyFor(caller) > 0)
      dispatch()
    })
  }

  /** Assigns queued jobs to workers until no job can be assigned. */
  function dispatch(): void {
    if (isClosed) return
    const take = () =>
      queue.take(
        (caller) => workers.mayUseAnother(caller, queue.callers()),
        (job) => workers.choose(job),
      )
    for (let taken = take(); taken !== undefined; taken = take()) {
      const [job, worker] = taken
      const isWarm = worker.assignment !== undefined
      worker.isBusy = true
      const { caller, key, holder, version } = job
      worker.assignment = { caller, key, holder, version }
      workers.lowerPriorityOfOthers(caller)
      work(worker, job, isWarm).catch(job.reject)
    }
  }

  async function work(worker: Worker, job: Job, isWarm: boolean): Promise<void> {
    worker.cancelTimer()
    if (!(await isStarted(worker))) {
      workers.discard(worker)
      throw isClosed
        ? closed()
        : new CofferError('unavailable', 'No process could be started for the reactor.')
    }
    worker.guest.mostBytes = mostFrameBytes(job.limits)
    worker.guest.mostBodyBytes = job.mostBodyBytes
    worker.freshMiB ??= readMiB(services.meter, worker.guest)
    const run = new GuestRun(worker.guest, { ...job, message: job.describe(isWarm) }, services)
    worker.run = run
    const outcome = await run.answered
    job.resolve(outcome)
    worker.isFinishing = true
    const isFit = await run.idle
    worker.isFinishing = false
    worker.run = undefined
    worker.runs += 1
    worker.busyMs += outcome.durationMs
    if (isFit && mayServeAgain(worker)) workers.keepWarm(worker)
    else workers.discard(worker)
    dispatch()
    workers.keepSpares()
  }

  async function isStarted({ guest }: Worker): Promise<boolean> {
    let cancel: () => void = () => undefined
    const late = new Promise<boolean>((resolve) => {
      cancel = services.clock.after(START_MS, () => resolve(false))
    })
    const isReady = await Promise.race([guest.ready, late])
    cancel()
    return isReady
  }

  function mayServeAgain({ guest, assignment, runs, busyMs, freshMiB = 0, isOutdated }: Worker): boolean {
    const { isolation, mostRuns, limits } = settings
    if (isolation === 'process' || isOutdated || assignment?.caller === CHECKS) return false
    // Memory that a run leaves would count for the next run. The child's processor time is limited in total.
    const grownMiB = (readMiB(services.meter, guest) ?? 0) - freshMiB
    return runs < mostRuns && grownMiB <= MOST_GROWTH_MIB && busyMs < limits.timeMs
  }
}

function sizeOf({ raw = '', tokenize = '', res = '' }: Extract<GuestMessage, { kind: 'done' }>): number {
  return raw.length + tokenize.length + res.length
}

/** A digest, so that the pool compares versions without storing code and configuration. */
function digest(given: string, code: string): string {
  return createHash('sha256').update(`${given}\n${code}`).digest('base64')
}

/** The resident memory of a guest; undefined before it is ready and after its end. */
function readMiB(meter: MemoryMeter, { pid }: { pid: number | undefined }): number | undefined {
  return pid === undefined ? undefined : meter(pid)
}
