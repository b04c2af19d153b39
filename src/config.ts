/** The configuration of a command: flags take precedence over environment variables, and those over defaults. */
import { omitUndefined } from './domain/omit-undefined.js'
import { CofferError } from './errors.js'

export const FORMATS = ['table', 'json', 'ndjson', 'id', 'csv', 'value'] as const
export type Format = (typeof FORMATS)[number]

export interface Setting {
  /** In commander's syntax: `--vault <directory>`. */
  flag: string
  variable: string
  description: string
  /** The one-letter form of the flag. */
  short?: string
  /** The allowed values, if they are a list. */
  choices?: readonly string[]
  /** May be given several times; the values are joined with commas. */
  isRepeatable?: boolean
}

/** All global flags and their variables. */
export const SETTINGS = {
  profile: {
    flag: '--profile <name>',
    variable: 'COFFER_PROFILE',
    description: 'a profile, for settings that neither a flag nor a variable sets',
  },
  vault: {
    flag: '--vault <directory>',
    variable: 'COFFER_VAULT',
    description: 'the vault; by default .coffer here or in a directory above',
  },
  url: {
    flag: '--url <address>',
    variable: 'COFFER_URL',
    description: 'a server to send the commands to, with an API key, instead of a vault',
  },
  store: {
    flag: '--store <address>',
    variable: 'COFFER_STORE',
    description: 'the vault in PostgreSQL: postgres://user@host/database',
  },
  storePasswordFile: {
    flag: '--store-password-file <file>',
    variable: 'COFFER_STORE_PASSWORD_FILE',
    description: 'the password of the user in --store is the first line of this file',
  },
  storePasswordFd: {
    flag: '--store-password-fd <number>',
    variable: 'COFFER_STORE_PASSWORD_FD',
    description: 'the password of the user in --store is the first line of this descriptor',
  },
  prefix: {
    flag: '--prefix <name>',
    variable: 'COFFER_PREFIX',
    description: 'the prefix of header names, for --url, serve and openapi (default svc)',
  },
  ca: {
    flag: '--ca <file>',
    variable: 'COFFER_CA',
    description:
      'trust these certificate authorities (PEM): for --url instead of the usual ones, for proxies and reactor code besides them',
  },
  insecure: {
    flag: '--insecure',
    variable: 'COFFER_INSECURE',
    description: 'for --url: allow http to another machine, where others can read along',
  },
  timeout: {
    flag: '--timeout <seconds>',
    variable: 'COFFER_TIMEOUT',
    description: 'for --url: how long to wait for an answer (default 60)',
  },
  keyFile: {
    flag: '--key-file <file>',
    variable: 'COFFER_KEY_FILE',
    description: 'opens the vault with this key file',
  },
  passphraseFile: {
    flag: '--passphrase-file <file>',
    variable: 'COFFER_PASSPHRASE_FILE',
    description: 'opens the vault with the first line of this file',
  },
  passphraseFd: {
    flag: '--passphrase-fd <number>',
    variable: 'COFFER_PASSPHRASE_FD',
    description: 'opens the vault with the first line of this descriptor',
  },
  passphraseCommand: {
    flag: '--passphrase-command <command>',
    variable: 'COFFER_PASSPHRASE_COMMAND',
    description: 'opens the vault with the first line that this command prints',
  },
  apiKeyStdin: {
    flag: '--api-key-stdin',
    variable: 'COFFER_API_KEY',
    description:
      'acts as the application whose key is on the first line of standard input; the variable contains the key',
  },
  tenant: {
    flag: '--tenant <name>',
    variable: 'COFFER_TENANT',
    description: 'acts in this tenant (name or id); by default in the one set by tenant use, or in the first',
  },
  allowNet: {
    flag: '--allow-net <hosts>',
    variable: 'COFFER_ALLOW_NET',
    description:
      'hosts that reactor code may fetch from and proxies may call, separated by commas: api.example.com:443',
  },
  allowHost: {
    flag: '--allow-host <name>',
    variable: 'COFFER_ALLOW_HOST',
    description:
      'an additional host name that serve accepts, besides localhost, addresses and public_url; repeatable, or separated by commas',
    isRepeatable: true,
  },
  modules: {
    flag: '--modules <directory>',
    variable: 'COFFER_MODULES',
    description: 'bundles that reactor code may require, one file each',
  },
  output: {
    flag: '--output <format>',
    short: 'o',
    variable: 'COFFER_OUTPUT',
    description: 'by default table on a terminal, else json',
    choices: FORMATS,
  },
  fields: {
    flag: '--fields <names>',
    variable: 'COFFER_FIELDS',
    description: 'only these fields, separated by commas',
  },
  color: {
    flag: '--color <when>',
    variable: 'COFFER_COLOR',
    description: 'use colours; auto depends on the terminal',
    choices: ['auto', 'always', 'never'],
  },
  input: {
    flag: '--no-input',
    variable: 'COFFER_NO_INPUT',
    description: 'never ask; missing input is an error',
  },
  quiet: {
    flag: '--quiet',
    variable: 'COFFER_QUIET',
    description: 'no notices on standard error; errors stay',
  },
  yes: { flag: '--yes', variable: 'COFFER_YES', description: 'do not ask before a destructive command' },
} as const satisfies Record<string, Setting>

