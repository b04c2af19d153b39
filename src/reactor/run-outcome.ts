/** Converts the outcome of a guest's run to the result and errors that operations use. */

import { parseJson } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { readCodeAnswer } from '../domain/proxy/code-answer.js'
import { CofferError } from '../errors.js'
import type { ReactorOutcome, ReactorRun } from '../framework/ports/reactors.js'
import type { RunOutcome, StopReason } from './guest-run.js'
import type { ReactorLimits } from './limits.js'
import type { GuestFailure, GuestMessage } from './messages.js'

export function describeRun(
  { last, console, durationMs, memoryMiB }: RunOutcome,
  limits: ReactorLimits,
  prefix: string,
): ReactorRun {
  const run = { console, durationMs, memoryMiB }
  if (typeof last === 'string')
    return { ...run, outcome: { kind: 'failure', error: toStopError(last, limits) } }
  if (last.kind === 'done') return { ...run, outcome: toResult(last, prefix) }
  if (last.kind === 'report') return { ...run, outcome: { kind: 'result' } }
  const { failure } = last
  const stack = failure.kind === 'thrown' ? failure.stack : undefined
  return {
    ...run,
    outcome: { kind: 'failure', error: toError(failure) },
    ...(stack === undefined ? {} : { stack }),
  }
}

type Done = Extract<GuestMessage, { kind: 'done' }>

/** Never throws: a result that cannot be answered is a failure of the code that returned it. */
function toResult({ raw, tokenize, res, body }: Done, prefix: string): ReactorOutcome {
  if (res !== undefined && (raw !== undefined || tokenize !== undefined))
    return { kind: 'failure', error: failed('The code returned res beside raw or tokenize.') }
  const read = (source: string, text: string | undefined) =>
    text === undefined ? undefined : parseJson(text, { source })
  try {
    const answer = res === undefined ? undefined : readCodeAnswer(read('res', res), prefix)
    return {
      kind: 'result',
      ...omitUndefined({ raw: read('raw', raw), tokenize: read('tokenize', tokenize), res: answer, body }),
    }
  } catch (error) {
    return { kind: 'failure', error: failed((error as Error).message) }
  }
}

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
  if (reason === 'time') {
    const message = `The reactor ran longer than ${limits.timeMs} ms and was stopped.`
    return new CofferError('reactor_timeout', message)
  }
  if (reason === 'closed') return new CofferError('unavailable', 'The server is stopping; try again later.')
  return failed(STOP_MESSAGES[reason](limits))
}

const STOP_MESSAGES: Record<Exclude<StopReason, 'time' | 'closed'>, (limits: ReactorLimits) => string> = {
  memory: outOfMemory,
  'out of memory': outOfMemory,
  log: ({ logBytes }) => `The code wrote more than ${logBytes} bytes to the console and was stopped.`,
  calls: ({ calls }) => `The code made more than ${calls} calls and was stopped.`,
  'call size': ({ callBytes }) => `The code sent more than ${callBytes} bytes in its calls and was stopped.`,
  garbled: () => 'The process of the code sent an invalid message and was stopped.',
  ended: () => 'The process of the code ended before the run was finished.',
}

function outOfMemory({ memoryMiB }: ReactorLimits): string {
  return `The code used more than ${memoryMiB} MiB of memory and was stopped.`
}

function failed(message: string): CofferError {
  return new CofferError('reactor_failed', "The reactor's code failed.", { errors: { error: [message] } })
}
