/** A run of a guest under limits: the host measures time, memory, console lines and calls, and kills the guest. */
import { parseJson } from '../domain/json/json.js'
import { CofferError, toProblem } from '../errors.js'
import type { ClientCall, ConsoleLine } from '../framework/ports/reactors.js'
import type { ExitReason, Guest } from './child.js'
import type { PoolClock } from './clock.js'
import type { HostFetch } from './fetch.js'
import { CALLS_AT_ONCE, type ReactorLimits } from './limits.js'
import type { MemoryMeter } from './memory.js'
import {
  CLIENT_CALLS,
  FETCH_CALL,
  type FetchRequest,
  type GuestMessage,
  type HostMessage,
} from './messages.js'
import type { StartWatch, Watch } from './watchdog.js'

/** Why a run was stopped: an exceeded limit, the end of the pool, or the end of the child. */
export type StopReason = 'time' | 'memory' | 'log' | 'calls' | 'call size' | 'closed' | ExitReason

/** Resident memory that a run may add beyond its heap limit: new space, compiled code, buffers of the channel. */
const RESIDENT_SLACK_MIB = 64
/** The cost of storing a console line in addition to its text. */
const LINE_BYTES = 64
/** A run of at least this many ms yields to the runs of other callers. */
const LONG_MS = 250
/** ms that a guest may take from its answer until it is idle. */
const IDLE_MS = 250

type FinalMessage = Extract<GuestMessage, { kind: 'done' | 'failed' | 'report' }>

export interface RunServices {
  clock: PoolClock
  meter: MemoryMeter
  watch: StartWatch
  fetch: HostFetch
}

export interface RunOutcome {
  /** The guest's final message, or why the run was stopped. */
  last: FinalMessage | StopReason
  console: ConsoleLine[]
  durationMs: number
  memoryMiB: number
}

type Call = Extract<GuestMessage, { kind: 'call' }>

interface Work {
  message: HostMessage
  body: Uint8Array | undefined
  client: ClientCall | null
  limits: ReactorLimits
}

export class GuestRun {
  /** Resolves with the outcome, before the guest is idle. */
  readonly answered: Promise<RunOutcome>
  /** Resolves to true if the guest is idle and can run more work, to false if it has ended. */
  readonly idle: Promise<boolean>
  readonly #guest: Guest
  readonly #client: ClientCall | null
  readonly #limits: ReactorLimits
  readonly #services: RunServices
  readonly #startedMs: number
  readonly #idleMiB: number
  readonly #watch: Watch
  readonly #console: ConsoleLine[] = []
  readonly #abort = new AbortController()
  readonly #queuedCalls: Call[] = []
  #activeCalls = 0
  #calls = 0
  #callBytes = 0
  #logBytes = 0
  #isAnswered = false
  #answer: (outcome: RunOutcome) => void = () => undefined
  #settleIdle: (isFit: boolean) => void = () => undefined

  constructor(guest: Guest, { message, body, client, limits }: Work, services: RunServices) {
    this.#guest = guest
    this.#client = client
    this.#limits = limits
    this.#services = services
    this.#startedMs = services.clock.now()
    this.#idleMiB = this.#readMiB() ?? 0
    this.answered = new Promise((resolve) => {
      this.#answer = resolve
    })
    this.idle = new Promise((resolve) => {
      this.#settleIdle = resolve
    })
    const mostMiB = this.#idleMiB + limits.memoryMiB + RESIDENT_SLACK_MIB
    this.#watch = services.watch(guest, { timeMs: limits.timeMs, mostMiB })
    guest.listener = {
      message: (message) => this.#receive(message),
      end: (ending) => {
        this.#settle(ending)
        this.#settleIdle(false)
      },
    }
    void guest.send(message, body)
  }

  isLong(): boolean {
    return this.#services.clock.now() - this.#startedMs >= LONG_MS
  }

  stop(reason: StopReason): void {
    this.#settle(reason)
    this.#guest.kill()
    this.#settleIdle(false)
  }

  #settle(last: RunOutcome['last']): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    const { killed, peakMiB } = this.#watch.end()
    // Aborting creates an error object, which is rarely needed.
    if (this.#calls > 0) this.#abort.abort()
    this.#queuedCalls.length = 0
    this.#answer({
      last: typeof last === 'string' ? (killed ?? last) : last,
      console: this.#console,
      durationMs: this.#services.clock.now() - this.#startedMs,
      memoryMiB: Math.max(peakMiB, this.#readMiB() ?? 0, this.#idleMiB) - this.#idleMiB,
    })
  }

  #receive(message: GuestMessage): void {
    if (message.kind === 'idle') this.#settleIdle(this.#isAnswered)
    else if (this.#isAnswered) return
    else if (message.kind === 'log') this.#receiveLine(message)
    else if (message.kind === 'call') this.#receiveCall(message)
    else if (message.kind !== 'ready') this.#receiveAnswer(message)
  }

  #receiveAnswer(last: FinalMessage): void {
    this.#settle(last)
    const cancel = this.#services.clock.after(IDLE_MS, () => this.stop('ended'))
    void this.idle.finally(cancel)
  }

  #receiveLine({ level, text }: Extract<GuestMessage, { kind: 'log' }>): void {
    this.#logBytes += Buffer.byteLength(text) + LINE_BYTES
    if (this.#logBytes > this.#limits.logBytes) this.stop('log')
    else this.#console.push({ level: level as ConsoleLine['level'], text })
  }

  #receiveCall(call: Call): void {
    this.#calls += 1
    this.#callBytes += Buffer.byteLength(call.args)
    if (this.#calls > this.#limits.calls) this.stop('calls')
    else if (this.#callBytes > this.#limits.callBytes) this.stop('call size')
    else {
      this.#queuedCalls.push(call)
      this.#startCalls()
    }
  }

  #startCalls(): void {
    while (this.#activeCalls < CALLS_AT_ONCE && this.#queuedCalls.length > 0) {
      this.#activeCalls += 1
      void this.#answerCall(this.#queuedCalls.shift()!)
    }
  }

  async #answerCall(call: Call): Promise<void> {
    const answer = await this.#perform(call)
    if (this.#isAnswered) return
    // Wait until it is written: answers that the code does not read would accumulate in the host.
    await this.#guest.send(answer)
    this.#activeCalls -= 1
    this.#startCalls()
  }

  /** Never rejects; the code receives the error. */
  async #perform({ call, name, args }: Call): Promise<HostMessage> {
    try {
      const list = parseJson(args, { source: `an argument of ${name}` }) as unknown[]
      return { kind: 'reply', call, value: await this.#dispatch(name, list) }
    } catch (error) {
      const problem = toProblem(error, this.#client?.traceId ?? '')
      if (name === FETCH_CALL) return { kind: 'refusal', call, message: `fetch failed: ${problem.detail}` }
      return { kind: 'refusal', call, message: problem.detail, status: problem.status, data: problem }
    }
  }

  #dispatch(name: string, args: readonly unknown[]): Promise<unknown> {
    if (name === FETCH_CALL) return this.#services.fetch(args[0] as FetchRequest, this.#abort.signal)
    if (this.#client !== null && CLIENT_CALLS.includes(name)) return this.#client(name, args)
    throw new CofferError('not_found', 'There is no such call.')
  }

  #readMiB(): number | undefined {
    const { pid } = this.#guest
    return pid === undefined ? undefined : this.#services.meter(pid)
  }
}
