/**
 * The part of `fetch` that clients use, over `node:http`: it takes a certificate authority, follows no redirect, and uses
 * no proxy. The address is checked before anything is sent.
 */
import type { LookupFunction } from 'node:net'
import { CofferError, usage } from '../errors.js'
import type { Fetch, FetchedAnswer } from './http-client.js'

export interface SocketOptions {
  /** PEM: the authorities that may have signed the server's certificate, instead of the usual ones. */
  ca?: string | undefined
  /** Lets requests, and with them key and data, go unencrypted to other machines. */
  insecure?: boolean | undefined
}

/**
 * Parses the address of a server, without slashes at its end.
 * @throws CofferError `usage` if it is not one, or if a connection to it would not be encrypted
 */
export function readServerUrl(text: string, { insecure = false }: SocketOptions = {}): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw usage('The address of a server begins with https://, or http:// on this machine.')
  // These parts could hold a key, and have no meaning here.
  if (url.username + url.password + url.search + url.hash !== '')
    throw usage('The address of a server has no user, query or fragment. Give the key as COFFER_API_KEY.')
  // The URL parser has normalized the name.
  const isLoopback = /^(localhost|\[::1\]|127(?:\.\d{1,3}){3})$/.test(url.hostname)
  if (url.protocol === 'http:' && !insecure && !isLoopback)
    throw usage(
      `Requests to ${url.host} would not be encrypted. Use https, or add --insecure if nobody can listen on the way.`,
    )
  return url.href.replace(/\/+$/, '')
}

async function openAgent({ ca }: SocketOptions, isSealed: boolean) {
  if (!isSealed) {
    const { request, Agent } = await import('node:http')
    return { request, agent: new Agent({ keepAlive: true }) }
  }
  const { request, Agent } = await import('node:https')
  if (ca !== undefined) await checkAuthorities(ca)
  // Overrides NODE_TLS_REJECT_UNAUTHORIZED.
  const trust = { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) }
  return { request, agent: new Agent({ keepAlive: true, ...trust }) }
}

export function createSocketFetch(options: SocketOptions = {}) {
  const opened = new Map<boolean, ReturnType<typeof openAgent>>()
  return {
    /** Rejects with CofferError `usage` for invalid certificates, `unavailable` for an unreachable server. */
    fetch: (async (url, { method, headers, body, signal }) => {
      const isSealed = url.startsWith('https:')
      const opening = opened.get(isSealed) ?? openAgent(options, isSealed)
      opened.set(isSealed, opening)
      const { request: open, agent } = await opening
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
      for (const opening of opened.values()) (await opening.catch(() => undefined))?.agent.destroy()
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
  if (!options.all) return done(null, '127.0.0.1', 4)
  done(null, [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ])
}

/** The codes of errors before the request was sent. */
const UNREACHED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|E(HOST|NET)UNREACH|ETIMEDOUT|EPROTO)$|CERT|^(ERR_SSL|ERR_TLS|UNABLE)_/

function explain(error: Error & { code?: string; errors?: { code?: string }[] }, url: string): Error {
  const code = error.code ?? error.errors?.[0]?.code ?? ''
  if (!UNREACHED.test(code)) return error
  const advice = /SELF_SIGNED|UNABLE/.test(code)
    ? ' Give the authority of its certificate with --ca FILE.'
    : ''
  const message = `The server ${new URL(url).host} cannot be reached (${code}).${advice}`
  return new CofferError('unavailable', message, { cause: error })
}
