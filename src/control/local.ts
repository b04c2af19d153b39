/** Whether a request is from this machine, and from no page of another origin. */
import type { HttpRequest } from '../http/exchange.js'
import { readHeader } from '../http/headers.js'

const LOOPBACK_CLIENT = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/
const PASSED_ON = /^(?:forwarded|via|x-real-ip|x-forwarded-.*)$/
const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i

/** Requests without a socket are of this process. */
export function isLoopback({ client }: HttpRequest): boolean {
  return client === undefined || LOOPBACK_CLIENT.test(client)
}

/** Whether it was not sent to another name of this machine, nor handed on by a proxy for somebody else. */
export function isDirect({ headers }: HttpRequest): boolean {
  const host = readHeader(headers, 'host')
  const isPassedOn = Object.keys(headers).some((name) => PASSED_ON.test(name))
  return (host === undefined || LOOPBACK_HOST.test(host)) && !isPassedOn
}

export function isOwnOrigin({ headers }: HttpRequest): boolean {
  const origin = readHeader(headers, 'origin')
  if (origin === undefined) return true
  return URL.canParse(origin) && new URL(origin).host === readHeader(headers, 'host')
}
