/** Sends requests over sockets. Checks the address before anything is sent. */
import type { LookupFunction } from 'node:net'
import { CofferError, usage } from '../errors.js'
import type { Fetch } from './http-client.js'
import { HttpSender } from './http-sender.js'

export interface SocketOptions {
  /** PEM: the certificate authorities that are trusted instead of the usual authorities. */
  ca?: string | undefined
  /** Allows unencrypted requests, with key and data, to other machines. */
  insecure?: boolean | undefined
}

/**
 * Accepts http and https, without user, query and fragment.
 * @throws CofferError `usage` for any other address, or if connections to the address would not be encrypted
 */
export function readServerUrl(text: string, { insecure = false }: SocketOptions = {}): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw usage('The address of a server begins with https://, or http:// on this machine.')
  // These parts of an address could contain a key, and the client does not use them.
  if (url.username + url.password + url.search + url.hash !== '')
    throw usage(
      'The address of a server cannot contain a user, a query or a fragment. Give the key as COFFER_API_KEY.',
    )
  if (url.protocol === 'http:' && !insecure && !isLoopbackHost(url.hostname))
    throw usage(
      `Requests to ${url.host} would not be encrypted. Use https, or add --insecure if nobody can listen on the way.`,
    )
  return url.href.replace(/\/+$/, '')
}

/** `hostname`: as the URL parser has normalized it. */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|\[::1\]|127(?:\.\d{1,3}){3})$/.test(hostname)
}

export function createSocketFetch({ ca, insecure }: SocketOptions = {}) {
  const sender = new HttpSender(() => (ca === undefined ? {} : trustOnly(ca)))
  return {
    /** Rejects with CofferError `usage` for invalid certificates, `unavailable` for an unreachable server. */
    fetch: (async (text, init) => {
      const url = new URL(text)
      // For an unencrypted request, `localhost` is not looked up in DNS, so that the request stays on this machine.
      const lookup = url.protocol === 'https:' || insecure ? undefined : findLoopback
      const request = { ...init, target: url.pathname + url.search, lookup }
      const answer = await sender.send(url, request).catch((error) => {
        throw explain(error, url)
      })
      const headers = Object.entries(answer.headers).map(([name, value]) => [name, String(value)] as const)
      return { status: answer.statusCode ?? 0, headers: new Map(headers), body: answer }
    }) satisfies Fetch,
    close: () => sender.close(),
  }
}

export async function trustOnly(ca: string): Promise<{ ca: string }> {
  const { createSecureContext } = await import('node:tls')
  try {
    if (!ca.includes('-----BEGIN CERTIFICATE-----')) throw new Error('no certificate')
    createSecureContext({ ca })
    return { ca }
  } catch (cause) {
    throw usage('--ca takes a file with certificates (PEM).', { cause })
  }
}

export const findLoopback: LookupFunction = (_, options, done) => {
  if (!options.all) return done(null, '127.0.0.1', 4)
  done(null, [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ])
}

/** Codes of errors that occur before the request is sent. */
const UNREACHED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|E(HOST|NET)UNREACH|ETIMEDOUT|EPROTO)$|CERT|^(ERR_SSL|ERR_TLS|UNABLE)_/

function explain(error: Error & { code?: string; errors?: { code?: string }[] }, { host }: URL): Error {
  const code = error.code ?? error.errors?.[0]?.code ?? ''
  if (!UNREACHED.test(code)) return error
  const advice = /SELF_SIGNED|UNABLE/.test(code)
    ? ' Give the authority of its certificate with --ca FILE.'
    : ''
  return new CofferError('unavailable', `The server ${host} cannot be reached (${code}).${advice}`, {
    cause: error,
  })
}
