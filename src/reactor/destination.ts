/** Where requests may go: a name is resolved once, and who sends connects to the judged address, against DNS rebinding. */
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'
import { CofferError } from '../errors.js'
import type { AllowList } from './allow-list.js'

export interface Resolved {
  address: string
  family: number
}

/** Returns all addresses of a name. */
export type Resolve = (host: string) => Promise<Resolved[]>

/** The allowed addresses of the host. @throws CofferError `forbidden`, `unavailable` if the name has no address */
export async function chooseAddresses(
  list: AllowList,
  url: URL,
  resolve: Resolve,
): Promise<[Resolved, ...Resolved[]]> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!list.mayReach(host, portOf(url)))
    throw new CofferError('forbidden', 'this host is not on the list of --allow-net')
  const family = isIP(host)
  const found = family === 0 ? await resolve(host) : [{ address: host, family }]
  const [first, ...others] = found.filter(({ address }) => list.mayConnect(host, address, portOf(url)))
  if (first !== undefined) return [first, ...others]
  if (found.length === 0) throw new CofferError('unavailable', 'the name of the host has no address')
  throw new CofferError('forbidden', 'the host has a private address, which --allow-net does not list')
}

export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}

export async function resolveName(host: string): Promise<Resolved[]> {
  try {
    return await lookup(host, { all: true })
  } catch (cause) {
    throw new CofferError('unavailable', 'the name of the host cannot be resolved', { cause })
  }
}

/** Whether a connection to `address` ends at this machine. */
export function isThisMachine(address: string): boolean {
  // It knows IPv4 addresses in all forms that IPv6 has for them.
  const own = new BlockList()
  own.addSubnet('127.0.0.0', 8, 'ipv4')
  own.addSubnet('0.0.0.0', 8, 'ipv4')
  // `::` and `::1`, and the obsolete form of IPv4 addresses.
  own.addSubnet('::', 96, 'ipv6')
  for (const each of Object.values(networkInterfaces()).flat())
    if (each !== undefined) own.addAddress(each.address, each.family === 'IPv4' ? 'ipv4' : 'ipv6')
  return own.check(address.replace(/%.*$/, ''), isIP(address) === 4 ? 'ipv4' : 'ipv6')
}

/** Trusts the usual certificate authorities, and those of `ca` (PEM) besides. */
export function trustAlso(ca: string): SecureContext {
  return createSecureContext({ ca: [...rootCertificates, ca] })
}
