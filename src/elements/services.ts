/** The requests that a page can send to the server. */
import { toPage, toServer } from './case.js'
import { missing } from './errors.js'
import { fillIn } from './payload.js'
import { hideValues } from './references.js'
import { type Answer, type RequestOptions, refuseErrors, type Send } from './requests.js'

interface ProxyOptions extends RequestOptions {
  path?: string
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: unknown
  includeResponseHeaders?: boolean
}

export type Services = ReturnType<typeof createServices>

export function createServices(send: Send, prefix: string) {
  const ask = async (method: string, path: string, body: unknown, options: RequestOptions = {}) => {
    const headers = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : undefined
    const answer = await send({ ...options, method, path, headers, body })
    refuseErrors(answer)
    return answer.body
  }
  const proxy = (method: string) => (options?: ProxyOptions) => callProxy(send, prefix, method, options)
  return {
    tokens: {
      create: async (model: unknown, options?: RequestOptions) =>
        toPage(await ask('POST', '/tokens', toServer(fillIn(model)), options)),
      update: async (id: string, model: unknown, options?: RequestOptions) =>
        toPage(await ask('PATCH', `/tokens/${encodeURIComponent(id)}`, toServer(fillIn(model)), options)),
      async retrieve(id: string, options?: RequestOptions) {
        const path = `/tokens/${encodeURIComponent(id)}`
        const { data, ...rest } = toPage(await ask('GET', path, undefined, options))
        return { ...rest, data: hideValues(data, 'data') }
      },
      encrypt: () => refuse('tokens.encrypt'),
    },
    tokenIntents: {
      create: async (model: unknown, options?: RequestOptions) =>
        toPage(await ask('POST', '/token-intents', toServer(fillIn(model)), options)),
    },
    tokenize: (model: unknown, options?: RequestOptions) => ask('POST', '/tokenize', fillIn(model), options),
    sessions: {
      create: async (options?: RequestOptions) => toPage(await ask('POST', '/sessions', undefined, options)),
    },
    proxy: {
      get: proxy('GET'),
      post: proxy('POST'),
      put: proxy('PUT'),
      patch: proxy('PATCH'),
      delete: proxy('DELETE'),
    },
    client: {
      get: () => refuse('bt.client'),
      post: () => refuse('bt.client'),
      put: () => refuse('bt.client'),
      patch: () => refuse('bt.client'),
      delete: () => refuse('bt.client'),
    },
    device: { getDeviceInfo: describeDevice },
  }
}

async function callProxy(send: Send, prefix: string, method: string, options: ProxyOptions = {}) {
  const { path = '', query = {}, headers, body, includeResponseHeaders = false, ...rest } = options
  const search = new URLSearchParams(query).toString()
  const tail = path === '' || path.startsWith('/') ? path : `/${path}`
  const answer = await send({
    ...rest,
    method,
    path: `/proxy${tail}${search === '' ? '' : `?${search}`}`,
    headers,
    body: body === undefined ? undefined : fillIn(body),
  })
  const data = hideValues(answer.body, '')
  refuseErrors(answer, isOfDestination(answer, prefix) ? data : answer.body)
  return includeResponseHeaders ? { data, headers: Object.fromEntries(answer.headers) } : data
}

/**
 * An error of the destination can contain the values that the destination received. An error of Coffer contains none of
 * these values.
 */
function isOfDestination({ headers }: Answer, prefix: string): boolean {
  return headers.has(`${prefix}-proxy-destination-status`)
}

async function refuse(what: string): Promise<never> {
  throw missing(what)
}

function describeDevice() {
  const { innerWidth, innerHeight, devicePixelRatio, navigator, screen } = window
  return {
    languages: [...navigator.languages],
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    cookiesEnabled: navigator.cookieEnabled,
    hardwareConcurrency: navigator.hardwareConcurrency,
    maxTouchPoints: navigator.maxTouchPoints,
    screenWidth: screen.width,
    screenHeight: screen.height,
    screenAvailWidth: screen.availWidth,
    screenAvailHeight: screen.availHeight,
    innerWidth,
    innerHeight,
    devicePixelRatio,
    webdriver: navigator.webdriver,
  }
}
