/**
 * A run of a guest. The host limits the time, memory, console output and calls of the run, kills the guest if the run
 * exceeds a limit, and validates the answer.
 */
import { parseJson } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { readCodeAnswer } from '../domain/proxy/code-answer.js'
import { type CodeFault, invalidCode } from '../domain/reactor/code-fault.js'
import { withoutRunKeys, withoutRunKeysIn } from '../domain/reactor/run-key.js'
import { CofferError, codeFailed, type FailureStatus, toProblem } from '../errors.js'
import { NO_SERVER } from '../framework/ports/own-server.js'
import type {
  ClientCall,
  ConsoleLine,
  ReactorOutcome,
  ReactorRun,
  RunAccess,
} from '../framework/ports/reactors.js'
import type { ExitReason, Guest } from './child.js'
import type { HostFetch } from './fetch.js'
import {
  CLIENT_CALLS,
  type Done,
  FETCH_CALL,
  type FetchRequest,
  type GuestFailure,
  type GuestMessage,
  type HostMessage,
  type Invalid,
} from './messages.js'
import type { PoolClock, ReactorLimits } from './settings.js'
import type { MemoryMeter, StartWatch } from './watchdog.js'

export type StopReason = 'time' | 'memory' | 'log' | 'calls' | 'call size' | 'closed' | ExitReason

/** Resident memory beyond the heap limit, for new space, compiled code, and buffers of the pipe. */
const RESIDENT_SLACK_MIB = 64
const LINE_BYTES = 64
/** A run that takes longer yields to the runs of other callers. */
const LONG_MS = 250
/** A guest must be idle within this time after its answer. */
const IDLE_MS = 250
/**
 * The host performs at most this many calls of a run at a time. An answer has at most 4 MiB, so the answers of a run
 * take at most 16 MiB.
 */
const CALLS_AT_ONCE = 4

export interface RunServices {
  clock: PoolClock
  meter: MemoryMeter
  watch: StartWatch
  fetch: HostFetch
}

export type RunOutcome = Omit<ReactorRun, 'outcome' | 'stack'> & { last: Done | StopReason }

type Call = Extract<GuestMessage, { kind: 'call' }>

export interface Work {
  message: HostMessage
  body?: Uint8Array | undefined
  maxBodyBytes: number
  client: ClientCall | null
  access?: RunAccess | undefined
  limits: ReactorLimits
}

export class GuestRun {
  readonly answered: Promise<RunOutcome>
  /** Resolves to true when the guest is idle and can run more work, or to false if the guest has ended. */
  readonly idle: Promise<boolean>
  /** Resident memory after the guest has loaded the code. Before that, the resident memory at the start of the run. */
  loadedMiB: number
  readonly #guest: Guest
  readonly #work: Work
  readonly #services: RunServices
  readonly #startedMs: number
  /** Resident memory at the start of the run. */
  readonly idleMiB: number
  readonly #endWatch: ReturnType<StartWatch>
  readonly #console: ConsoleLine[] = []
  readonly #endListeners: (() => void)[] = []
  readonly #queuedCalls: Call[] = []
  #activeCalls = 0
  #calls = 0
  #callBytes = 0
  #logBytes = 0
  #isAnswered = false
  #answer: (outcome: RunOutcome) => void = () => undefined
  #settleIdle: (isFit: boolean) => void = () => undefined

  constructor(guest: Guest, work: Work, services: RunServices) {
    const { message, body, maxBodyBytes, limits } = work
    this.#guest = guest
    this.#work = work
    this.#services = services
    this.#startedMs = services.clock.now()
    this.idleMiB = services.meter(guest.pid) ?? 0
    this.loadedMiB = this.idleMiB
    this.answered = new Promise((resolve) => {
      this.#answer = resolve
    })
    this.idle = new Promise((resolve) => {
      this.#settleIdle = resolve
    })
    this.#endWatch = this.#watch(limits.timeMs)
    // A message contains the result as JSON inside JSON, so a message may be longer than `resultBytes`. Most texts keep
    // about their size, but a control character takes seven bytes instead of one.
    const maxBytes = 2 * Math.max(limits.resultBytes, 1024 * 1024) + 64 * 1024
    guest.messageLimits = { maxBytes, maxBodyBytes }
    guest.listener = {
      message: (message) => this.#receive(message),
      end: (ending) => this.stop(ending),
    }
    void guest.send(withOptions(message, work.access), body)
  }

