import { STATUS_CODES } from 'node:http'
import { CofferError, validationError } from '../errors.js'
import type { OnLeave, Outbound } from '../framework/ports/outbound.js'
import type { RunAccess } from '../framework/ports/reactors.js'
import type { FetchRequest, FetchResponse } from './messages.js'

const MAX_REDIRECTS = 5
const MAX_BODY_BYTES = 1024 * 1024
const MAX_ANSWER_BYTES = 4 * 1024 * 1024
const REDIRECTS = [301, 302, 303, 307, 308]
const CONNECTION_HEADERS =
  /^(?:host|connection|content-length|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|accept-encoding)$/
const CREDENTIAL_HEADERS = ['authorization', 'cookie']

/** `left` registers a listener for the end of the run. `access`: the access of the run to this server. */
export type HostFetch = (
  request: FetchRequest,
  left: OnLeave,
  access?: Pick<RunAccess, 'reach'>,
) => Promise<FetchResponse>

/**
 * The returned function throws CofferError `forbidden` (host, address or redirect), `validation`, `too_large` or
 * `bad_gateway`.
 */
export function createHostFetch(outbound: Outbound): HostFetch {
  return async ({ redirect, ...request }, left, access) => {
    let { url, method, headers, body } = readRequest(request)
    for (let redirects = 0; ; redirects++) {
      // After a redirect, `reach` gets no headers, so that another server cannot redirect a request to this server.
      const own = access?.reach(url, redirects === 0 ? headers : undefined, outbound)
      const destination = own ?? outbound.reach(url)
      const target = `${url.pathname}${url.search}`
      const sent = { method, target, headers: { ...describeSender(url), ...headers }, body }
      const answer = await destination.send(sent, { sent: () => undefined, left })
      const bytes = await answer.collect(MAX_ANSWER_BYTES)
      const { status } = answer
      const { location } = answer.headers
      const isRedirect = REDIRECTS.includes(status) && location !== undefined
      // A redirect from this server comes from the destination of a proxy, and is not followed.
      const isFollowed = own === undefined && redirect !== 'manual'
      if (!isRedirect || (!isFollowed && redirect !== 'error'))
        return {
          url: url.href,
          status,
          statusText: STATUS_CODES[status] ?? '',
          redirected: redirects > 0,
          headers: Object.entries(answer.headers),
          body: Buffer.from(bytes).toString('base64'),
        }
      if (redirect === 'error') throw new CofferError('bad_gateway', 'the server answered with a redirect')
      if (redirects === MAX_REDIRECTS)
        throw new CofferError('bad_gateway', `there were more than ${MAX_REDIRECTS} redirects`)
      // HTTP-redirect fetch of the Fetch standard, steps 11 to 13.
      const next = readUrl(location, url)
      const isPost = status === 303 ? method !== 'HEAD' : method === 'POST' && status < 303
      const isDropped = (name: string) =>
        (next.origin !== url.origin && CREDENTIAL_HEADERS.includes(name)) ||
        (isPost && name.startsWith('content-'))
      headers = Object.fromEntries(Object.entries(headers).filter(([name]) => !isDropped(name)))
      if (isPost) [method, body] = ['GET', Buffer.alloc(0)]
      url = next
    }
  }
}

function readRequest({ url, method, headers, body }: Omit<FetchRequest, 'redirect'>) {
  const isText = (text: unknown) => typeof text === 'string'
  const isPair = (pair: unknown) => Array.isArray(pair) && pair.length === 2 && pair.every(isText)
  const isSpelled =
    isText(url) &&
    isText(method) &&
    /^[A-Z]{1,20}$/.test(method) &&
    !['CONNECT', 'TRACE', 'TRACK'].includes(method) &&
    Array.isArray(headers) &&
    headers.length <= 100 &&
    headers.every(isPair) &&
    (body === undefined || isText(body))
  if (!isSpelled) throw validationError('the request is not a valid fetch request')
  const bytes = Buffer.from(body ?? '', 'base64')
  if (bytes.length > MAX_BODY_BYTES)
    throw new CofferError('too_large', `the body of a request is limited to ${MAX_BODY_BYTES} bytes`)
  const named = headers.map(([name, value]): [string, string] => [name.toLowerCase(), value])
  const kept = Object.fromEntries(named.filter(([name]) => !CONNECTION_HEADERS.test(name)))
  return { url: readUrl(url), method, headers: kept, body: bytes }
}

function readUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw validationError('this is not a valid URL')
  const url = new URL(text, base)
  if (!/^https?:$/.test(url.protocol)) throw validationError('only http and https can be fetched')
  return url
}

function describeSender({ username, password }: URL): Record<string, string> {
  const usual = { accept: '*/*', 'user-agent': 'coffer', 'accept-encoding': 'identity' }
  if (username === '') return usual
  try {
    const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    return { ...usual, authorization: `Basic ${Buffer.from(user).toString('base64')}` }
  } catch {
    throw validationError('the user in the URL is not percent-encoded UTF-8')
  }
}
