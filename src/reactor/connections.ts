/** Sends the requests of proxies and of `fetch` in reactors, only to addresses that were checked. */
import { lookup } from 'node:dns/promises'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, Agent as TlsAgent } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { createSecureContext, rootCertificates } from 'node:tls'
import { CofferError, codeOf } from '../errors.js'
import { type AllowList, createAllowList } from './allow-list.js'

/** Shorter than servers keep connections, so that a request seldom meets a connection that is closing. */
const KEEP_IDLE_MS = 1_000
const MOST_IDLE = 64
const MOST_HEADER_BYTES = 64 * 1024

export interface Resolved {
  address: string
  family: number
}

export interface ConnectionOptions {
  /** `host` or `host:port`. */
  allowNet: readonly string[]
  /** Returns all addresses of a name. */
  resolve?: (host: string) => Promise<Resolved[]>
  /** Certificate authorities to trust besides the usual ones, PEM. */
  ca?: string
  /** The ports that this process listens on; no request is sent to them, whatever is allowed. */
  ownPorts?: ReadonlySet<number>
}

interface SentRequest {
  method: string
  /** Path and query, unless they are those of the URL. */
  target?: string
  /** Names and values alternate. Node checks them and sends them unchanged. */
  headers: string[]
  body: Uint8Array
  signal: AbortSignal
  /** Called once the whole request was sent. */
  sent?: () => void
}

export class Connections {
  readonly #list: AllowList
  readonly #resolve: (host: string) => Promise<Resolved[]>
  readonly #ownPorts: ReadonlySet<number>
  readonly #plain: Agent
  readonly #tls: TlsAgent

  /** @throws CofferError `usage` for an invalid entry of `allowNet` */
  constructor({ allowNet, resolve = resolveName, ca, ownPorts = new Set() }: ConnectionOptions) {
    const kept = { keepAlive: true, timeout: KEEP_IDLE_MS, maxFreeSockets: MOST_IDLE } as const
    const trusted =
      ca === undefined ? {} : { secureContext: createSecureContext({ ca: [...rootCertificates, ca] }) }
    this.#list = createAllowList(allowNet)
    this.#resolve = resolve
    this.#ownPorts = ownPorts
    this.#plain = new Agent(kept)
    this.#tls = new TlsAgent({ ...kept, ...trusted })
  }

  /** @throws CofferError `forbidden` for a host that is not on the list, or an address that may not be connected to */
  judge(url: URL): void {
    const host = hostOf(url)
    if (!this.#list.mayReach(host, portOf(url)))
      throw new CofferError('forbidden', 'this host is not on the list of --allow-net')
    const family = isIP(host)
    if (family !== 0) this.#choose(url, [{ address: host, family }])
  }

  /**
   * Resolves with the answer before its body is read. Follows no redirect, and ignores proxies of the environment.
   * Rejects with CofferError for a forbidden or unknown destination, otherwise with the error of the connection.
   */
  async send(
    url: URL,
    { method, target, headers, body, signal, sent }: SentRequest,
  ): Promise<IncomingMessage> {
    this.judge(url)
    // The agent may keep a connection to this name from before the port became our own.
    if (this.#ownPorts.has(portOf(url)) && isIP(hostOf(url)) === 0) await this.#find(url)
    signal.throwIfAborted()
    const isTls = url.protocol === 'https:'
    return new Promise((resolve, reject) => {
      const options = {
        host: hostOf(url),
        port: portOf(url),
        method,
        path: target ?? `${url.pathname}${url.search}`,
        headers,
        signal,
        agent: isTls ? this.#tls : this.#plain,
        maxHeaderSize: MOST_HEADER_BYTES,
        // Connects only to addresses that are checked here, which prevents DNS rebinding.
        lookup: this.#lookUp(url),
      }
      const request = isTls ? httpsRequest(options) : httpRequest(options)
      if (sent !== undefined) request.once('finish', sent)
      request.once('response', resolve)
      request.on('error', reject)
      // If the server switches protocols, there is no error.
      request.once('close', () => reject(new Error('There was no answer')))
      request.end(body)
    })
  }

  close(): void {
    this.#plain.destroy()
    this.#tls.destroy()
  }

  #lookUp(url: URL): LookupFunction {
    return (_, { all }, done) => {
      this.#find(url).then(
        (found) => (all ? done(null, found) : done(null, found[0]!.address, found[0]!.family)),
        (error) => done(error, ''),
      )
    }
  }

  async #find(url: URL): Promise<Resolved[]> {
    return this.#choose(url, await this.#resolve(hostOf(url)))
  }

  /** The addresses that may be connected to. @throws CofferError `forbidden`, `unavailable` if there is none */
  #choose(url: URL, found: readonly Resolved[]): Resolved[] {
    if (found.length === 0) throw new CofferError('unavailable', 'the name of the host has no address')
    const port = portOf(url)
    const allowed = found.filter(({ address }) => this.#list.mayConnect(hostOf(url), address, port))
    if (allowed.length === 0)
      throw new CofferError('forbidden', 'the host has a private address, which --allow-net does not list')
    if (this.#ownPorts.has(port) && allowed.some(({ address }) => isThisMachine(address)))
      throw new CofferError('forbidden', 'it is this server itself')
    return allowed
  }
}

/** The code of an error of the system or of Node; never its message, which can quote what was sent. */
export function describeConnectionError(error: unknown): string {
  const code = codeOf(error)
  return /^\w{1,40}$/.test(code) ? code : 'unknown reason'
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}

async function resolveName(host: string): Promise<Resolved[]> {
  try {
    return await lookup(host, { all: true })
  } catch (cause) {
    throw new CofferError('unavailable', 'the name of the host cannot be resolved', { cause })
  }
}

/** Whether a connection to `address` ends at this machine. */
function isThisMachine(address: string): boolean {
  // A BlockList also matches IPv4 addresses that are written as IPv6.
  const own = new BlockList()
  own.addSubnet('127.0.0.0', 8, 'ipv4')
  own.addSubnet('0.0.0.0', 8, 'ipv4')
  // `::` and `::1`, and the obsolete form of IPv4 addresses.
  own.addSubnet('::', 96, 'ipv6')
  for (const each of Object.values(networkInterfaces()).flat())
    if (each !== undefined) own.addAddress(each.address, each.family === 'IPv4' ? 'ipv4' : 'ipv6')
  return own.check(address.replace(/%.*$/, ''), isIP(address) === 4 ? 'ipv4' : 'ipv6')
}
