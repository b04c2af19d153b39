/** The hosts and addresses that reactor code may connect to. */
import { BlockList, isIP } from 'node:net'
import { usage } from '../errors.js'

export type AllowList = ReturnType<typeof createAllowList>

/** Parses `host`, `host:port`, `[v6 address]:port`. @throws CofferError `usage` for an invalid entry */
export function createAllowList(entries: readonly string[]) {
  const allowed = entries.map(parseEntry)
  /** Whether the list contains this host, with this port or without a port. */
  const mayReach = (host: string, port: number) =>
    allowed.some((entry) => entry.host === normalizeHost(host) && (entry.port ?? port) === port)
  return {
    mayReach,
    /** Whether a host on the list may resolve to `address`: any public address, or one that is itself on the list. */
    mayConnect: (host: string, address: string, port: number) => {
      if (!isPrivateAddress(address)) return true
      if (mayReach(address, port)) return true
      // For this name, a loopback address is expected.
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

/** Two lists, because in a common one the subnet of IPv4-mapped addresses would match all of IPv4. */
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