  #watch(timeMs: number): ReturnType<StartWatch> {
    const maxMiB = this.idleMiB + this.#work.limits.memoryMiB + RESIDENT_SLACK_MIB
    return this.#services.watch(this.#guest, { timeMs, maxMiB })
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
    this.#work.access?.end()
    const { killed, peakMiB } = this.#endWatch()
    for (const listener of this.#endListeners) listener()
    this.#queuedCalls.length = 0
    const { clock, meter } = this.#services
    const endMiB = Math.max(peakMiB, meter(this.#guest.pid) ?? 0, this.idleMiB)
    this.#answer({
      last: typeof last === 'string' ? (killed ?? last) : last,
      console: this.#console,
      durationMs: clock.now() - this.#startedMs,
      memoryMiB: endMiB - this.idleMiB,
    })
  }

  #receive(message: GuestMessage): void {
    if (message.kind === 'idle') this.#settleIdle(this.#isAnswered)
    else if (this.#isAnswered) return
    else if (message.kind === 'loaded') this.loadedMiB = this.#services.meter(this.#guest.pid) ?? 0
    else if (message.kind === 'call') this.#receiveCall(message)
    else if (message.kind === 'log') {
      const { level, text } = message
      this.#logBytes += Buffer.byteLength(text) + LINE_BYTES
      if (this.#logBytes > this.#work.limits.logBytes) this.stop('log')
      else this.#console.push({ level: level as ConsoleLine['level'], text })
    } else if (message.kind === 'done') {
      this.#settle(message)
      // If the code started work and did not await this work, the guest becomes idle only after the work. Therefore the
      // host also limits the time from the answer until the guest is idle.
      void this.idle.finally(this.#watch(IDLE_MS))
    }
  }

  #receiveCall(call: Call): void {
    this.#calls += 1
    this.#callBytes += Buffer.byteLength(call.args)
    if (this.#calls > this.#work.limits.calls) this.stop('calls')
    else if (this.#callBytes > this.#work.limits.callBytes) this.stop('call size')
    else {
      this.#queuedCalls.push(call)
      if (this.#activeCalls < CALLS_AT_ONCE) void this.#answerCalls()
    }
  }

  async #answerCalls(): Promise<void> {
    this.#activeCalls += 1
    for (let call = this.#queuedCalls.shift(); call !== undefined; call = this.#queuedCalls.shift()) {
      const answer = await this.#perform(call)
      if (this.#isAnswered) return
      // Waits until the answer is written. Otherwise the answers to a guest that does not read would accumulate in the
      // host.
      await this.#guest.send(answer)
    }
    this.#activeCalls -= 1
  }

  /** Never rejects, because the code receives the error. */
  async #perform({ call, name, args }: Call): Promise<HostMessage> {
    try {
      const list = parseJson(args, { source: `an argument of ${name}` }) as unknown[]
      return { kind: 'reply', call, value: await this.#dispatch(name, list) }
    } catch (reason) {
      const data = toProblem(reason, this.#work.client?.traceId ?? '')
      const { detail: message, status } = data
      const error = name === FETCH_CALL ? { message: `fetch failed: ${message}` } : { message, status, data }
      return { kind: 'reply', call, error }
    }
  }

  #dispatch(name: string, args: readonly unknown[]): Promise<unknown> {
    const whenOver = (listener: () => void) =>
      void (this.#isAnswered ? listener() : this.#endListeners.push(listener))
    const { client, access } = this.#work
    if (name === FETCH_CALL) return this.#services.fetch(args[0] as FetchRequest, whenOver, access)
    if (client !== null && CLIENT_CALLS.includes(name)) return client(name, args)
    throw new CofferError('not_found', 'There is no call with this name.')
  }
}

/** Only the message to the guest contains the key of the run. */
function withOptions(message: HostMessage, access: RunAccess | undefined): HostMessage {
  if (message.kind !== 'run') return message
  const applicationOptions = access?.begin() ?? { baseUrl: NO_SERVER, environment: NO_SERVER }
  return { ...message, applicationOptions }
}

interface Describing {
  limits: ReactorLimits
  prefix: string
  failureStatus: FailureStatus | undefined
}

export function describeRun(
  { last, console: lines, ...measured }: RunOutcome,
  { limits, prefix, failureStatus }: Describing,
): ReactorRun {
  const run = {
    ...measured,
    console: lines.map(({ level, text }) => ({ level, text: withoutRunKeys(text) })),
  }
  const failure = typeof last === 'string' ? undefined : withoutRunKeysIn(last.failure)
  if (typeof last !== 'string' && failure === undefined)
    return { ...run, outcome: toResult(last, prefix, failureStatus) }
  const error =
    failure === undefined
      ? toStopError(last as StopReason, limits, failureStatus)
      : toError(failure, failureStatus)
  const stack = failure?.kind === 'thrown' ? failure.stack : undefined
  const faults = failure?.kind === 'invalid' ? faultsOf(failure) : undefined
  return { ...run, outcome: { kind: 'failure', error }, ...omitUndefined({ stack, faults }) }
}

/** Never throws: an invalid result is a failure of the code. */
function toResult(
  { raw, tokenize, res, isThrown, body }: Done,
  prefix: string,
  failureStatus: FailureStatus | undefined,
): ReactorOutcome {
  const read = (source: string, text: string | undefined) =>
    text === undefined ? undefined : parseJson(text, { source })
  try {
    if (res !== undefined && (raw ?? tokenize) !== undefined)
      throw new Error('The code returned res together with raw or tokenize.')
    const answer = res === undefined ? undefined : readCodeAnswer(read('res', res), prefix)
    const values = {
      raw: read('raw', raw),
      tokenize: read('tokenize', tokenize),
      res: answer,
      isThrown,
      body,
    }
    return { kind: 'result', ...omitUndefined(values) }
  } catch (error) {
    return { kind: 'failure', error: codeFailed((error as Error).message, failureStatus) }
  }
}

export function toError(failure: GuestFailure, failureStatus?: FailureStatus): CofferError {
  if (failure.kind === 'invalid') return invalidCode(faultsOf(failure))
  const { message, status, errors } = failure
  if (status === undefined) return codeFailed(message, failureStatus)
  return new CofferError('reactor_failed', message, { status, ...omitUndefined({ errors }) })
}

export function faultsOf({ line, column, message, others = [] }: Invalid): CodeFault[] {
  return [{ line, column, message }, ...others]
}

export function toStopError(
  reason: StopReason,
  limits: ReactorLimits,
  failureStatus?: FailureStatus,
): CofferError {
  const { timeMs, memoryMiB, logBytes, calls, callBytes } = limits
  const outOfMemory = `The code used more than ${memoryMiB} MiB of memory and was stopped.`
  const messages: Record<StopReason, string> = {
    time: `The reactor ran longer than ${timeMs} ms and was stopped.`,
    closed: 'The server is stopping; try again later.',
    memory: outOfMemory,
    'out of memory': outOfMemory,
    log: `The code wrote more than ${logBytes} bytes to the console and was stopped.`,
    calls: `With fetch and its client, the code made more than ${calls} calls and was stopped.`,
    'call size': `The code sent more than ${callBytes} bytes in its calls and was stopped.`,
    garbled: 'The process of the code sent an invalid message and was stopped.',
    ended: 'The process of the code ended before the run was finished.',
  }
  const code = reason === 'time' ? 'reactor_timeout' : 'unavailable'
  if (reason === 'time' || reason === 'closed') return new CofferError(code, messages[reason])
  return codeFailed(messages[reason], failureStatus)
}
