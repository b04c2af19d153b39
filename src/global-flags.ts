/** The global flags, with their variables of the environment. */

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
