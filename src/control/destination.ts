/** Wraps the sending of requests to other servers: notes where they go, and lets them fail as faults say. */
import { setTimeout } from 'node:timers/promises'
import { type DestinationFault, readDestinationFault } from '../domain/proxy/destination-fault.js'
import type { RequestRecord } from '../framework/ports/control.js'
import {
  answerWhole,
  type Destination,
  lateError,
  leftError,
  type OnLeave,
  type Outbound,
  WAIT_MS,
} from '../framework/ports/outbound.js'

/** Resolves after `ms`, or rejects as soon as the signal is aborted. */
export type Pause = (ms: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown>

/** `fault` as rules spell it. */
export function watchDestination(
  fault: unknown,
  seen: Pick<RequestRecord, 'destination' | 'destination_status'>,
  pause: Pause = setTimeout,
): (outbound: Outbound) => Outbound {
  const failing = readDestinationFault(fault)
  return ({ reach }) => ({
    reach: (url) => {
      seen.destination = url.href
      const destination = reach(url)
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
