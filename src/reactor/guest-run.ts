/** A run of a guest under limits: the host measures time, memory, console lines and calls, and kills the guest. */
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
import type { StartWatch } from './watchdog.js'

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

export type GuestRun = ReturnType<typeof createGuestRun>

export function createGuestRun(
  guest: Guest,
  work: { message: HostMessage; body: Uint8Array | undefined },
  client: ClientCall | null,
  limits: ReactorLimits,
  services: RunServices,
) {
  const startedMs = services.clock.now()
  const idleMiB = readMiB() ?? 0
  const mostMiB = idleMiB + limits.memoryMiB + RESIDENT_SLACK_MIB
  const watch = services.watch(guest, { timeMs: limits.timeMs, mostMiB })
  const console: ConsoleLine[] = []
  const abort = new AbortController()
  const queuedCalls: Call[] = []
  let activeCalls = 0
  let calls = 0
  let callBytes = 0
  let logBytes = 0
  let isAnswered = false
  let answer: (outcome: RunOutcome) => void = () => undefined
  let settleIdle: (isFit: boolean) => void = () => undefined
  /** Resolves with the outcome, before the guest is idle. */
  const answered = new Promise<RunOutcome>((resolve) => {
    answer = resolve
  })
  /** Resolves to true if the guest is idle and can run more work, to false if it has ended. */
  const idle = new Promise<boolean>((resolve) => {
    settleIdle = resolve
  })
  guest.listener = {
    message: receive,
    end: (ending) => {
      settle(ending)
      settleIdle(false)
    },
  }
  void guest.send(work.message, work.body)

  const isLong = () => services.clock.now() - startedMs >= LONG_MS
  return { answered, idle, isLong, stop }

  function stop(reason: StopReason): void {
    settle(reason)
    guest.kill()
    settleIdle(false)
  }

  function settle(last: RunOutcome['last']): void {
    if (isAnswered) return
    isAnswered = true
    const { killed, peakMiB } = watch.end()
    // Aborting creates an error object, which is rarely needed.
    if (calls > 0) abort.abort()
    queuedCalls.length = 0
    answer({
      last: typeof last === 'string' ? (killed ?? last) : last,
      console,
      durationMs: services.clock.now() - startedMs,
      memoryMiB: Math.max(0, peakMiB - idleMiB, (readMiB() ?? 0) - idleMiB),
    })
  }

  function receive(message: GuestMessage): void {
    if (message.kind === 'idle') settleIdle(isAnswered)
    else if (isAnswered) return
    else if (message.kind === 'log') receiveLine(message)
    else if (message.kind === 'call') receiveCall(message)
    else if (message.kind !== 'ready') receiveAnswer(message)
  }

  function receiveAnswer(last: FinalMessage): void {
    settle(last)
    const cancel = services.clock.after(IDLE_MS, () => stop('ended'))
    void idle.finally(cancel)
  }

  function receiveLine({ level, text }: Extract<GuestMessage, { kind: 'log' }>): void {
    logBytes += Buffer.byteLength(text) + LINE_BYTES
    if (logBytes > limits.logBytes) stop('log')
    else console.push({ level: level as ConsoleLine['level'], text })
  }

  function receiveCall(call: Call): void {
    calls += 1
    callBytes += Buffer.byteLength(call.args)
    if (calls > limits.calls) stop('calls')
    else if (callBytes > limits.callBytes) stop('call size')
    else {
      queuedCalls.push(call)
      startCalls()
    }
  }

  function startCalls(): void {
    while (activeCalls < CALLS_AT_ONCE && queuedCalls.length > 0) {
      activeCalls += 1
      void answerCall(queuedCalls.shift()!)
    }
  }

  async function answerCall(call: Call): Promise<void> {
    const answer = await perform(call)
    if (isAnswered) return
    // Wait until it is written: answers that the code does not read would accumulate in the host.
    await guest.send(answer)
    activeCalls -= 1
    startCalls()
  }

  /** Never rejects; the code receives the error. */
  async function perform({ call, name, args }: Call): Promise<HostMessage> {
    try {
      const list = parseJson(args, { source: `an argument of ${name}` }) as unknown[]
      return { kind: 'reply', call, value: await dispatch(name, list) }
    } catch (error) {
      const problem = toProblem(error, client?.traceId ?? '')
      if (name === FETCH_CALL) return { kind: 'refusal', call, message: `fetch failed: ${problem.detail}` }
      return { kind: 'refusal', call, message: problem.detail, status: problem.status, data: problem }
    }
  }

  function dispatch(name: string, args: readonly unknown[]): Promise<unknown> {
    if (name === FETCH_CALL) return services.fetch(args[0] as FetchRequest, abort.signal)
    if (client !== null && CLIENT_CALLS.includes(name)) return client(name, args)
    throw new CofferError('not_found', 'There is no such call.')
  }

  function readMiB(): number | undefined {
    return guest.pid === undefined ? undefined : services.meter(guest.pid)
  }
}
