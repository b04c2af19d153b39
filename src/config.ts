/**
 * Settings of one run: flags over environment over defaults, checked and frozen. It reads no file and knows no
 * command; every global flag is one row of {@link SETTINGS}.
 */
import { CofferError } from './errors.js'

export const FORMATS = ['table', 'json', 'ndjson', 'id', 'csv'] as const
export type Format = (typeof FORMATS)[number]

export interface Setting {
  /** As commander wants it: `--vault <directory>`. */
  flag: string
  variable: string
  description: string
  /** What the setting may be, where that is a list. */
  choices?: readonly string[]
  /** Given several times, the values count as one list, separated by commas. */
  isRepeatable?: boolean
}

/** Every global flag and its variable. */
export const SETTINGS = {
  profile: {
    flag: '--profile <name>',
    variable: 'COFFER_PROFILE',
    description: 'the profile whose settings count where neither a flag nor a variable says something',
  },
  vault: {
    flag: '--vault <directory>',
    variable: 'COFFER_VAULT',
    description: 'the vault; else .coffer here or above',
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
      'acts as the application whose key is the first line of standard input; the variable holds the key itself',
  },
  tenant: {
    flag: '--tenant <name>',
    variable: 'COFFER_TENANT',
    description:
      'acts in this tenant, by name or id; else in the one chosen by tenant use, else in the first',
  },
  allowNet: {
    flag: '--allow-net <hosts>',
    variable: 'COFFER_ALLOW_NET',
    description: 'hosts that reactor code may fetch from, separated by commas: api.example.com:443',
  },
  allowHost: {
    flag: '--allow-host <name>',
    variable: 'COFFER_ALLOW_HOST',
    description:
      'a name that serve answers to besides localhost, addresses and public_url; repeat it, or separate by commas',
    isRepeatable: true,
  },
  modules: {
    flag: '--modules <directory>',
    variable: 'COFFER_MODULES',
    description: 'bundles that reactor code may require, one file each',
  },
  output: {
    flag: '--output <format>',
    variable: 'COFFER_OUTPUT',
    description: 'table on a terminal, else json',
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
    description: 'colours when the terminal has them',
    choices: ['auto', 'always', 'never'],
  },
  input: {
    flag: '--no-input',
    variable: 'COFFER_NO_INPUT',
    description: 'never ask; what is missing is an error',
  },
  quiet: {
    flag: '--quiet',
    variable: 'COFFER_QUIET',
    description: 'no notices on standard error; errors stay',
  },
  yes: { flag: '--yes', variable: 'COFFER_YES', description: 'do not ask before destroying' },
} as const satisfies Record<string, Setting>

export interface Config {
  readonly vault?: string
  readonly keyFile?: string
  readonly tenant?: string
  readonly passphraseFile?: string
  readonly passphraseFd?: number
  readonly passphraseCommand?: string
  /** The API key to act with, from the environment or a profile. */
  readonly apiKey?: string
  /** Whether the first line of standard input is the API key. */
  readonly apiKeyStdin: boolean
  /** Hosts that reactor code may fetch from. */
  readonly allowNet?: readonly string[]
  /** Names that a server answers to besides its own. */
  readonly allowHost?: readonly string[]
  /** Where bundles for reactor code are. */
  readonly modules?: string
  readonly output?: Format
  readonly fields?: readonly string[]
  readonly color: 'auto' | 'always' | 'never'
  /** May people be asked? */
  readonly input: boolean
  readonly quiet: boolean
  readonly yes: boolean
  /** Where key files and profiles are kept. */
  readonly directory: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The settings that `flags` (commander's names) and `env` spell.
 * @throws CofferError `usage` naming the flag or the variable that says something impossible.
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
  const isSet = (name: 'quiet' | 'yes') => flags[name] === true || isTrue(env[SETTINGS[name].variable])
  const descriptor = text('passphraseFd')
  const given = {
    vault: text('vault'),
    keyFile: text('keyFile'),
    tenant: text('tenant'),
    passphraseFile: text('passphraseFile'),
    passphraseFd: descriptor === undefined ? undefined : readDescriptorNumber(descriptor),
    passphraseCommand: text('passphraseCommand'),
    apiKey: env[SETTINGS.apiKeyStdin.variable] || undefined,
    output: text('output') as Format | undefined,
    fields: splitList(text('fields')),
    allowNet: splitList(text('allowNet')),
    allowHost: splitList(text('allowHost'))?.map(readHostName),
    modules: text('modules'),
  }
  return Object.freeze({
    ...withoutUndefined(given),
    color: (text('color') ?? 'auto') as Config['color'],
    apiKeyStdin: flags.apiKeyStdin === true,
    input: flags.input !== false && !isTrue(env[SETTINGS.input.variable]),
    quiet: isSet('quiet'),
    yes: isSet('yes'),
    directory: findConfigDirectory(env),
  })
}

function splitList(text: string | undefined): string[] | undefined {
  return text
    ?.split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

function readHostName(text: string): string {
  if (/^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$/i.test(text)) return text
  throw new CofferError(
    'usage',
    `${SETTINGS.allowHost.flag.split(' ')[0]} takes names without a port: vault.local.`,
  )
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(record: T): Defined<T> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Defined<T>
}

function isTrue(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== '0' && value !== 'false'
}

function readDescriptorNumber(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw new CofferError(
    'usage',
    `${SETTINGS.passphraseFd.flag.split(' ')[0]} takes the number of an open descriptor.`,
  )
}

/** The XDG base directory specification's place for a user's configuration. */
export function findConfigDirectory(env: Environment): string {
  const base = env.XDG_CONFIG_HOME
  if (base?.startsWith('/')) return `${base}/coffer`
  const home = env.HOME ?? env.USERPROFILE
  if (home === undefined || home === '')
    throw new CofferError('usage', 'HOME is not set, so there is no place for key files.')
  return `${home}/.config/coffer`
}
