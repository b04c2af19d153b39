export const FORMATS = ['table', 'json', 'ndjson', 'id', 'csv', 'value'] as const
export type Format = (typeof FORMATS)[number]
export const ROW_FORMATS = ['ndjson', 'json', 'csv'] as const satisfies readonly Format[]

export interface Setting {
  /** In the syntax of commander, for example `--vault <directory>`. */
  flag: string
  description: string
  word: string
  variable: string
  short?: string
  choices?: readonly string[]
  isRepeatable?: boolean
}

function flag<More extends Partial<Setting>>(text: string, description: string, more?: More) {
  const word = text.split(' ')[0]!
  const variable = `COFFER_${word.slice(2).replaceAll('-', '_').toUpperCase()}`
  return { flag: text, description, word, variable, ...more } as Setting & More
}

export const SETTINGS = {
  profile: flag('--profile <name>', 'a profile, for settings that neither a flag nor a variable sets'),
  vault: flag('--vault <directory>', 'the vault; by default .coffer here or in a directory above'),
  url: flag('--url <address>', 'a server to send the commands to, with an API key, instead of a vault'),
  store: flag('--store <address>', 'the vault in PostgreSQL: postgres://user@host/db'),
  storePasswordFile: flag('--store-password-file <file>', 'the first line is the password of --store'),
  storePasswordFd: flag('--store-password-fd <number>', 'the first line is the password of --store'),
  prefix: flag('--prefix <name>', 'the prefix of header names, for --url, serve and openapi (default svc)'),
  ca: flag(
    '--ca <file>',
    'trust these certificate authorities (PEM): for --url only these; for proxies and reactor code also the usual ones',
  ),
  insecure: flag(
    '--insecure',
    'for --url: allow http to another machine, although others on the network can read it',
  ),
  timeout: flag('--timeout <seconds>', 'for --url: how long to wait for an answer (default 60)'),
  keyFile: flag('--key-file <file>', 'opens the vault with this key file'),
  passphraseFile: flag('--passphrase-file <file>', 'opens the vault with the first line of this file'),
  passphraseFd: flag('--passphrase-fd <number>', 'opens the vault with the first line of this descriptor'),
  passphraseCommand: flag(
    '--passphrase-command <command>',
    'opens the vault with the first line that this command prints',
  ),
  apiKeyStdin: flag(
    '--api-key-stdin',
    'acts as the application whose key is on the first line of standard input; COFFER_API_KEY contains the key itself',
    { variable: 'COFFER_API_KEY' },
  ),
  tenant: flag(
    '--tenant <name>',
    'acts in this tenant (name or id); default: the choice of `coffer tenant use`, else the first tenant',
  ),
  allowNet: flag(
    '--allow-net <hosts>',
    'hosts that reactor code may fetch from and proxies may call, separated by commas: api.example.com:443',
    { isRepeatable: true },
  ),
  allowHost: flag(
    '--allow-host <name>',
    'an additional host name that serve accepts, besides localhost, addresses and public_url; repeatable, or separated by commas',
    { isRepeatable: true },
  ),
  ownHost: flag(
    '--own-host <name>',
    'a host name: requests of reactor code to https://NAME reach the server itself; repeatable, or separated by commas',
    { isRepeatable: true },
  ),
  modules: flag('--modules <directory>', 'bundles that reactor code may require, one file each'),
  dependencies: flag(
    '--dependencies <directories>',
    'for serve --ephemeral: projects with node_modules, separated by commas; reactor code may declare their packages',
    { isRepeatable: true },
  ),
  output: flag('--output <format>', 'by default table on a terminal, else json', {
    short: 'o',
    choices: FORMATS,
  }),
  fields: flag('--fields <names>', 'only these fields, separated by commas'),
  color: flag('--color <when>', 'use colours; auto depends on the terminal', {
    choices: ['auto', 'always', 'never'],
  }),
  input: flag('--no-input', 'never ask; missing input is an error'),
  quiet: flag(
    '--quiet',
    'no notices and no progress; on a terminal, ids instead of tables; warnings and errors stay',
    { short: 'q' },
  ),
  noReveal: flag('--no-reveal', 'show no data and no new keys, for agents; see docs/agents.md'),
  yes: flag('--yes', 'do not ask before a destructive command', { short: 'y' }),
}

export const ALL_SETTINGS: readonly Setting[] = Object.values(SETTINGS)
