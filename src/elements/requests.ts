import { ApiError } from './errors.js'

export interface Server {
  url: string
  prefix: string
}

/** Any JSON, because only the server knows the structure of its answers. */
export type Json = ReturnType<typeof JSON.parse>

/** The options of each call. `correlationId`: the trace id of the request. */
export interface RequestOptions {
  apiKey?: string
  correlationId?: string
  idempotencyKey?: string
  deviceInfo?: object
}

export interface Call extends RequestOptions {
  method: string
  /** Includes the query. */
  path: string
  headers?: Record<string, string> | undefined
  body?: unknown
}

export interface Answer {
  status: number
  headers: Headers
  body: Json
}

export type Send = (call: Call) => Promise<Answer>

/** `getKey` returns the key for calls that give no key. */
export function createSend({ url, prefix }: Server, getKey: () => string | undefined): Send {
  return async ({ method, path, headers: given = {}, body, ...options }) => {
    const key = options.apiKey ?? getKey()
    if (key === undefined) throw new ApiError('There is no API key. Call init first.', -1)
    const headers = new Headers(given)
    headers.set(`${prefix}-api-key`, key)
    if (options.correlationId !== undefined) headers.set(`${prefix}-trace-id`, options.correlationId)
    if (options.idempotencyKey !== undefined) headers.set(`${prefix}-idempotency-key`, options.idempotencyKey)
    if (options.deviceInfo !== undefined) headers.set(`${prefix}-device-info`, encode(options.deviceInfo))
    if (body !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json')
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const answer = await fetch(url + path, init).catch((error: unknown) => {
      throw new ApiError(`${url} does not answer: ${(error as Error).message}`, -1)
    })
    return { status: answer.status, headers: answer.headers, body: readBody(await answer.text()) }
  }
}

/** A body that is not JSON is returned as text. */
function readBody(text: string): Json {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function encode(value: object): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))))
}

/** @throws ApiError for a status of 400 and above */
export function refuseErrors({ status, body }: Answer, data: unknown = body): void {
  if (status < 400) return
  const { title, detail } = body ?? {}
  const said = [title, detail].filter((text) => typeof text === 'string').join(': ')
  throw new ApiError(said === '' ? `The server answered with status ${status}.` : said, status, data)
}
