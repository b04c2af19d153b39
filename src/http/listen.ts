/** Listening on several addresses with the same port. */
import type { Server } from 'node:net'
import { CofferError, codeOf } from '../errors.js'

/** Attempts to find a port that is free on all addresses. */
const FREE_PORT_TRIES = 20
/** Error codes of a machine that does not have the address or its protocol. */
const ABSENT = ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EPROTONOSUPPORT']

/**
 * Listens on `port` of every address with a server from `create`. Port 0 selects a port that is free on all of them. The
 * machine need not have the addresses after the first.
 * @throws CofferError `unavailable`
 */
export async function listen<S extends Server>(
  create: () => S,
  { addresses, port }: { addresses: readonly string[]; port: number },
): Promise<{ servers: S[]; port: number }> {
  for (let tries = 1; ; tries++) {
    const servers: S[] = []
    try {
      let chosen = port
      for (const address of addresses) {
        const server = create()
        if (await bind(server, address, chosen, servers.length === 0)) servers.push(server)
        chosen = portOf(servers[0]!)
      }
      return { servers, port: chosen }
    } catch (error) {
      for (const server of servers) server.close()
      const isTaken = codeOf(error) === 'EADDRINUSE'
      if (port !== 0 || !isTaken || tries === FREE_PORT_TRIES) throw explain(error, port)
    }
  }
}

/** False if the machine does not have the address and `isNeeded` is false. */
function bind(server: Server, host: string, port: number, isNeeded: boolean): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      if (!isNeeded && ABSENT.includes(codeOf(error))) resolve(false)
      else reject(error)
    }
    server.once('error', fail)
    server.listen({ host, port, ipv6Only: host === '::1' }, () => {
      server.off('error', fail)
      resolve(true)
    })
  })
}

function portOf(server: Server): number {
  const address = server.address()
  if (address !== null && typeof address === 'object') return address.port
  throw new CofferError('internal', 'The server has no port.')
}

function explain(error: unknown, port: number): CofferError {
  if (error instanceof CofferError) return error
  const code = codeOf(error) || 'unknown reason'
  const messages: Record<string, string> = {
    EADDRINUSE: `Port ${port} is in use. Choose another with --port; 0 finds a free one.`,
    EACCES: `Port ${port} may not be used by this user. Choose one above 1023.`,
  }
  const message = messages[code] ?? `The server could not listen (${code}).`
  return new CofferError('unavailable', message, { cause: error })
}
