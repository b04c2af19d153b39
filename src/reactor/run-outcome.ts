/** What a guest or the host's own watching said of an invocation, as the outcome that operations know. Pure. */
import { parseJson } from '../domain/json/json.js'
import { CofferError } from '../errors.js'
import type { ReactorOutcome, ReactorRun } from '../framework/reactor-runtime.js'
import type { RunOutcome, StopReason } from './guest-run.js'
import type { ReactorLimits } from './limits.js'
import type { GuestFailure } from './messages.js'

/** All that is known of a outcome invocation, in the words of operations. */
export function describeRun(
  { last, console, durationMs, memoryMiB }: RunOutcome,
  limits: ReactorLimits,
): ReactorRun {
  const run = { console, durationMs, memoryMiB }
  if (typeof last === 'string')
    return { ...run, outcome: { kind: 'failure', error: toStopError(last, limits) } }
  if (last.kind === 'done') return { ...run, outcome: toResult(last) }
  if (last.kind === 'report') return { ...run, outcome: toResult({}) }
  const { failure } = last
  const stack = failure.kind === 'thrown' ? failure.stack : undefined
  return {
    ...run,
    outcome: { kind: 'failure', error: toError(failure) },
    ...(stack === undefined ? {} : { stack }),
  }
}

/** @throws nothing: a value that no JSON of ours may hold is a failure of the code that made it. */
function toResult({ raw, tokenize }: { raw?: string; tokenize?: string }): ReactorOutcome {
  try {
    return {
      kind: 'result',
      ...(raw === undefined ? {} : { raw: parseJson(raw, { source: 'raw' }) }),
      ...(tokenize === undefined ? {} : { tokenize: parseJson(tokenize, { source: 'tokenize' }) }),
    }
  } catch (error) {
    return { kind: 'failure', error: failed((error as Error).message) }
  }
}

/** The error that the caller of the reactor gets for `failure`. */
export function toError(failure: GuestFailure): CofferError {
  if (failure.kind === 'invalid') {
    const { message, line, column } = failure
    const text = `line ${line}, column ${column}: ${message}`
    return new CofferError('formula_invalid', `The formula's code is not valid at ${text}.`, {
      errors: { code: [text] },
    })
  }
  const { message, status, errors } = failure
  if (status === undefined) return failed(message)
  return new CofferError('reactor_failed', message, { status, ...(errors === undefined ? {} : { errors }) })
}

export function toStopError(reason: StopReason, limits: ReactorLimits): CofferError {
  if (reason === 'time')
    return new CofferError(
      'reactor_timeout',
      `The reactor ran longer than ${limits.timeMs} ms and was stopped.`,
    )
  if (reason === 'closed') return new CofferError('unavailable', 'The server is stopping; try again later.')
  return failed(STOP_MESSAGES[reason](limits))
}

const STOP_MESSAGES: Record<Exclude<StopReason, 'time' | 'closed'>, (limits: ReactorLimits) => string> = {
  memory: outOfMemory,
  'out of memory': outOfMemory,
  log: ({ logBytes }) => `The code wrote more than ${logBytes} bytes to the console and was stopped.`,
  calls: ({ calls }) => `The code made more than ${calls} calls and was stopped.`,
  'call size': ({ callBytes }) => `The code sent more than ${callBytes} bytes in its calls and was stopped.`,
  garbled: () => 'The process of the code said what none should say, and was stopped.',
  ended: () => 'The process of the code ended before the code did.',
}

function outOfMemory({ memoryMiB }: ReactorLimits): string {
  return `The code used more than ${memoryMiB} MiB of memory and was stopped.`
}

function failed(message: string): CofferError {
  return new CofferError('reactor_failed', "The reactor's code failed.", { errors: { error: [message] } })
}
