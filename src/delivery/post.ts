import { CofferError } from '../errors.js'
import type { Outbound } from '../framework/ports/outbound.js'
import { MAX_ANSWER_CHARACTERS } from '../operations/webhook/signed-request.js'

const ANSWER_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024

export interface Post {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

/** `answer`: the beginning of the response body. `failure` is absent if the response has a 2xx status. */
export interface Attempt {
  status?: number
  answer?: string
  failure?: string
  /** True if this server is not allowed to call the address. Then nothing was sent. */
  isRefused?: boolean
}

/** If `stopping` is aborted, the attempt ends without a status. */
export async function post(
  outbound: Outbound,
  { url, headers, body }: Post,
  stopping: AbortSignal,
): Promise<Attempt> {
  const { pathname, search } = new URL(url)
  const late = AbortSignal.timeout(ANSWER_MS)
  const ended = AbortSignal.any([late, stopping])
  const left = (listener: () => void) => ended.addEventListener('abort', listener)
  const request = {
    method: 'POST',
    target: `${pathname}${search}`,
    headers,
    body: Buffer.from(body),
  }
  try {
    const destination = outbound.reach(new URL(url))
    const { status, collect } = await destination.send(request, { sent: () => undefined, left })
    const read = collect(MAX_ANSWER_BYTES).catch(() => undefined)
    const bytes = await Promise.race([
      read,
      new Promise<undefined>((resolve) => left(() => resolve(undefined))),
    ])
    const answer = Buffer.from(bytes ?? [])
      .toString()
      .slice(0, MAX_ANSWER_CHARACTERS)
    return { status, answer, ...(status > 299 && { failure: `The answer has the status ${status}.` }) }
  } catch (error) {
    if (late.aborted) return { failure: `There was no answer within ${ANSWER_MS / 1000} s.` }
    if (!(error instanceof CofferError)) throw error
    return { failure: error.message, ...(error.code === 'forbidden' && { isRefused: true }) }
  }
}
