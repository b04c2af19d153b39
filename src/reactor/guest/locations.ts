/** The modules `path` and `url`. The working directory is `/`. */
import { posix } from 'node:path'
import * as url from 'node:url'
import { gate } from './gate.js'
import { type Any, guard, split, type Work } from './shield.js'
import { URL, URLSearchParams } from './web.js'

const PATH_FUNCTIONS = split('basename dirname extname format isAbsolute join normalize parse')
/** Read when the guest starts, before reactor code can change them. */
const { resolve, relative } = posix

export function createPath(): Record<string, unknown> {
  // Without an absolute part, Node would read the working directory of the process.
  const toAbsolute = (...parts: unknown[]): string => guard(() => resolve('/', ...(parts as string[])))
  const path: Record<string, unknown> = {
    sep: '/',
    delimiter: ':',
    resolve: gate(toAbsolute),
    relative: gate((from, to) => relative(toAbsolute(from), toAbsolute(to))),
    toNamespacedPath: (path: unknown) => path,
  }
  for (const name of PATH_FUNCTIONS) path[name] = gate((posix as Any)[name] as Work)
  path.posix = path
  return path
}

function invalidUrl(part: string, message: string): TypeError {
  const code = part === 'SCHEME' ? 'ERR_INVALID_URL_SCHEME' : `ERR_INVALID_FILE_URL_${part}`
  return Object.assign(new TypeError(message), { code })
}

function fileURLToPath(given: unknown): string {
  const { protocol, host, pathname } = given instanceof URL ? (given as Any) : (new URL(given) as Any)
  if (protocol !== 'file:') throw invalidUrl('SCHEME', 'The URL must be of scheme file')
  if (host !== '') throw invalidUrl('HOST', 'File URL host must be "localhost" or empty on linux')
  if (/%2f/i.test(pathname)) throw invalidUrl('PATH', 'File URL path must not include encoded / characters')
  return decodeURIComponent(pathname)
}

function pathToFileURL(path: unknown): URL {
  const absolute = guard(() => resolve('/', `${path}`))
  const isDirectory = `${path}`.endsWith('/') && absolute !== '/'
  const spelled = encodeURI(absolute).replaceAll(/[?#]/g, encodeURIComponent)
  return new URL(`file://${spelled}${isDirectory ? '/' : ''}`)
}

function urlToHttpOptions(given: Any): object {
  const { protocol, hostname, hash, search, pathname, href, port, username, password } = given
  const options: Record<string, unknown> = {
    ...{ protocol, hash, search, pathname, href },
    hostname: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
    path: `${pathname}${search}`,
  }
  if (port !== '') options.port = Number(port)
  if (username !== '') options.auth = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return options
}

const URL_PARTS = split('protocol slashes auth host hostname port pathname search query hash')

export function createUrlModule(): Record<string, unknown> {
  const formatOld = gate((given) => url.format(given as Any))
  // Passes only the parts of a URL to Node. Other members can be functions of the code, which must not reach Node.
  const formatParts = (given: Any) =>
    formatOld(
      Object.fromEntries(URL_PARTS.filter((name) => name in given).map((name) => [name, given[name]])),
    )
  return {
    URL,
    URLSearchParams,
    fileURLToPath,
    pathToFileURL,
    urlToHttpOptions,
    domainToASCII: gate((text) => url.domainToASCII(`${text}`)),
    domainToUnicode: gate((text) => url.domainToUnicode(`${text}`)),
    parse: gate((text, parsesQuery, hasSlashes) =>
      url.parse(text as string, Boolean(parsesQuery), Boolean(hasSlashes)),
    ),
    format: (given: unknown) => {
      if (given instanceof URL) return `${given}`
      return typeof given === 'object' && given !== null ? formatParts(given) : formatOld(given)
    },
    resolve: gate((from, to) => url.resolve(`${from}`, `${to}`)),
  }
}
