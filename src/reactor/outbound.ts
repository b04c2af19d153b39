/** Sends requests of proxies, webhooks and reactor code. Connects only to allowed hosts and checked addresses. */
import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { rootCertificates } from 'node:tls'
import { HttpSender, hostOf, portOf } from '../client/http-sender.js'
import { adviseAllowNet } from '../domain/allow-net-advice.js'
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { CofferError, codeOf, type ErrorCode, usage } from '../errors.js'
import {
  answerWhole,
  type Destination,
  lateError,
  leftError,
  type Outbound,
  type OutboundAnswer,
  type OutboundRequest,
  type Sending,
  WAIT_MS,
} from '../framework/ports/outbound.js'

/** Statuses below 200 are not final (101) or not valid. */
const MIN_STATUS = 200

export interface OutboundOptions {
  allowNet: readonly string[]
  resolve?: (host: string) => Promise<LookupAddress[]>
  ca?: string
  /** This process listens on these ports. No request is sent to them, even if `allowNet` lists them. */
  ownPorts?: ReadonlySet<number>
  waitMs?: number
}

export class HttpOutbound implements Outbound {
  readonly #list: AllowList
  readonly #resolve: (host: string) => Promise<LookupAddress[]>
  readonly #ownPorts: ReadonlySet<number>
  readonly #waitMs: number
  readonly #sender: HttpSender

  constructor({ allowNet, resolve, ca, ownPorts = new Set(), waitMs = WAIT_MS }: OutboundOptions) {
    this.#list = createAllowList(allowNet)
    this.#resolve = resolve ?? ((host) => lookup(host, { all: true }))
    this.#ownPorts = ownPorts
    this.#waitMs = waitMs
    this.#sender = new HttpSender(() => (ca === undefined ? {} : { ca: [...rootCertificates, ca] }))
  }

  reach(url: URL): Destination {
    this.#judge(url)
    return { send: (request, sending) => this.#send(url, request, sending) }
  }

  close(): Promise<void> {
    return this.#sender.close()
  }

  requireListed(url: URL): void {
    const host = hostOf(url)
    if (this.#list.mayReach(host, portOf(url))) return
    const entry = entryOf(host, url.port)
    throw refusal('forbidden', `the host ${entry} is not on the list of --allow-net`, { allow: entry })
  }

  #judge(url: URL): void {
    this.requireListed(url)
    const host = hostOf(url)
    const family = isIP(host)
    if (family !== 0) this.#choose(url, [{ address: host, family }])
  }

  async #send(url: URL, request: OutboundRequest, { sent, left }: Sending): Promise<OutboundAnswer> {
    const ending = new AbortController()
    const { signal } = ending
    const late = setTimeout(() => ending.abort(lateError(this.#waitMs)), this.#waitMs)
    left?.(() => ending.abort(leftError()))
    try {
      this.#judge(url)
      // Looks up the name again, because the agent may still have a connection to this name from the time before this
      // process listened on the port.
      if (this.#ownPorts.has(portOf(url)) && isIP(hostOf(url)) === 0) await this.#find(url)
      signal.throwIfAborted()
      // The sender connects only to addresses that `#lookUp` has checked. This prevents DNS rebinding.
      const response = await this.#sender.send(url, { ...request, signal, lookup: this.#lookUp(url) }, sent)
      if (response.statusCode! >= MIN_STATUS) return describeAnswer(response, this.#waitMs)
      response.destroy()
      throw new Error('The response has a status below 200')
    } catch (cause) {
      if (signal.aborted) throw signal.reason
      if (cause instanceof CofferError) throw cause
      throw badGateway('The destination gave no answer', cause)
    } finally {
      clearTimeout(late)
    }
  }

  #lookUp(url: URL): LookupFunction {
    return (_, { all }, done) => {
      this.#find(url).then(
        (found) => (all ? done(null, found) : done(null, found[0]!.address, found[0]!.family)),
        (error) => done(error, ''),
      )
    }
  }

  async #find(url: URL): Promise<LookupAddress[]> {
    const found = await this.#resolve(hostOf(url)).catch((cause: unknown) => {
      throw refusal('bad_gateway', 'the name of the host cannot be resolved', { cause })
    })
    return this.#choose(url, found)
  }

