/** The global flags, with their variables of the environment. */

export const FORMATS = ['table', 'json', 'ndjson', 'id', 'csv', 'value'] as const
export type Format = (typeof FORMATS)[number]

interface Declared {
  /** In commander's syntax: `--vault <directory>`. */
  flag: string
  description: string
  /** Of the environment, if it has another name than the flag. */
  variable?: string
  /** The one-letter form of the flag. */
  short?: string
  /** The allowed values, if they are a list. */
  choices?: readonly string[]
  /** May be given several times; the values are joined with commas. */
  isRepeatable?: boolean
}

/** `word`: the flag without its value. */
export type Setting = Declared & Named
interface Named {
  word: string
  variable: string
}

/** `COFFER_SERVE_PORT` of `--port <number>` after `COFFER_SERVE_`. */
export function nameVariable(flag: string, start = 'COFFER_'): string {
  return start + flag.split(' ')[0]!.slice(2).replaceAll('-', '_').toUpperCase()
}

function addNames<const D extends Record<string, Declared>>(declared: D): { [K in keyof D]: D[K] & Named } {
  const rows = Object.entries(declared).map(([key, row]) => {
    return [key, { variable: nameVariable(row.flag), ...row, word: row.flag.split(' ')[0]! }]
  })
  return Object.fromEntries(rows)
}

/** All global flags and their variables. */
export const SETTINGS = addNames({
  profile: {
    flag: '--profile <name>',
    description: 'a profile, for settings that neither a flag nor a variable sets',
  },
  vault: {
    flag: '--vault <directory>',
    description: 'the vault; by default .coffer here or in a directory above',
  },
  url: {
    flag: '--url <address>',
    description: 'a server to send the commands to, with an API key, instead of a vault',
  },
  store: { flag: '--store <address>', description: 'the vault in PostgreSQL: postgres://user@host/database' },
  storePasswordFile: {
    flag: '--store-password-file <file>',
    description: 'the password of the user in --store is the first line of this file',
  },
  storePasswordFd: {
    flag: '--store-password-fd <number>',
    description: 'the password of the user in --store is the first line of this descriptor',
  },
  prefix: {
    flag: '--prefix <name>',
    description: 'the prefix of header names, for --url, serve and openapi (default svc)',
  },
  ca: {
    flag: '--ca <file>',
    description:
      'trust these certificate authorities (PEM): for --url instead of the usual ones, for proxies and reactor code besides them',
  },
  insecure: {
    flag: '--insecure',
    description: 'for --url: allow http to another machine, where others can read along',
  },
  timeout: {
    flag: '--timeout <seconds>',
    description: 'for --url: how long to wait for an answer (default 60)',
  },
  keyFile: { flag: '--key-file <file>', description: 'opens the vault with this key file' },
  passphraseFile: {
    flag: '--passphrase-file <file>',
    description: 'opens the vault with the first line of this file',
  },
  passphraseFd: {
    flag: '--passphrase-fd <number>',
    description: 'opens the vault with the first line of this descriptor',
  },
  passphraseCommand: {
    flag: '--passphrase-command <command>',
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
    description: 'acts in this tenant (name or id); by default in the one set by tenant use, or in the first',
  },
  allowNet: {
    flag: '--allow-net <hosts>',
    description:
      'hosts that reactor code may fetch from and proxies may call, separated by commas: api.example.com:443',
  },
  allowHost: {
    flag: '--allow-host <name>',
    description:
      'an additional host name that serve accepts, besides localhost, addresses and public_url; repeatable, or separated by commas',
    isRepeatable: true,
  },
  modules: {
    flag: '--modules <directory>',
    description: 'bundles that reactor code may require, one file each',
  },
  output: {
    flag: '--output <format>',
    short: 'o',
    description: 'by default table on a terminal, else json',
    choices: FORMATS,
  },
  fields: { flag: '--fields <names>', description: 'only these fields, separated by commas' },
  color: {
    flag: '--color <when>',
    description: 'use colours; auto depends on the terminal',
    choices: ['auto', 'always', 'never'],
  },
  input: { flag: '--no-input', description: 'never ask; missing input is an error' },
  quiet: { flag: '--quiet', description: 'no notices on standard error; errors stay' },
  yes: { flag: '--yes', description: 'do not ask before a destructive command' },
})

export const ALL_SETTINGS: readonly Setting[] = Object.values(SETTINGS)
