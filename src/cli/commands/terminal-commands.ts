/** The commands of the terminal alone, as data: no operation stands behind them. What each does loads when it is run. */
import type { TerminalCommand } from '../context/task.js'

const PREFIX = ['--prefix <name>', 'the first part of the names of its headers (default svc)'] as const
const BODY_LIMIT = ['--body-limit <size>', 'the largest body, such as 64KiB or 4MiB (default 1MiB)'] as const

const init: Omit<TerminalCommand, 'name'> = {
  summary: 'Create an encrypted vault here, or where --vault says',
  options: [
    ['--name <text>', 'the name of its first tenant'],
    ['--passphrase', 'open it with a passphrase instead of a key file'],
    ['--starter-apps', 'create an application of each type, and show their keys this once'],
  ],
  examples: ['coffer init', 'coffer init --vault ~/vaults/support --name support'],
  run: async (context, _, options) => (await import('./init.js')).initVault(context, options),
}

export const TERMINAL_COMMANDS: readonly TerminalCommand[] = [
  { name: 'init', ...init },
  { name: 'vault init', ...init },
  {
    name: 'serve',
    summary: 'Answer the same operations over HTTP',
    options: [
      ['--port <number>', 'listen here; 0 finds a free port (default 4010)'],
      ['--host <address>', 'listen on this address (default both loopback addresses)'],
      ['--allow-remote', 'let other machines in; needed for any address but loopback'],
      PREFIX,
      ['--ephemeral', 'serve an empty vault in memory, gone when it stops'],
      ['--demo', 'serve the vault in .coffer-demo, made and filled the first time'],
      ['--starter-apps', 'create a management, a private and a public application where there is none'],
      BODY_LIMIT,
      ['--rate-limit <rate>', 'answer 429 to an application beyond this: 100/s, 600/m or 1000/h'],
      ['--log <format>', 'a line for each request on standard error: text, json or none'],
      ['--tls-cert <file>', 'speak TLS with this certificate (PEM)'],
      ['--tls-key <file>', 'and this key (PEM)'],
    ],
    examples: [
      'coffer serve --ephemeral',
      'coffer serve --port 0 --ephemeral --output json --log none',
      'coffer serve --starter-apps',
      'coffer serve --allow-host vault.test',
    ],
    run: async (context, _, options) => (await import('./serve/serve.js')).serve(context, options),
  },
  {
    name: 'openapi',
    summary: 'Print the OpenAPI document of the HTTP interface',
    options: [PREFIX, BODY_LIMIT],
    examples: ['coffer openapi'],
    run: async (context, _, options) => (await import('./openapi.js')).printOpenApi(context, options),
  },
  {
    name: 'demo',
    summary: 'Show the main job on a throw-away vault',
    examples: ['coffer demo'],
    run: async (context) => (await import('./demo.js')).runDemo(context),
  },
  {
    name: 'completion',
    summary: 'Print a completion script for your shell',
    arguments: [['<shell>', 'bash, zsh or fish']],
    examples: ['eval "$(coffer completion bash)"'],
    run: async (context, [shell]) => (await import('./completion.js')).printCompletion(context, shell!),
  },
  {
    name: 'help',
    summary: 'Print help for a command or a topic',
    arguments: [['[words...]', 'a command, or one of: exit-codes, environment, expressions']],
    examples: ['coffer help token create', 'coffer help expressions'],
    run: async (context, words) => (await import('./help.js')).printHelp(context, words as string[]),
  },
  {
    name: 'profile set',
    summary: 'Set a setting of a profile; the profile is made if it is not there.',
    details:
      'A profile holds what flags and variables could say, api-key included, and counts only where they say nothing.',
    arguments: [
      ['<profile>', 'its name'],
      ['<setting>', 'the name of a flag without dashes, or api-key'],
      ['[value]', 'left out, it is asked for; @FILE is what the file holds, - is standard input'],
    ],
    examples: [
      'coffer profile set support vault ~/vaults/support',
      'coffer profile set support api-key < key.txt',
    ],
    run: async (context, [profile, setting, value]) =>
      (await import('./profile.js')).setInProfile(context, profile!, setting!, value),
  },
  {
    name: 'profile list',
    summary: 'List your profiles and what they hold.',
    examples: ['coffer profile list'],
    run: async (context) => (await import('./profile.js')).listProfiles(context),
  },
  {
    name: 'profile use',
    summary: 'Choose the profile that counts from now on, or none.',
    arguments: [['[profile]', 'its name; left out, no profile counts']],
    examples: ['coffer profile use support', 'coffer profile use'],
    run: async (context, [name]) => (await import('./profile.js')).useProfile(context, name),
  },
  {
    name: 'profile delete',
    summary: 'Delete a profile.',
    arguments: [['<profile>', 'its name']],
    examples: ['coffer profile delete support'],
    run: async (context, [name]) => (await import('./profile.js')).deleteProfile(context, name!),
  },
]

/** The groups of these commands that have no operation, with their summaries. */
export const TERMINAL_NOUNS = { profile: 'Keep settings of yours under a name' } as const