export interface Config {
  readonly vault?: string
  /** The server that performs the commands, instead of a vault. */
  readonly url?: string
  /** The address of the store that the vault is in, instead of a directory; it may have a password. */
  readonly store?: string
  readonly storePasswordFile?: string
  readonly storePasswordFd?: number
  readonly prefix?: string
  /** The path of certificate authorities. */
  readonly ca?: string
  readonly insecure: boolean
  /** How long to wait for an answer of the server. */
  readonly timeoutMs?: number
  readonly keyFile?: string
  readonly tenant?: string
  readonly passphraseFile?: string
  readonly passphraseFd?: number
  readonly passphraseCommand?: string
  /** The API key from the environment or a profile. */
  readonly apiKey?: string
  /** Whether the first line of standard input is the API key. */
  readonly apiKeyStdin: boolean
  /** The hosts that reactor code may fetch from. */
  readonly allowNet?: readonly string[]
  /** Additional host names that a server accepts. */
  readonly allowHost?: readonly string[]
  /** The directory of the bundles for reactor code. */
  readonly modules?: string
  readonly output?: Format
  readonly fields?: readonly string[]
  readonly color: 'auto' | 'always' | 'never'
  /** Whether to ask for missing input. */
  readonly input: boolean
  readonly quiet: boolean
  readonly yes: boolean
  /** The directory of key files and profiles. */
  readonly directory: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the configuration from `flags` (with commander's names) and `env`.
 * @throws CofferError `usage` that names the flag or variable with an invalid value.
 */
export function readConfig(flags: Readonly<Record<string, unknown>>, env: Environment): Config {
  const text = (name: keyof typeof SETTINGS): string | undefined => {
    const setting: Setting = SETTINGS[name]
    const flag = flags[name]
    const value = typeof flag === 'string' ? flag : env[setting.variable] || undefined
    if (value !== undefined && setting.choices !== undefined && !setting.choices.includes(value)) {
      const source = typeof flag === 'string' ? setting.flag.split(' ')[0] : setting.variable
      throw new CofferError('usage', `${source} must be one of ${setting.choices.join(', ')}.`)
    }
    return value
  }
  const isSet = (name: 'quiet' | 'yes' | 'insecure') =>
    flags[name] === true || isTrue(env[SETTINGS[name].variable])
  const descriptor = (name: 'passphraseFd' | 'storePasswordFd') => {
    const number = text(name)
    return number === undefined ? undefined : readDescriptorNumber(number, SETTINGS[name].flag)
  }
  const given = {
    ...chooseTarget(flags, { vault: text('vault'), url: text('url'), store: text('store') }),
    storePasswordFile: text('storePasswordFile'),
    storePasswordFd: descriptor('storePasswordFd'),
    prefix: text('prefix'),
    ca: text('ca'),
    timeoutMs: readSeconds(text('timeout')),
    keyFile: text('keyFile'),
    tenant: text('tenant'),
    passphraseFile: text('passphraseFile'),
    passphraseFd: descriptor('passphraseFd'),
    passphraseCommand: text('passphraseCommand'),
    apiKey: env[SETTINGS.apiKeyStdin.variable] || undefined,
    output: text('output') as Format | undefined,
    fields: readFields(text('fields')),
    allowNet: splitList(text('allowNet')),
    allowHost: splitList(text('allowHost'))?.map(readHostName),
    modules: text('modules'),
  }
  return Object.freeze({
    ...omitUndefined(given),
    color: (text('color') ?? 'auto') as Config['color'],
    apiKeyStdin: flags.apiKeyStdin === true,
    input: flags.input !== false && !isTrue(env[SETTINGS.input.variable]),
    quiet: isSet('quiet'),
    yes: isSet('yes'),
    insecure: isSet('insecure'),
    directory: findConfigDirectory(env),
  })
}

/** What names the vault: a directory, a server or a store. */
export const TARGETS = ['vault', 'url', 'store'] as const
type Targets = { [Name in (typeof TARGETS)[number]]?: string | undefined }

/** A flag goes before a variable. @throws CofferError `usage` if two are equally close */
function chooseTarget(flags: Readonly<Record<string, unknown>>, given: Targets): Targets {
  const byFlag = TARGETS.filter((name) => typeof flags[name] === 'string')
  const named = byFlag.length > 0 ? byFlag : TARGETS.filter((name) => given[name] !== undefined)
  const [name, other] = named
  if (other !== undefined)
    throw new CofferError('usage', `Both --${name} and --${other} are given. Give one of them.`)
  return name === undefined ? {} : { [name]: given[name] }
}

function readSeconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text) * 1000
  throw new CofferError('usage', `${SETTINGS.timeout.flag.split(' ')[0]} takes seconds, from 1 to 9999.`)
}

function splitList(text: string | undefined): string[] | undefined {
  return text
    ?.split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

function readFields(text: string | undefined): string[] | undefined {
  const names = splitList(text)
  if (names?.length === 0) throw new CofferError('usage', '--fields names no field.')
  return names
}

function readHostName(text: string): string {
  if (/^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$/i.test(text)) return text
  throw new CofferError(
    'usage',
    `${SETTINGS.allowHost.flag.split(' ')[0]} takes names without a port: vault.local.`,
  )
}

export function isTrue(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== '0' && value !== 'false'
}

function readDescriptorNumber(text: string, flag: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw new CofferError('usage', `${flag.split(' ')[0]} takes the number of an open descriptor.`)
}

/** The user's configuration directory by the XDG base directory specification. */
export function findConfigDirectory(env: Environment): string {
  const base = env.XDG_CONFIG_HOME
  if (base?.startsWith('/')) return `${base}/coffer`
  const home = env.HOME ?? env.USERPROFILE
  if (home === undefined || home === '')
    throw new CofferError('usage', 'HOME is not set, so there is no place for key files.')
  return `${home}/.config/coffer`
}
