/** Sends events to an address that the user chose. */
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { CofferError, codeOf, usage } from '../errors.js'
import { HttpSender } from './http-sender.js'
import type { ListenedAnswer, ListenedEvent } from './listen.js'
import { findLoopback, isLoopbackHost, trustOnly } from './socket-fetch.js'

/** The time limit for an answer, ms. The hosted service and the server of a vault also wait at most 10 s. */
const ANSWER_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024
const MAX_ANSWER_CHARACTERS = 2000

/**
 * `address`: http or https, without user and fragment. `ca`: see `SocketOptions`. Follows no redirects.
 * @throws CofferError `usage`
 */
export function createForwarder(
  address: string,
  { ca, signal }: { ca?: string | undefined; signal: AbortSignal },
) {
  const url = readAddress(address)
  const sender = new HttpSender(() => (ca === undefined ? {} : trustOnly(ca)))
  const lookup = isLoopbackHost(url.hostname) ? findLoopback : undefined
  const target = url.pathname + url.search
  return {
    /** The shown URL has no query, because a query may contain a secret. */
    url: url.origin + url.pathname,
    send: async ({ headers, body }: ListenedEvent): Promise<ListenedAnswer> => {
      const late = AbortSignal.timeout(ANSWER_MS)
      const began = performance.now()
      const passed = () => Math.round(performance.now() - began)
      try {
        const request = { method: 'POST', target, headers, body, signal: AbortSignal.any([late, signal]) }
        const response = await sender.send(url, { ...request, lookup })
        const bytes = await collectBytes(response, MAX_ANSWER_BYTES)
        response.destroy()
        const answer = Buffer.from(bytes ?? [])
          .toString()
          .slice(0, MAX_ANSWER_CHARACTERS)
        return { status: response.statusCode ?? 0, answer, ms: passed() }
      } catch (error) {
        return { failure: describe(error, url, late), ms: passed() }
      }
    },
    close: () => sender.close(),
  }
}

/** Also accepts a host and path without a scheme (`localhost:3000/events`), and a port alone (`3000`). */
function readAddress(given: string): URL {
  const text = /^\d{1,5}$/.test(given) ? `localhost:${given}` : given
  const full = /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`
  const url = URL.canParse(full) ? new URL(full) : undefined
  const isPlain = url !== undefined && url.username + url.password + url.hash === ''
  if (isPlain && /^https?:$/.test(url.protocol)) return url
  throw usage(
    'Events are forwarded to an http or https address without user and fragment, such as http://localhost:3000/events.',
  )
}

/** Leaves out the message of an error that is not a CofferError, because that message may quote the answer. */
function describe(error: unknown, { host }: URL, late: AbortSignal): string {
  if (late.aborted) return `There was no answer within ${ANSWER_MS / 1000} s.`
  if (error instanceof CofferError) return error.message
  const first = error instanceof AggregateError ? error.errors[0] : error
  const code = codeOf(first)
  return `${host} cannot be reached${code === '' ? '' : ` (${code})`}.`
}
