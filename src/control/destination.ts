/** Wraps the sending of requests to other servers: notes where they go, and lets them fail as faults say. */
import { STATUS_CODES } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { type DestinationFault, readDestinationFault } from '../domain/proxy/destination-fault.js'
import { CofferError, ERRORS, type ErrorCode } from '../errors.js'
import type { FaultRule, RequestRecord } from '../framework/ports/control.js'
import {
  answerWhole,
  type Destination,
  lateError,
  leftError,
  type OnLeave,
  type Outbound,
  WAIT_MS,
} from '../framework/ports/outbound.js'
import type { HttpResponse } from '../http/exchange.js'

export type Pause = (ms: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown>

/** `fault` as rules spell it. */
export function watchDestination(
  fault: unknown,
  seen: Pick<RequestRecord, 'destination' | 'destination_status'>,
  pause: Pause = setTimeout,
): (outbound: Outbound) => Outbound {
  const failing = readDestinationFault(fault)
  return (outbound) => ({
    reach: (url) => {
      seen.destination = url.href
      const destination = outbound.reach(url)
      return {
        send: async (request, sending) => {
          const answer = await (failing === undefined
            ? destination.send(request, sending)
            : fail(failing, sending, () => destination.send(request, sending), pause))
          seen.destination_status = answer.status
          return answer
        },
      }
    },
  })
}

/** As if the request had been sent, except for a delay after which it is. */
async function fail(
  fault: DestinationFault,
  { sent, left }: Parameters<Destination['send']>[1],
  send: () => ReturnType<Destination['send']>,
  pause: Pause,
): ReturnType<Destination['send']> {
  const isLate = fault.kind === 'timeout' || (fault.kind === 'delay' && fault.ms >= WAIT_MS)
  if (isLate || fault.kind === 'status') sent()
  if (fault.kind === 'delay') await wait(pause, Math.min(fault.ms, WAIT_MS), left)
  if (isLate) throw lateError(WAIT_MS)
  return fault.kind === 'status' ? answerWhole(fault.status, {}, new Uint8Array()) : send()
}

/** @throws CofferError `interrupted` as soon as nobody waits for the answer any more */
async function wait(pause: Pause, ms: number, left: OnLeave | undefined): Promise<void> {
  const gone = new AbortController()
  left?.(() => gone.abort())
  await pause(ms, undefined, { signal: gone.signal }).catch(() => {
    throw leftError()
  })
}

/** Our error with this status, if there is one that says no more than its status. */
function codeOfStatus(status: number): ErrorCode | undefined {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  return codes.find((code) => ERRORS[code].status === status && code !== 'usage' && code !== 'check_failed')
}

export function problemOf({ status = 500, detail }: Pick<FaultRule, 'status' | 'detail'>): CofferError {
  const code = codeOfStatus(status) ?? 'internal'
  return new CofferError(code, detail ?? 'This fault was asked for with the control plane.', { status })
}

/** Gives the problem the title of a status that none of our errors has (RFC 7807, 4.2). */
export function titleByStatus(answer: HttpResponse): void {
  if (codeOfStatus(answer.status) !== undefined) return
  const title = STATUS_CODES[answer.status] ?? 'Unknown Status'
  answer.body = JSON.stringify({ ...JSON.parse(answer.body), type: 'about:blank', title })
}

export async function* cutStream(stream: AsyncIterable<Uint8Array>, bytes: number) {
  let left = bytes
  for await (const chunk of stream) {
    yield chunk.subarray(0, left)
    left -= chunk.length
    if (left <= 0) throw new Error('The answer is cut, as the control plane was asked to do.')
  }
}

export async function closeStream({ stream }: HttpResponse): Promise<void> {
  await stream?.[Symbol.asyncIterator]().return?.()
}
