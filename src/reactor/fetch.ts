/** The host's side of `fetch`, the only network access of reactor code. */
import type { IncomingMessage } from 'node:http'
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { CofferError, validationError } from '../errors.js'
import { type ConnectionOptions, Connections, describeConnectionError } from './connections.js'
import type { FetchRequest, FetchResponse } from './messages.js'

const MOST_REDIRECTS = 5
const MOST_BODY_BYTES = 1024 * 1024
const MOST_ANSWER_BYTES = 4 * 1024 * 1024
const REDIRECTS = [301, 302, 303, 307, 308]
/** Headers that the code cannot set, because they control the connection. */
const CONNECTION_HEADERS =
  /^(?:host|connection|content-length|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|accept-encoding)$/
/** Headers that are not forwarded to another origin. */
const CREDENTIAL_HEADERS = /^(?:authorization|cookie)$/

/** `signal` aborts the fetch when the run ends. */
export type HostFetch = (request: FetchRequest, signal: AbortSignal) => Promise<FetchResponse>

/**
 * @throws CofferError `usage` for an invalid entry of `allowNet`. The returned function throws `forbidden` for a host,
 * address or redirect that is not on the list, `validation` for an invalid request, `too_large`, `unavailable`.
 */
export function createHostFetch(options: ConnectionOptions): HostFetch & { close(): void } {
  const connections = new Connections(options)
  const fetch: HostFetch = async (asked, signal) => {
    let hop = readRequest(asked)
    for (let redirects = 0; ; redirects++) {
      const response = await send(connections, hop, signal)
      const location = response.headers.location
      if (!REDIRECTS.includes(response.statusCode!) || location === undefined || asked.redirect === 'manual')
        return readResponse(response, hop, redirects > 0)
      response.destroy()
      if (asked.redirect === 'error')
        throw new CofferError('unavailable', 'the server answered with a redirect')
      if (redirects === MOST_REDIRECTS)
        throw new CofferError('unavailable', `there were more than ${MOST_REDIRECTS} redirects`)
      hop = followRedirect(hop, response.statusCode!, location)
    }
  }
  return Object.assign(fetch, { close: () => connections.close() })
}

type Hop = Pick<FetchRequest, 'method' | 'headers'> & { url: URL; body: Buffer }

function readRequest({ url, method, headers, body }: FetchRequest): Hop {
  const isSpelled =
    typeof url === 'string' &&
    typeof method === 'string' &&
    /^[A-Z]{1,20}$/.test(method) &&
    !['CONNECT', 'TRACE', 'TRACK'].includes(method) &&
    Array.isArray(headers) &&
    headers.length <= 100 &&
    headers.every(
      (pair) => Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === 'string'),
    ) &&
    (body === undefined || typeof body === 'string')
  if (!isSpelled) throw validationError('the request is not a valid fetch request')
  const bytes = Buffer.from(body ?? '', 'base64')
  if (bytes.length > MOST_BODY_BYTES)
    throw new CofferError('too_large', `the body of a request is limited to ${MOST_BODY_BYTES} bytes`)
  const kept = headers.filter(([name]) => !CONNECTION_HEADERS.test(name.toLowerCase()))
  return { url: readUrl(url), method, headers: kept, body: bytes }
}

function readUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw validationError('this is not a valid URL')
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw validationError('only http and https can be fetched')
  return url
}

async function send(connections: Connections, { url, method, headers, body }: Hop, signal: AbortSignal) {
  try {
    const named = new Map([
      ['host', url.host],
      ['accept', '*/*'],
      ['user-agent', 'coffer'],
      ...(url.username === '' ? [] : [['authorization', describeUser(url)] as [string, string]]),
      ...headers.map(([name, value]): [string, string] => [name.toLowerCase(), value]),
      ['accept-encoding', 'identity'],
    ])
    if (body.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method))
      named.set('content-length', String(body.length))
    return await connections.send(url, { method, headers: [...named].flat(), body, signal })
  } catch (cause) {
    if (cause instanceof CofferError) throw cause
    const message = `the connection failed (${describeConnectionError(cause)})`
    throw new CofferError('unavailable', message, { cause })
  }
}

function describeUser({ username, password }: URL): string {
  return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`
}

async function readResponse(response: IncomingMessage, { url }: Hop, redirected: boolean) {
  const body = await readBody(response)
  const raw = response.rawHeaders
  return {
    url: url.href,
    status: response.statusCode!,
    statusText: response.statusMessage ?? '',
    redirected,
    headers: raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1]!] as [string, string]] : [])),
    body: body.toString('base64'),
  }
}

async function readBody(response: IncomingMessage): Promise<Buffer> {
  // Ending the iteration early destroys the connection.
  const bytes = await collectBytes(response, MOST_ANSWER_BYTES).catch((cause: unknown) => {
    const message = `the connection broke (${describeConnectionError(cause)})`
    throw new CofferError('unavailable', message, { cause })
  })
  if (bytes !== undefined) return bytes
  throw new CofferError('too_large', `the answer has more than ${MOST_ANSWER_BYTES} bytes`)
}

/** HTTP-redirect fetch of the Fetch standard, steps 11 to 13. */
function followRedirect({ url, method, headers, body }: Hop, status: number, location: string): Hop {
  const next = readUrl(location, url)
  const isGet = (status === 303 && method !== 'HEAD') || ([301, 302].includes(status) && method === 'POST')
  const isSameOrigin = next.origin === url.origin
  const kept = headers.filter(([name]) => {
    const lower = name.toLowerCase()
    return (isSameOrigin || !CREDENTIAL_HEADERS.test(lower)) && (!isGet || !lower.startsWith('content-'))
  })
  return isGet
    ? { url: next, method: 'GET', headers: kept, body: Buffer.alloc(0) }
    : { url: next, method, headers: kept, body }
}