  /**
   * Returns the allowed addresses.
   * @throws CofferError `forbidden` if no address is allowed or the URL leads to this server itself, `bad_gateway` if
   * `found` is empty
   */
  #choose(url: URL, found: readonly LookupAddress[]): LookupAddress[] {
    if (found.length === 0) throw refusal('bad_gateway', 'the name of the host has no address')
    const port = portOf(url)
    const allowed = found.filter(({ address }) => this.#list.mayConnect(hostOf(url), address, port))
    if (allowed.length === 0) {
      const host = hostOf(url)
      const reason = `the host ${host} has a private address, which --allow-net does not list`
      // The message omits the private address, because callers and reactor code read the message.
      const entry = isIP(host) === 0 ? `${host},ADDRESS` : entryOf(host, url.port)
      throw refusal('forbidden', reason, { allow: entry })
    }
    if (this.#ownPorts.has(port) && allowed.some(({ address }) => isThisMachine(address)))
      throw refusal('forbidden', 'it is this server itself')
    return allowed
  }
}

function refusal(
  code: ErrorCode,
  reason: string,
  { cause, allow }: { cause?: unknown; allow?: string } = {},
): CofferError {
  const advice = allow === undefined ? '' : adviseAllowNet(allow)
  return new CofferError(code, `The destination cannot be called: ${reason}.${advice}`, { cause })
}

function entryOf(host: string, port: string): string {
  if (port === '') return host
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
}

/** The error contains the code of a system error, but not its message, which can quote the request. */
function badGateway(what: string, cause: unknown): CofferError {
  const code = codeOf(cause)
  const reason = /^\w{1,40}$/.test(code) ? code : 'unknown reason'
  return new CofferError('bad_gateway', `${what} (${reason}).`, { cause })
}

function isThisMachine(address: string): boolean {
  const own = new BlockList()
  own.addSubnet('127.0.0.0', 8, 'ipv4')
  own.addSubnet('0.0.0.0', 8, 'ipv4')
  // This subnet contains `::`, `::1` and the obsolete IPv6 form of IPv4 addresses.
  own.addSubnet('::', 96, 'ipv6')
  for (const each of Object.values(networkInterfaces()).flat())
    if (each !== undefined) own.addAddress(each.address, each.family === 'IPv4' ? 'ipv4' : 'ipv6')
  return own.check(address.replace(/%.*$/, ''), isIP(address) === 4 ? 'ipv4' : 'ipv6')
}

/** Call after the parser has read all bytes that arrived with the headers. */
function describeAnswer(response: IncomingMessage, waitMs: number): OutboundAnswer {
  const { statusCode: status = 0, complete, readableLength } = response
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  if (complete && readableLength > 0 && headers['content-length'] === String(readableLength)) {
    const whole: Uint8Array | null = response.read()
    if (whole?.length === readableLength) return answerWhole(status, headers, whole)
  }
  const body = readPieces(response, waitMs)
  const collect = async (maxBytes: number) => {
    const late = setTimeout(() => response.destroy(), waitMs)
    const bytes = await collectBytes(body, maxBytes).finally(() => clearTimeout(late))
    if (bytes !== undefined) return bytes
    throw new CofferError('bad_gateway', `The answer of the destination has more than ${maxBytes} bytes.`)
  }
  return { status, headers, body, collect }
}

/** `waitMs` limits each pause of the destination. Pauses of the caller do not count. */
async function* readPieces(response: IncomingMessage, waitMs: number): AsyncGenerator<Uint8Array> {
  const pieces = response[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  try {
    for (;;) {
      const late = setTimeout(() => response.destroy(new Error('late')), waitMs)
      const { done, value } = await pieces.next().finally(() => clearTimeout(late))
      if (done) return
      yield value
    }
  } catch (cause) {
    throw badGateway('The answer of the destination ended before it was complete', cause)
  } finally {
    response.destroy()
  }
}

export type AllowList = ReturnType<typeof createAllowList>

/** Parses `host`, `host:port`, `[v6 address]:port`. @throws CofferError `usage` for an invalid entry */
export function createAllowList(entries: readonly string[]) {
  const allowed = entries.map(parseEntry)
  const mayReach = (host: string, port: number) =>
    allowed.some((entry) => entry.host === normalizeHost(host) && (entry.port ?? port) === port)
  return {
    mayReach,
    /** A listed host may have any public address. A private address of the host must be listed too. */
    mayConnect: (host: string, address: string, port: number) => {
      if (!isPrivateAddress(address) || mayReach(address, port)) return true
      // `localhost` may have loopback addresses.
      return normalizeHost(host) === 'localhost' && (address === '::1' || /^127\./.test(address))
    },
  }
}

function parseEntry(entry: string) {
  const match = /^(?:\[([^\]]+)\]|([^\s:/[\]@]+))(?::(\d{1,5}))?$/.exec(entry)
  const host = isIP(entry) === 6 ? entry : (match?.[1] ?? match?.[2])
  const port = match?.[3] === undefined ? undefined : Number(match[3])
  const isAddress = match?.[1] === undefined || isIP(match[1]) === 6
  if (host === undefined || !isAddress || (port !== undefined && (port < 1 || port > 65_535)))
    throw usage('--allow-net takes a host, or a host and a port: api.example.com:443.')
  return { host: normalizeHost(host), port }
}

function normalizeHost(host: string): string {
  return host
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase()
}

/** Whether `address` is not a public unicast address (IANA special-purpose registries, RFC 6890). */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return SPECIAL.v4.check(address, 'ipv4')
  return family === 0 || SPECIAL.v6.check(address, 'ipv6')
}

/** In a single list, the subnet of IPv4-mapped addresses would match all of IPv4. */
const SPECIAL = {
  v4: createBlockList('ipv4', [
    '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
    '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4',
  ]),
  v6: createBlockList('ipv6', [
    '::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20',
    '5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8',
  ]),
}

function createBlockList(family: 'ipv4' | 'ipv6', lines: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of lines.flatMap((line) => line.split(' '))) {
    const [address = '', prefix] = network.split('/')
    list.addSubnet(address, Number(prefix), family)
  }
  return list
}
