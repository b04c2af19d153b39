/** Typed clients: of a server, or of a vault in this process. */
import { randomUUID } from 'node:crypto'
import type { Fetch, HttpClientOptions } from '../client/http-client.js'
import { pause } from '../client/pause.js'
import { createSocketFetch, readServerUrl, type SocketOptions } from '../client/socket-fetch.js'
import { type Client, createTypedClient } from '../client/typed-client.js'

export interface ClientOptions
  extends Pick<HttpClientOptions, 'key' | 'prefix' | 'signal' | 'timeoutMs'>,
    SocketOptions {
  /** The address of the server: https, or http on this machine. */
  url: string
}

/**
 * A client of any server of the interface: `client.tokens.create({ type: 'token', data: 'text' })`. A method resolves to
 * the answer, or rejects with the CofferError of the server; it tries again when the server is busy.
 * @throws CofferError `usage`
 */
export function createClient({ url, ca, insecure, ...options }: ClientOptions): Client {
  const sockets = { ...(ca === undefined ? {} : { ca }), ...(insecure === undefined ? {} : { insecure }) }
  return clientOver(createSocketFetch(sockets).fetch, { ...options, url: readServerUrl(url, sockets) })
}

/** A client whose requests `fetch` answers. */
export function clientOver(fetch: Fetch, options: Pick<HttpClientOptions, 'url' | 'key' | 'prefix'>): Client {
  return createTypedClient({ ...options, fetch, wait: pause, random: Math.random, createKey: randomUUID })
}
