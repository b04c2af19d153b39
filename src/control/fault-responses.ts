/** Responses that fail on purpose. */
import { STATUS_CODES } from 'node:http'
import { CofferError, ERRORS, type ErrorCode } from '../errors.js'
import type { FaultRule } from '../framework/ports/control.js'
import type { HttpResponse } from '../http/exchange.js'

const FAULT_DETAIL = 'This fault was asked for with the control plane.'

/** Errors that only commands have, or that say more than their status. */
const NOT_OF_STATUS: readonly string[] = ['usage', 'check_failed']

/** Our error with this status, if there is one. */
function codeOfStatus(status: number): ErrorCode | undefined {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  return codes.find((code) => ERRORS[code].status === status && !NOT_OF_STATUS.includes(code))
}

export function problemOf({
  status = 500,
  detail = FAULT_DETAIL,
}: Pick<FaultRule, 'status' | 'detail'>): CofferError {
  return new CofferError(codeOfStatus(status) ?? 'internal', detail, { status })
}

/** Gives the problem the title of a status that none of our errors has (RFC 7807, 4.2). */
export function titleByStatus(answer: HttpResponse): void {
  if (codeOfStatus(answer.status) !== undefined) return
  const title = STATUS_CODES[answer.status] ?? 'Unknown Status'
  answer.body = JSON.stringify({ ...JSON.parse(answer.body), type: 'about:blank', title })
}

export async function* cutStream(
  stream: AsyncIterable<Uint8Array>,
  bytes: number,
): AsyncGenerator<Uint8Array> {
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
