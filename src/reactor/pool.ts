/** Work for children: who waits, who is given which child, and what became of it. What an invocation does it does not know. */
import { createHash, randomUUID } from 'node:crypto'
import { CofferError } from '../errors.js'
import type {
  ClientCall,
  CompileReport,
  ReactorRun,
  ReactorRuntime,
  Sandbox,
  Invocation as Work,
} from '../framework/reactor-runtime.js'
import { startGuest } from './child.js'
import { createPoolClock } from './clock.js'
import { describeSandbox, findConfinement, listWrappers } from './confinement.js'
import { createHostFetch } from './fetch.js'
import { findGuestFile } from './guest-file.js'
import { Invocation, type Watched } from './invocation.js'
import type { Confinement, NodeProgram } from './launch.js'
import { type Member, type MemberPowers, Members, type Purpose } from './members.js'
import { createMemoryMeter } from './memory.js'
import type { HostMessage } from './messages.js'
import { describeRun, toBreachError, toError } from './outcome.js'
import { DEFAULT_SETTINGS, type PoolSettings } from './pool-settings.js'
import { FairQueue, type Waiting } from './queue.js'

const START_MS = 10_000
/** Who asks for checks of code: no tenant is called so. */
const CHECKS = 'checks'
const NOTHING_READ = { args: [], configuration: [], unknown: [] }

export interface PoolPowers extends MemberPowers {
  sandbox: Sandbox
}

export interface PoolOptions {
  node: NodeProgram
  /** Bundles that code may require, one file each; owner only. */
  modulesDirectory?: string
  /** Hosts that code may fetch from. */
  allowNet?: readonly string[]
  settings?: Partial<PoolSettings>
  /** As found before, for finding it takes time. */
  confinement?: Confinement
}

/** Runs reactor code in children of this process. @throws CofferError `usage` for a bad entry of `allowNet`. */
export function createReactorPool({
  node,
  modulesDirectory,
  allowNet = [],
  settings,
  confinement = confine(node, modulesDirectory),
}: PoolOptions): ReactorRuntime {
  const complete = { ...DEFAULT_SETTINGS, ...settings }
  const guestFile = findGuestFile()
  return new ReactorPool(complete, {
    clock: createPoolClock(),
    meter: createMemoryMeter(node.platform),
    fetch: createHostFetch({ allowNet }),
    startGuest: () => startGuest({ node, guestFile, modulesDirectory, limits: complete.limits, confinement }),
    sandbox: describeSandbox(node, confinement),
  })
}

/** How guests are held on this machine. */
export function confine(node: NodeProgram, modulesDirectory?: string): Confinement {
  return findConfinement(node, findGuestFile(), listWrappers(node, modulesDirectory !== undefined))
}

interface Job extends Waiting, Purpose {
  client: ClientCall | null
  /** The message that starts it, with the code or without. */
  describe(hasCode: boolean): HostMessage
  resolve(watched: Watched): void
}

export class ReactorPool implements ReactorRuntime {
  #settings: PoolSettings
  readonly #powers: PoolPowers
  readonly #members: Members
  readonly #queue: FairQueue<Job>
  #isClosed = false

  constructor(settings: PoolSettings, powers: PoolPowers) {
    this.#settings = settings
    this.#powers = powers
    this.#queue = new FairQueue(powers.clock)
    this.#members = new Members(settings, powers, () => this.#dispatch())
  }

  get sandbox(): Sandbox {
    return this.#powers.sandbox
  }

