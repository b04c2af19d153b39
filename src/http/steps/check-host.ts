import { isIPv4, isIPv6 } from 'node:net'
import { CofferError } from '../../errors.js'
import type { Host } from '../../framework/host.js'
import type { HttpRequest } from '../exchange.js'
import type { Step } from './step.js'

export function checkHost(host: Pick<Host, 'store'>, names: readonly string[] | undefined): Step {
  if (names === undefined) return (exchange, next) => next(exchange)
  const check = createHostCheck(host, names)
  return (exchange, next) => {
    const checking = check(exchange.request)
    return checking === undefined ? next(exchange) : checking.then(() => next(exchange))
  }
}

/**
 * Protects against DNS rebinding: a web page lets its own host name resolve to this machine, so its requests contain
 * that host name. Accepts IP addresses, `localhost`, `names`, and the host of the setting `public_url`. The check
 * returns a promise only if it reads settings.
 * @throws CofferError `misdirected`
 */
export function createHostCheck({ store }: Pick<Host, 'store'>, names: readonly string[]) {
  const own = new Set(['localhost', ...names].map((name) => name.toLowerCase()))
  let lastHost: unknown
  let known: { counter: number | undefined; name: string | undefined } | undefined
  const findPublicName = async () => {
    const counter = store.changeCounter(['settings'])
    if (counter !== undefined && known?.counter === counter) return known.name
    const settings = await store.read((reader) => reader.get('settings', 0, 'vault'))
    const url = settings?.values?.public_url
    known = { counter, name: typeof url === 'string' ? new URL(url).hostname : undefined }
    return known.name
  }
  const requirePublic = async (names: readonly string[]) => {
    const publicName = await findPublicName()
    if (names.every((name) => name === publicName)) return
    throw new CofferError(
      'misdirected',
      'This server does not serve that host name. Its operator can allow the name with --allow-host NAME or the setting public_url.',
    )
  }
  return (request: HttpRequest): Promise<void> | undefined => {
    // Most requests have the host of the previous request, so the last accepted host is not checked again.
    const { host } = request.headers
    if (host !== undefined && host === lastHost && request.target.startsWith('/')) return undefined
    const strange = readNames(request).filter((name) => !isAddress(name) && !own.has(name))
    if (strange.length > 0) return requirePublic(strange)
    lastHost = host
    return undefined
  }
}

/** Reads the header Host, and the host of a target that is an absolute URL. HTTP/1.0 may omit the header. */
function readNames({ headers, target }: HttpRequest): string[] {
  const url = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(target)
  return (url === null ? [headers.host] : [headers.host, url[1]])
    .filter((authority) => authority !== undefined)
    .map((authority) => /^(\[[^\]]*\]|[^:]*)(?::\d{0,5})?$/.exec(String(authority))?.[1]?.toLowerCase() ?? '')
}

function isAddress(name: string): boolean {
  return isIPv4(name) || (name.startsWith('[') && isIPv6(name.slice(1, -1)))
}
