/** Decides whether a request has the key of the control plane. */
import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { CofferError } from '../errors.js'
import type { HttpRequest } from '../http/exchange.js'
import { headerNames, readHeader } from '../http/headers.js'
import { createRateLimit, type Rate } from '../http/rate-limit.js'
import type { App } from '../vault/app.js'
import { isLocal } from './dashboard.js'

/**
 * The number of wrong keys that one address may send in the period. After this number of wrong keys, requests from the
 * address are refused for some time, and their keys are not compared.
 */
export const WRONG_KEYS: Rate = { count: 10, periodMs: 60_000 }

export interface ControlKeyOptions {
  app: Pick<App, 'isEqualSecret'>
  prefix: string
  key: string
  /**
   * Whether other machines may use the key. Other machines send the control key in a header that is used for nothing
   * but the control key.
   */
  isForOthers: boolean
  /** ms of a monotonic clock. */
  clock?(): number
}

/**
 * Returns a function that requires the key. If the key is for other machines, wrong keys are counted for each address.
 * @throws CofferError `unauthenticated`, `rate_limited`
 */
export function createKeyCheck({ app, prefix, key, isForOthers, clock }: ControlKeyOptions) {
  const names = headerNames(prefix)
  const expected = digest(key)
  const wrong = isForOthers ? createRateLimit(WRONG_KEYS, clock ?? (() => performance.now())) : undefined
  return (request: HttpRequest): void => {
    const own = readHeader(request.headers, names.controlKey)
    const given = own ?? (isLocal(request) ? readHeader(request.headers, names.apiKey) : undefined)
    if (given === undefined || given === '')
      throw new CofferError(
        'unauthenticated',
        `Send the control key in the header ${names.controlKey.toUpperCase()}.`,
      )
    const sender = readSender(request.client ?? '')
    const retryAfterSeconds = wrong?.wait(sender) ?? 0
    if (retryAfterSeconds > 0) {
      const message = `Too many wrong control keys came from this address. Try again in ${retryAfterSeconds} s.`
      throw new CofferError('rate_limited', message, { retryAfterSeconds })
    }
    // The digests have equal lengths, so the comparison does not reveal the length of the key.
    if (app.isEqualSecret(digest(given), expected)) return
    wrong?.take(sender)
    throw new CofferError(
      'unauthenticated',
      'This is not the control key of this server. coffer serve prints the key, unless you chose it.',
    )
  }
}

/**
 * All addresses of an IPv6 network (64 bits) count as one sender, because one machine can have all of them.
 */
function readSender(client: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(client)
  if (mapped !== null) return mapped[1]!
  const [address = ''] = client.split('%')
  if (!isIPv6(address)) return client
  const { hostname } = new URL(`http://[${address}]/`)
  const [start = '', end] = hostname.slice(1, -1).split('::')
  const groups = start.split(':').filter((group) => group !== '')
  if (end !== undefined) {
    const rest = end.split(':').filter((group) => group !== '')
    groups.push(...Array.from({ length: 8 - groups.length - rest.length }, () => '0'), ...rest)
  }
  return groups.slice(0, 4).join(':')
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
