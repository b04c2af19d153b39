/**
 * The children that run reactor code: who gets which, how long they stay warm, and that none is left. A child serves
 * one reactor of one tenant, one invocation at a time. It knows nothing of what an invocation does.
 */
import { randomUUID } from 'node:crypto'
import { CofferError } from '../errors.js'
import type {
  ClientCall,
  CompileReport,
  ReactorRun,
  ReactorRuntime,
  Invocation as Work,
} from '../operations/reactor-runtime.js'
import { type Guest, type StartGuest, startGuest } from './child.js'
import { createPoolClock } from './clock.js'
import { createHostFetch } from './fetch.js'
import { findGuestFile } from './guest-file.js'
import { Invocation, type Powers, type Watched } from './invocation.js'
import type { NodeProgram } from './launch.js'
import { createMemoryMeter } from './memory.js'
import type { HostMessage } from './messages.js'
import { describeRun, toBreachError, toError } from './outcome.js'
import { DEFAULT_SETTINGS, type PoolSettings } from './pool-settings.js'

const MOST_WAITING = 1_000
const START_MS = 10_000

export interface PoolPowers extends Powers {
  startGuest: StartGuest
}

export interface PoolOptions {
  node: NodeProgram
  /** Bundles that code may require, one file each; owner only. */
  modulesDirectory?: string
  /** Hosts that code may fetch from. */
  allowNet?: readonly string[]
  settings?: Partial<PoolSettings>
}

/** Runs reactor code in children of this process. @throws CofferError `usage` for a bad entry of `allowNet`. */
export function createReactorPool({
  node,
  modulesDirectory,
  allowNet = [],
  settings,
}: PoolOptions): ReactorRuntime {
  const complete = { ...DEFAULT_SETTINGS, ...settings }
  const guestFile = findGuestFile()
  return new ReactorPool(complete, {
    clock: createPoolClock(),
    meter: createMemoryMeter(node.platform),
    fetch: createHostFetch({ allowNet }),
    startGuest: () => startGuest({ node, guestFile, modulesDirectory, limits: complete.limits }),
  })
}

interface Member {
  readonly guest: Guest
  /** Whose code it ran; undefined while blank. */
  key: string | undefined
  code: string | undefined
  runs: number
  busyMs: number
  invocation: Invocation | undefined
  isBusy: boolean
  /** It answered and will soon be idle or gone: worth waiting for. */
  isResting: boolean
  stopWaiting: () => void
}

interface Job {
  key: string
  client: ClientCall | null
  /** The message that starts it, with the code or without. */
  describe(hasCode: boolean): HostMessage
  code: string | undefined
  resolve(watched: Watched): void
  reject(error: unknown): void
}

export class ReactorPool implements ReactorRuntime {
  #settings: PoolSettings
  readonly #powers: PoolPowers
  readonly #members = new Set<Member>()
  readonly #waiting: Job[] = []
  #isClosed = false

  constructor(settings: PoolSettings, powers: PoolPowers) {
    this.#settings = settings
    this.#powers = powers
  }

  async run({ tenant, reactor, code, args, configuration, client }: Work): Promise<ReactorRun> {
    const { prefix, limits } = this.#settings
    const rest = { args, configuration, prefix, hasClient: client !== null, resultBytes: limits.resultBytes }
    const describe = (hasCode: boolean): HostMessage =>
      hasCode ? { kind: 'run', ...rest } : { kind: 'run', code, ...rest }
    const watched = await this.#enqueue({ key: `${tenant}/${reactor}`, client, code, describe })
    return describeRun(watched, limits)
  }

