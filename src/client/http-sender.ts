/** Sends requests over `node:http` and `node:https`. Follows no redirects, and ignores proxies in the environment. */
import type { IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { SecureContextOptions } from 'node:tls'

/** Closes idle connections before servers close them, so that few requests are sent on a closing connection. */
const KEPT = { keepAlive: true, timeout: 1_000, maxFreeSockets: 64 } as const
const MAX_HEADER_BYTES = 64 * 1024

export interface HttpRequest {
  method: string
  target: string
  /** Contains neither `host` nor `content-length`, because the sender adds these two headers. */
  headers: Readonly<Record<string, string>>
  body?: Uint8Array | string | AsyncIterable<Uint8Array>
  signal: AbortSignal
  lookup?: LookupFunction | undefined
}

type Trust = () => SecureContextOptions | Promise<SecureContextOptions>

export class HttpSender {
  readonly #opened = new Map<boolean, ReturnType<typeof open>>()
  readonly #trust: Trust

  /** `trust` returns the trusted certificates, and is called for the first connection over TLS. */
  constructor(trust: Trust) {
    this.#trust = trust
  }

  /** Resolves with the answer before its body is read. `sent` is called when the request is written. */
  async send(
    url: URL,
    { method, target, headers, body = '', signal, lookup }: HttpRequest,
    sent: () => void = () => undefined,
  ): Promise<IncomingMessage> {
    const isTls = url.protocol === 'https:'
    const opening = this.#opened.get(isTls) ?? open(isTls, this.#trust)
    this.#opened.set(isTls, opening)
    const { request: openRequest, agent } = await opening
    // In this list, names and values of headers alternate. Node checks these headers and sends them unchanged.
    const headerLines = ['host', url.host, ...Object.entries(headers).flat()]
    const isWhole = typeof body === 'string' || body instanceof Uint8Array
    if (!isWhole) headerLines.push('transfer-encoding', 'chunked')
    else if (body.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method))
      headerLines.push('content-length', `${Buffer.byteLength(body)}`)
    const place = { host: hostOf(url), port: portOf(url), path: target, ...(lookup && { lookup }) }
    const options = { ...place, method, headers: headerLines, signal, agent, maxHeaderSize: MAX_HEADER_BYTES }
    return new Promise((resolve, reject) => {
      const request = openRequest(options)
      request.once('finish', sent).once('response', resolve).on('error', reject)
      // If the server switches protocols, Node closes the request without an error.
      request.once('close', () => reject(new Error('There was no answer')))
      if (isWhole) request.end(body)
      // An error of the body also ends the request with this error.
      else void pipeline(body, request).catch(() => undefined)
    })
  }

  async close(): Promise<void> {
    for (const opening of this.#opened.values()) (await opening.catch(() => undefined))?.agent.destroy()
  }
}

/** Loads the module for HTTP or TLS only when it is needed, so that commands start fast. */
async function open(isTls: boolean, trust: Trust) {
  if (!isTls) {
    const { request, Agent } = await import('node:http')
    return { request, agent: new Agent(KEPT) }
  }
  const { request, Agent } = await import('node:https')
  const { createSecureContext } = await import('node:tls')
  const secureContext = createSecureContext(await trust())
  // An explicit `rejectUnauthorized` makes Node ignore NODE_TLS_REJECT_UNAUTHORIZED.
  return { request, agent: new Agent({ ...KEPT, rejectUnauthorized: true, secureContext }) }
}

export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

export function portOf({ port, protocol }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}
