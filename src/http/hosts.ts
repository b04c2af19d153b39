/**
 * Protection against DNS rebinding: a web page can make a name of its own resolve to this machine. The requests of such a
 * page contain that name as host and are refused. IP addresses cannot be rebound, so all of them are accepted.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { CofferError } from '../errors.js'
import type { Host } from '../framework/host.js'
import type { HttpRequest } from './exchange.js'

/** A name or an address in brackets, and a port. */
const AUTHORITY = /^(\[[^\]]*\]|[^:]*)(?::\d{0,5})?$/
const OWN_NAME = 'localhost'

/** @throws CofferError `misdirected` for a host name that is not ours. Returns a promise if it reads the settings. */
export type HostCheck = (request: HttpRequest) => Promise<void> | undefined

/** Accepts `localhost`, addresses, `names` (in any case) and the name in the vault's setting `public_url`. */
export function createHostCheck({ store }: Pick<Host, 'store'>, names: readonly string[]): HostCheck {
  const own = new Set([OWN_NAME, ...names].map((name) => name.toLowerCase()))
  let known: { counter: number | undefined; name: string | undefined } | undefined
  const findPublicName = async () => {
    const counter = store.changeCounter(['settings'])
    if (counter !== undefined && known?.counter === counter) return known.name
    const settings = await store.read((reader) => reader.get('settings', 0, 'vault'))
    const url = settings?.values?.public_url
    known = { counter, name: typeof url === 'string' ? new URL(url).hostname : undefined }
    return known.name
  }
  let lastHost: unknown
  return (request) => {
    // Most requests have the host of the request before.
    const { host } = request.headers
    if (host !== undefined && host === lastHost && request.target.startsWith('/')) return undefined
    const strange = readNames(request).filter((name) => !isAddress(name) && !own.has(name))
    if (strange.length === 0) {
      lastHost = host
      return undefined
    }
    return findPublicName().then((name) => {
      if (strange.every((each) => each === name)) return
      throw new CofferError(
        'misdirected',
        'This server does not serve that host name. Its operator can allow the name with --allow-host NAME or the setting public_url.',
      )
    })
  }
}

/** The host names in a request, in lower case: of the header Host, which HTTP/1.0 can omit, and of an absolute URL. */
function readNames({ headers, target }: HttpRequest): string[] {
  const url = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(target)
  return (url === null ? [headers.host] : [headers.host, url[1]])
    .filter((authority) => authority !== undefined)
    .map((authority) => AUTHORITY.exec(String(authority))?.[1]?.toLowerCase() ?? '')
}

function isAddress(name: string): boolean {
  return isIPv4(name) || (name.startsWith('[') && isIPv6(name.slice(1, -1)))
}