  async check(code: string): Promise<CompileReport> {
    const describe = (): HostMessage => ({ kind: 'check', code })
    const { last } = await this.#enqueue({
      key: `check/${randomUUID()}`,
      client: null,
      code: undefined,
      describe,
    })
    if (typeof last === 'string')
      return { fault: toBreachError(last, this.#settings.limits), args: [], configuration: [] }
    if (last.kind === 'report') {
      const { failure, args, configuration } = last
      return { ...(failure === undefined ? {} : { fault: toError(failure) }), args, configuration }
    }
    const failure =
      last.kind === 'failed' ? toError(last.failure) : new CofferError('internal', 'No report came.')
    return { fault: failure, args: [], configuration: [] }
  }

  retire(): void {
    this.#settings = { ...this.#settings, isolation: 'process', spares: 0 }
    for (const member of [...this.#members]) if (!member.isBusy) this.#discard(member)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const job of this.#waiting.splice(0)) job.reject(closedError())
    const members = [...this.#members]
    for (const member of members) {
      member.invocation?.breach('closed')
      this.#discard(member)
    }
    await Promise.all(members.map(({ guest }) => guest.ended))
  }

  #enqueue(job: Omit<Job, 'resolve' | 'reject'>): Promise<Watched> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw closedError()
      if (this.#waiting.length >= MOST_WAITING)
        throw new CofferError('unavailable', 'Too many reactors wait to be run; try again later.')
      this.#waiting.push({ ...job, resolve, reject })
      this.#dispatch()
    })
  }

  /** Gives work to whoever may take it, the longest waiting first. */
  #dispatch(): void {
    for (let at = 0; at < this.#waiting.length && this.#hasRoom(); ) {
      const member = this.#choose(this.#waiting[at]!.key)
      if (member === undefined) at += 1
      else {
        const [job] = this.#waiting.splice(at, 1)
        member.isBusy = true
        this.#work(member, job!).catch(job!.reject)
      }
    }
  }

  #hasRoom(): boolean {
    if (this.#members.size < this.#settings.mostChildren) return true
    return [...this.#members].some(({ isBusy }) => !isBusy)
  }

  #choose(key: string): Member | undefined {
    const members = [...this.#members]
    const idle = members.filter(({ isBusy }) => !isBusy)
    const own = idle.find((member) => member.key === key)
    if (own !== undefined) return own
    if (members.filter((member) => member.key === key).length >= this.#settings.mostPerReactor)
      return undefined
    if (members.some((member) => member.key === key && member.isResting)) return undefined
    const blank = idle.find((member) => member.key === undefined)
    if (blank !== undefined) return blank
    if (members.length < this.#settings.mostChildren) return this.#start()
    const [oldest] = idle
    if (oldest === undefined) return undefined
    this.#discard(oldest)
    return this.#start()
  }

  #start(): Member {
    const member: Member = {
      guest: this.#powers.startGuest(),
      key: undefined,
      code: undefined,
      runs: 0,
      busyMs: 0,
      invocation: undefined,
      isBusy: false,
      isResting: false,
      stopWaiting: () => undefined,
    }
    this.#members.add(member)
    void member.guest.ended.then(() => this.#forget(member))
    return member
  }

  async #work(member: Member, job: Job): Promise<void> {
    member.stopWaiting()
    const isWarm = member.key === job.key && member.code !== undefined && member.code === job.code
    member.key = job.key
    member.code = job.code
    if (!(await this.#isStarted(member))) {
      this.#discard(member)
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
    if (isFit && this.#mayServeAgain(member, watched)) this.#keepWarm(member)
    else this.#discard(member)
    this.#keepSpares()
    this.#dispatch()
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

  #mayServeAgain({ key, runs, busyMs }: Member, { memoryMiB }: Watched): boolean {
    const { isolation, mostRuns, limits } = this.#settings
    if (isolation === 'process' || key?.startsWith('check/')) return false
    // Garbage that was not collected yet would count against the next run; processor time against its life.
    return runs < mostRuns && memoryMiB < limits.memoryMiB / 2 && busyMs < limits.timeMs
  }

  #keepWarm(member: Member): void {
    member.isBusy = false
    member.stopWaiting = this.#powers.clock.after(this.#settings.warmMs, () => this.#discard(member))
  }

  #keepSpares(): void {
    if (this.#isClosed) return
    const blank = [...this.#members].filter(({ key }) => key === undefined).length
    for (let count = blank; count < this.#settings.spares; count++) {
      if (this.#members.size >= this.#settings.mostChildren) return
      this.#start()
    }
  }

  #discard(member: Member): void {
    member.stopWaiting()
    member.guest.kill()
    this.#members.delete(member)
  }

  /** It ended by itself; nobody may be given it any more. */
  #forget(member: Member): void {
    member.stopWaiting()
    this.#members.delete(member)
    if (!this.#isClosed) this.#dispatch()
  }
}

function closedError(): CofferError {
  return new CofferError('unavailable', 'The server is stopping; try again later.')
}

function startError(): CofferError {
  return new CofferError('unavailable', 'No process could be started for the reactor.')
}
