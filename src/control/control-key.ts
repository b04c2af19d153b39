import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { CofferError } from '../errors.js'
import type { HttpRequest } from '../http/exchange.js'
import { headerNames, readHeader } from '../http/headers.js'
import { createRateLimit, type Rate } from '../http/rate-limit.js'
import type { App } from '../vault/app.js'
import { isLocal } from './dashboard.js'

/** After this number of wrong keys in the period, all requests from the address are refused. */
export const WRONG_KEYS: Rate = { count: 10, periodMs: 60_000 }

export interface ControlKeyOptions {
  app: Pick<App, 'isEqualSecret'>
  prefix: string
  key: string
  /** Whether other machines may use the key. Other machines must send the key in the header for control keys. */
  isForOthers: boolean
  /** ms of a monotonic clock. */
  clock?(): number
}

/**
 * Returns a function that throws unless the request contains the key.
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
      'This is not the control key of this server. `coffer serve` prints the key, unless you chose it.',
    )
  }
}

/** Returns one sender for all IPv6 addresses of a /64 network, because one machine can have all these addresses. */
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
