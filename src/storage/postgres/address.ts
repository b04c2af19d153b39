/** Addresses of vaults in PostgreSQL: `postgres://user@host:port/database?…`. */
import { userInfo } from 'node:os'
import type { ClientConfig } from 'pg'
import { CofferError } from '../../errors.js'

export interface StoreAddress {
  /** Without a password, to be shown and kept. */
  readonly text: string
  readonly hasPassword: boolean
  readonly connection: ClientConfig
  /** The path of the certificate authorities that are trusted instead of the usual ones. */
  readonly caFile?: string
  /** What is less than it should be, for the person. */
  readonly warning?: string
}

/** What may follow the `?`. */
const PARAMETERS = ['host', 'schema', 'sslmode', 'sslrootcert']
const MODES = ['disable', 'require', 'verify-ca', 'verify-full']
const DEFAULT_PORT = 5432
const NO_HOST = 'no-host.invalid'
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/

export const STORE_SCHEME = /^postgres(?:ql)?:/i

/** @throws CofferError `usage`, which names the part that is wrong, and never what is there */
export function parseStoreAddress(text: string): StoreAddress {
  let url: URL
  try {
    // Where a socket is named below there may be no host here, which such an address has to have.
    url = new URL(text.replace(/^([a-z]+:\/\/(?:[^/?#]*@)?)(?=\/)/i, `$1${NO_HOST}`))
  } catch {
    throw usage('is not one: postgres://USER@HOST:PORT/DATABASE')
  }
  if (!STORE_SCHEME.test(url.protocol)) throw usage('begins with postgres://')
  const parameters = readParameters(url)
  const database = decode(url.pathname.slice(1), 'database')
  if (database === '' || database.includes('/'))
    throw usage('names a database: postgres://USER@HOST/DATABASE')
  const { host: socket, schema, sslmode: mode, sslrootcert: caFile } = parameters
  if (socket !== undefined && !socket.startsWith('/'))
    throw usage('has a host= that is not the directory of a socket')
  if (schema !== undefined && !SCHEMA_NAME.test(schema))
    throw usage('has a schema= that is not lower-case letters, digits and _')
  if (mode !== undefined && !MODES.includes(mode))
    throw usage(`has an sslmode= that is none of ${MODES.join(', ')}`)
  const named = url.hostname === NO_HOST ? '' : url.hostname.replace(/^\[(.*)\]$/, '$1')
  const host = socket ?? named
  if (host === '' || (socket !== undefined && named !== ''))
    throw usage('names one host, or host= with the directory of a socket')
  const password = decode(url.password, 'password')
  const shown = new URL(url)
  shown.password = ''
  const isPlain = isLocal(host) && caFile === undefined
  if (caFile !== undefined && (mode === 'disable' || mode === 'require'))
    throw usage('has an sslrootcert= that its sslmode= would not look at')
  const { ssl, warning } = chooseTls(host, mode ?? (isPlain ? 'disable' : 'verify-full'))
  return {
    text: shown.href.replace(NO_HOST, ''),
    hasPassword: password !== '',
    connection: {
      host,
      port: url.port === '' ? DEFAULT_PORT : Number(url.port),
      database,
      user: decode(url.username, 'user') || userInfo().username,
      ...(password === '' ? {} : { password }),
      ssl,
      options: schema === undefined ? '' : `-c search_path=${schema}`,
    },
    ...(caFile === undefined ? {} : { caFile }),
    ...(warning === undefined ? {} : { warning }),
  }
}

function readParameters(url: URL): Partial<Record<string, string>> {
  const found: Partial<Record<string, string>> = {}
  for (const [name, value] of url.searchParams) {
    if (!PARAMETERS.includes(name)) throw usage(`has a parameter besides ${PARAMETERS.join(', ')}`)
    if (found[name] !== undefined) throw usage(`has ${name}= twice`)
    found[name] = value
  }
  if (url.hash !== '') throw usage('has a # that is not spelled %23')
  return found
}

function decode(text: string, what: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw usage(`has a ${what} with a % that is not spelled %25`)
  }
}

/** On the same machine, where nobody can listen in between. */
function isLocal(host: string): boolean {
  return host.startsWith('/') || host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

function chooseTls(host: string, mode: string): Pick<StoreAddress, 'warning'> & { ssl: ClientConfig['ssl'] } {
  // The host is named, for else the certificate of an address would be held against another name.
  if (mode === 'verify-full') return { ssl: { host } as ClientConfig['ssl'] & object }
  if (isLocal(host) && mode === 'disable') return { ssl: false }
  const reach = `The connection to the store (sslmode=${mode})`
  if (mode === 'disable') return { ssl: false, warning: `${reach} is not encrypted: others can read along.` }
  if (mode === 'require')
    return { ssl: { rejectUnauthorized: false }, warning: `${reach} does not check whose server it is.` }
  return {
    ssl: { checkServerIdentity: () => undefined },
    warning: `${reach} does not check the server's name.`,
  }
}

function usage(what: string): CofferError {
  return new CofferError('usage', `The address of a store ${what}.`)
}