  async run(work: Work): Promise<ReactorRun> {
    const { tenant, caller = '', application = '', reactor, code, args, configuration, client } = work
    const { prefix, limits } = this.#settings
    const rest = { args, configuration, prefix, hasClient: client !== null, resultBytes: limits.resultBytes }
    const describe = (hasCode: boolean): HostMessage =>
      hasCode ? { kind: 'run', ...rest } : { kind: 'run', code, ...rest }
    const watched = await this.#enqueue({
      caller: `${tenant}/${caller}`,
      key: `${tenant}/${reactor}`,
      version: digest(JSON.stringify([application, configuration]), code),
      client,
      describe,
    })
    return describeRun(watched, limits)
  }

  async check(code: string): Promise<CompileReport> {
    const describe = (): HostMessage => ({ kind: 'check', code })
    const { last } = await this.#enqueue({
      caller: CHECKS,
      key: randomUUID(),
      version: '',
      client: null,
      describe,
    })
    if (typeof last === 'string')
      return { fault: toBreachError(last, this.#settings.limits), ...NOTHING_READ }
    if (last.kind === 'report') {
      const { failure, args, configuration, unknown } = last
      return { ...(failure === undefined ? {} : { fault: toError(failure) }), args, configuration, unknown }
    }
    const failure =
      last.kind === 'failed' ? toError(last.failure) : new CofferError('internal', 'No report came.')
    return { fault: failure, ...NOTHING_READ }
  }

  retire(): void {
    this.#settings = { ...this.#settings, isolation: 'process' }
    this.#members.retire()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#queue.clear(closedError())
    await this.#members.close()
  }

  #enqueue(job: Omit<Job, 'resolve' | 'reject'>): Promise<Watched> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw closedError()
      this.#queue.add(
        { ...job, resolve, reject },
        this.#settings,
        (caller) => this.#members.busyFor(caller) > 0,
      )
      this.#dispatch()
    })
  }

  /** Gives work to whoever may take it. */
  #dispatch(): void {
    if (this.#isClosed) return
    const members = this.#members
    const take = () =>
      this.#queue.take(
        (caller) => members.mayHaveAnother(caller, this.#queue.callers()),
        (job) => members.choose(job),
      )
    for (let taken = take(); taken !== undefined; taken = take()) {
      const [job, member] = taken
      const isWarm = member.purpose !== undefined
      member.isBusy = true
      const { caller, key, version } = job
      member.purpose = { caller, key, version }
      members.makeWayFor(caller)
      this.#work(member, job, isWarm).catch(job.reject)
    }
  }

  async #work(member: Member, job: Job, isWarm: boolean): Promise<void> {
    member.stopWaiting()
    if (!(await this.#isStarted(member))) {
      this.#members.discard(member)
      throw this.#isClosed ? closedError() : startError()
    }
    const { limits } = this.#settings
    const invocation = new Invocation(member.guest, job.describe(isWarm), job.client, limits, this.#powers)
    member.invocation = invocation
    const watched = await invocation.answered
    job.resolve(watched)
    member.isResting = true
    const isFit = await invocation.rested
    member.isResting = false
    member.invocation = undefined
    member.runs += 1
    member.busyMs += watched.durationMs
    if (isFit && this.#mayServeAgain(member, watched)) this.#members.keepWarm(member)
    else this.#members.discard(member)
    this.#dispatch()
    this.#members.keepSpares()
  }

  async #isStarted({ guest }: Member): Promise<boolean> {
    let cancel: () => void = () => undefined
    const late = new Promise<boolean>((resolve) => {
      cancel = this.#powers.clock.after(START_MS, () => resolve(false))
    })
    const isReady = await Promise.race([guest.ready, late])
    cancel()
    return isReady
  }

  #mayServeAgain({ purpose, runs, busyMs, isOutdated }: Member, { memoryMiB }: Watched): boolean {
    const { isolation, mostRuns, limits } = this.#settings
    if (isolation === 'process' || isOutdated || purpose?.caller === CHECKS) return false
    // Garbage that was not collected yet would count against the next run; processor time against its life.
    return runs < mostRuns && memoryMiB < limits.memoryMiB / 2 && busyMs < limits.timeMs
  }
}

/** Tells versions apart without keeping what they hold. */
function digest(given: string, code: string): string {
  return createHash('sha256').update(`${given}\n${code}`).digest('base64')
}

function closedError(): CofferError {
  return new CofferError('unavailable', 'The server is stopping; try again later.')
}

function startError(): CofferError {
  return new CofferError('unavailable', 'No process could be started for the reactor.')
}
