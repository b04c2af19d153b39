/**
 * One piece of work on one guest, outcome from outside: the clock, the memory, the lines and the calls are counted
 * here, and whatever goes beyond its limit ends the guest.
 */
import { parseJson } from '../domain/json/json.js'
import { CofferError, toProblem } from '../errors.js'
import type { ClientCall, ConsoleLine } from '../framework/reactor-runtime.js'
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

/** Why the host ended an invocation. */
export type StopReason = 'time' | 'memory' | 'log' | 'calls' | 'call size' | 'closed' | ExitReason

/** Resident memory that a run may add beyond its heap: young objects, compiled code, buffers of the channel. */
const RESIDENT_SLACK_MIB = 64
/** What keeping a line costs besides its text. */
const LINE_BYTES = 64
/** After so many ms a run is one that others should not wait for. */
const LONG_MS = 250
/** How long a guest may take to come to rest after its answer. */
const REST_MS = 250

export type FinalMessage = Extract<GuestMessage, { kind: 'done' | 'failed' | 'report' }>

export interface RunServices {
  clock: PoolClock
  meter: MemoryMeter
  fetch: HostFetch
}

export interface RunOutcome {
  /** The guest's last word, or why the host ended it. */
  last: FinalMessage | StopReason
  console: ConsoleLine[]
  durationMs: number
  memoryMiB: number
}

type Call = Extract<GuestMessage, { kind: 'call' }>

export class GuestRun {
  /** Resolves with the answer, before the guest has come to rest. */
  readonly answered: Promise<RunOutcome>
  /** Whether the guest came to rest and may be given more work. */
  readonly rested: Promise<boolean>
  readonly #guest: Guest
  readonly #limits: ReactorLimits
  readonly #client: ClientCall | null
  readonly #services: RunServices
  readonly #startedMs: number
  readonly #idleMiB: number
  readonly #console: ConsoleLine[] = []
  readonly #abort = new AbortController()
  readonly #waiting: Call[] = []
  #running = 0
  #calls = 0
  #callBytes = 0
  #logBytes = 0
  #peakMiB: number
  #isAnswered = false
  #cancel: (() => void)[] = []
  #answer: (outcome: RunOutcome) => void = () => undefined
  #rest: (isFit: boolean) => void = () => undefined

  constructor(
    guest: Guest,
    work: HostMessage,
    client: ClientCall | null,
    limits: ReactorLimits,
    services: RunServices,
  ) {
    this.#guest = guest
    this.#limits = limits
    this.#client = client
    this.#services = services
    this.#startedMs = services.clock.now()
    this.#idleMiB = this.#readMiB() ?? 0
    this.#peakMiB = this.#idleMiB
    this.answered = new Promise((resolve) => {
      this.#answer = resolve
    })
    this.rested = new Promise((resolve) => {
      this.#rest = resolve
    })
    guest.listener = {
      message: (message) => this.#take(message),
      end: (ending) => this.#lose(ending),
    }
    this.#cancel = [services.clock.after(limits.timeMs, () => this.stop('time'))]
    this.#watchMemory()
    void guest.send(work)
  }

  /** Whether it has run for longer than others should wait for it. */
  get isLong(): boolean {
    return this.#services.clock.now() - this.#startedMs >= LONG_MS
  }

  /** Ends the guest, and the invocation with it. */
  stop(reason: StopReason): void {
    this.#settle(reason)
    this.#guest.kill()
    this.#rest(false)
  }

  #lose(ending: ExitReason): void {
    this.#settle(ending)
    this.#rest(false)
  }

  #settle(last: RunOutcome['last']): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    for (const cancel of this.#cancel) cancel()
    // Aborting makes an error object, which few need.
    if (this.#calls > 0) this.#abort.abort()
    this.#waiting.length = 0
    this.#peakMiB = Math.max(this.#peakMiB, this.#readMiB() ?? 0)
    this.#answer({
      last,
      console: this.#console,
      durationMs: this.#services.clock.now() - this.#startedMs,
      memoryMiB: Math.max(0, this.#peakMiB - this.#idleMiB),
    })
  }

  #take(message: GuestMessage): void {
    if (message.kind === 'idle') this.#rest(this.#isAnswered)
    else if (this.#isAnswered) return
    else if (message.kind === 'log') this.#takeLine(message)
    else if (message.kind === 'call') this.#takeCall(message)
    else if (message.kind !== 'ready') this.#takeAnswer(message)
  }

  #takeAnswer(last: FinalMessage): void {
    this.#settle(last)
    const cancel = this.#services.clock.after(REST_MS, () => this.stop('ended'))
    void this.rested.finally(cancel)
  }

  #takeLine({ level, text }: Extract<GuestMessage, { kind: 'log' }>): void {
    this.#logBytes += Buffer.byteLength(text) + LINE_BYTES
    if (this.#logBytes > this.#limits.logBytes) this.stop('log')
    else this.#console.push({ level: level as ConsoleLine['level'], text })
  }

  #takeCall(call: Call): void {
    this.#calls += 1
    this.#callBytes += Buffer.byteLength(call.args)
    if (this.#calls > this.#limits.calls) this.stop('calls')
    else if (this.#callBytes > this.#limits.callBytes) this.stop('call size')
    else {
      this.#waiting.push(call)
      this.#startCalls()
    }
  }

  #startCalls(): void {
    while (this.#running < CALLS_AT_ONCE && this.#waiting.length > 0) {
      this.#running += 1
      void this.#answerCall(this.#waiting.shift()!)
    }
  }

  async #answerCall(call: Call): Promise<void> {
    const answer = await this.#perform(call)
    if (this.#isAnswered) return
    // Code that does not read its answers would gather them in the host, beyond every limit of its own.
    await this.#guest.send(answer)
    this.#running -= 1
    this.#startCalls()
  }

  /** Never rejects: what fails is for the code to catch. */
  async #perform({ call, name, args }: Call): Promise<HostMessage> {
    try {
      const list = parseJson(args, { source: `an argument of ${name}` }) as unknown[]
      return { kind: 'reply', call, value: await this.#dispatch(name, list) }
    } catch (error) {
      const problem = toProblem(error, '')
      if (name === FETCH_CALL) return { kind: 'refusal', call, message: `fetch failed: ${problem.detail}` }
      return { kind: 'refusal', call, message: problem.detail, status: problem.status, data: problem }
    }
  }

  #dispatch(name: string, args: readonly unknown[]): Promise<unknown> {
    if (name === FETCH_CALL) return this.#services.fetch(args[0] as FetchRequest, this.#abort.signal)
    if (this.#client !== null && (CLIENT_CALLS as readonly string[]).includes(name))
      return this.#client(name, args)
    throw new CofferError('not_found', 'There is no such call.')
  }

  #watchMemory(): void {
    const { clock, meter } = this.#services
    const look = () => {
      this.#peakMiB = Math.max(this.#peakMiB, this.#readMiB() ?? 0)
      if (this.#peakMiB - this.#idleMiB > this.#limits.memoryMiB + RESIDENT_SLACK_MIB) this.stop('memory')
      else this.#cancel[1] = clock.after(meter.intervalMs, look)
    }
    this.#cancel[1] = clock.after(meter.intervalMs, look)
  }

  #readMiB(): number | undefined {
    return this.#guest.pid === undefined ? undefined : this.#services.meter.read(this.#guest.pid)
  }
}
