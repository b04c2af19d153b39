/**
 * The part of `fetch` that clients use, over `node:http`: it takes a certificate authority, follows no redirect, and uses
 * no proxy. The address is checked before anything is sent.
 */
import type { LookupFunction } from 'node:net'
import { CofferError, usage } from '../errors.js'
import type { Fetch, FetchedAnswer } from './http-client.js'

export interface SocketOptions {
  /** PEM: the authorities that may have signed the server's certificate, instead of the usual ones. */
  ca?: string
  /** Lets requests, and with them key and data, go unencrypted to other machines. */
  insecure?: boolean
}

/**
 * Parses the address of a server, without slashes at its end.
 * @throws CofferError `usage` if it is not one, or if a connection to it would not be encrypted
 */
export function readServerUrl(text: string, { insecure = false }: SocketOptions = {}): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url === undefined || !isHttp)
    throw usage('The address of a server begins with https://, or http:// on this machine.')
  // These parts could hold a key, and have no meaning here.
  if (url.username + url.password + url.search + url.hash !== '')
    throw usage('The address of a server has no user, query or fragment. Give the key as COFFER_API_KEY.')
  if (url.protocol === 'http:' && !insecure && !isLoopback(url.hostname))
    throw usage(
      `Requests to ${url.host} would not be encrypted. Use https, or add --insecure if nobody can listen on the way.`,
    )
  return url.href.replace(/\/+$/, '')
}

/** Contract: the URL parser has normalized `hostname`. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
}

async function openAgents({ ca }: SocketOptions) {
  const [plain, sealed] = await Promise.all([import('node:http'), import('node:https')])
  if (ca !== undefined) await checkAuthorities(ca)
  const trust = ca === undefined ? {} : { ca }
  return {
    plain: { request: plain.request, agent: new plain.Agent({ keepAlive: true }) },
    // Overrides NODE_TLS_REJECT_UNAUTHORIZED.
    sealed: {
      request: sealed.request,
      agent: new sealed.Agent({ keepAlive: true, rejectUnauthorized: true, ...trust }),
    },
  }
}

export function createSocketFetch(options: SocketOptions = {}) {
  let opening: ReturnType<typeof openAgents> | undefined
  return {
    /** Rejects with CofferError `usage` for invalid certificates, `unavailable` for an unreachable server. */
    fetch: (async (url, { method, headers, body, signal }) => {
      opening ??= openAgents(options)
      const isSealed = url.startsWith('https:')
      const { request: open, agent } = (await opening)[isSealed ? 'sealed' : 'plain']
      // No resolver decides where `localhost` is, so that an unencrypted request stays on this machine.
      const here = isSealed || options.insecure ? {} : { lookup: findLoopback }
      const sized = body === undefined ? headers : { ...headers, 'content-length': Buffer.byteLength(body) }
      return new Promise<FetchedAnswer>((resolve, reject) => {
        const request = open(url, { method, signal, agent, headers: sized, ...here }, (answer) => {
          const headers = new Map(Object.entries(answer.headers).map(([name, text]) => [name, String(text)]))
          const get = (name: string) => headers.get(name) ?? null
          const read = { get, [Symbol.iterator]: () => headers.entries() }
          resolve({ status: answer.statusCode ?? 0, headers: read, body: answer })
        })
        request.on('error', (error) => reject(explain(error, url)))
        // If the server switches protocols, there is no error.
        request.on('close', () => reject(new Error('There was no answer.')))
        request.end(body)
      })
    }) satisfies Fetch,
    /** Closes the connections that are kept for later requests. */
    close: async () => {
      const { plain, sealed } = (await opening?.catch(() => undefined)) ?? {}
      plain?.agent.destroy()
      sealed?.agent.destroy()
    },
  }
}

async function checkAuthorities(pem: string): Promise<void> {
  const { createSecureContext } = await import('node:tls')
  try {
    if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('no certificate')
    createSecureContext({ ca: pem })
  } catch (cause) {
    throw usage('--ca takes a file with certificates (PEM).', { cause })
  }
}

const findLoopback: LookupFunction = (_, options, done) => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]
  if (options.all) done(null, addresses)
  else done(null, '127.0.0.1', 4)
}

const UNREACHABLE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'its name is unknown',
  EAI_AGAIN: 'its name cannot be looked up now',
  EHOSTUNREACH: 'there is no way to it',
  ENETUNREACH: 'there is no way to it',
  ETIMEDOUT: 'it does not accept connections',
}
const UNTRUSTED = /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:GET|VERIFY)_\w+)$/

/** An error before the request was sent says so; any other stays as it is. */
function explain(error: Error & { code?: string; errors?: { code?: string }[] }, url: string): Error {
  const { host } = new URL(url)
  const code = error.code ?? error.errors?.[0]?.code ?? ''
  const unreachable = UNREACHABLE[code]
  const refuse = (message: string) => new CofferError('unavailable', message, { cause: error })
  if (unreachable !== undefined) return refuse(`The server ${host} cannot be reached: ${unreachable}.`)
  if (UNTRUSTED.test(code))
    return refuse(`The certificate of ${host} is of no known authority. Give its authority with --ca FILE.`)
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return refuse(`The certificate of ${host} is for another name.`)
  if (code === 'CERT_HAS_EXPIRED') return refuse(`The certificate of ${host} has expired.`)
  if (code === 'EPROTO' || code.startsWith('ERR_SSL'))
    return refuse(`The server ${host} does not speak TLS as we do.`)
  return error
}
