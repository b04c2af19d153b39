/** Addresses of vaults in PostgreSQL: `postgres://user@host:port/database?…`. */
import { userInfo } from 'node:os'
import type { ClientConfig } from 'pg'
import { usage } from '../../errors.js'

export interface StoreAddress {
  /** The address without its password. */
  readonly text: string
  readonly hasPassword: boolean
  readonly connection: ClientConfig
  /** A file with certificate authorities, used instead of the certificate authorities that Node trusts. */
  readonly caFile?: string
  readonly warning?: string
}

const PARAMETERS: Readonly<Record<string, RegExp>> = {
  host: /^\//,
  schema: /^[a-z_][a-z0-9_]{0,62}$/,
  sslmode: /^(disable|require|verify-ca|verify-full)$/,
  sslrootcert: /./,
}
const NO_HOST = 'no-host.invalid'

const STORE_SCHEME = /^postgres(?:ql)?:/i

/** @throws CofferError `usage`, whose message never contains `text` */
export function parseStoreAddress(text: string): StoreAddress {
  try {
    return parse(text)
  } catch {
    throw usage(
      'The address of a store must have the form postgres://USER@HOST:PORT/DATABASE. Parameters after ?, each at most once: ' +
        'schema=NAME (a-z, 0-9, _); host=/DIRECTORY of a socket, instead of HOST; sslmode=verify-full, verify-ca, require or ' +
        'disable; sslrootcert=FILE, for the first two modes. Write %25 for %, and %23 for #.',
    )
  }
}

function parse(text: string): StoreAddress {
  // A URL must have a host, so an address without a host gets a placeholder.
  const url = new URL(text.replace(/^([a-z]+:\/\/(?:[^/?#]*@)?)(?=\/)/i, `$1${NO_HOST}`))
  const given = [...url.searchParams]
  const isKnown = given.every(([name, value]) => PARAMETERS[name]?.test(value))
  const parameters: Partial<Record<string, string>> = Object.fromEntries(given)
  const { host: socket, schema, sslmode: mode, sslrootcert: caFile } = parameters
  const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)]
  const database = decodeURIComponent(url.pathname.slice(1))
  const named = url.hostname === NO_HOST ? '' : url.hostname.replace(/^\[(.*)\]$/, '$1')
  const host = socket ?? named
  const isOnce = (socket === undefined) !== (named === '') && Object.keys(parameters).length === given.length
  const isUsable = caFile === undefined || mode === undefined || mode.startsWith('verify')
  const isStore = STORE_SCHEME.test(url.protocol) && url.hash === '' && /^[^/]+$/.test(database)
  if (!isStore || !isKnown || !isOnce || !isUsable) throw new Error()
  const shown = new URL(url)
  shown.password = ''
  const isPlain = isLocal(host) && caFile === undefined
  const { ssl, warning } = chooseTls(host, mode ?? (isPlain ? 'disable' : 'verify-full'))
  return {
    text: shown.href.replace(NO_HOST, ''),
    hasPassword: password !== '',
    connection: {
      host,
      port: Number(url.port || 5432),
      database,
      user: user || userInfo().username,
      ...(password === '' ? {} : { password }),
      ssl,
      options: schema === undefined ? '' : `-c search_path=${schema}`,
    },
    ...(caFile !== undefined && { caFile }),
    ...(warning !== undefined && { warning }),
  }
}

function isLocal(host: string): boolean {
  return host.startsWith('/') || host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

function chooseTls(host: string, mode: string): { ssl: ClientConfig['ssl']; warning?: string } {
  // Without `host`, the certificate of a server with an IP address would be compared with another name.
  if (mode === 'verify-full') return { ssl: { host } as ClientConfig['ssl'] & object }
  if (isLocal(host) && mode === 'disable') return { ssl: false }
  const warn = (what: string) => `The connection to the store (sslmode=${mode}) ${what}.`
  if (mode === 'disable') return { ssl: false, warning: warn('is not encrypted, so others can read it') }
  if (mode === 'require')
    return { ssl: { rejectUnauthorized: false }, warning: warn("does not check the server's certificate") }
  const ssl = { checkServerIdentity: () => undefined }
  return { ssl, warning: warn("does not check the server's name") }
}
