/** The flags of `coffer serve`, and the environment variable of each. */
import { nameVariable } from '../../../global-flags.js'
import type { CommandOption } from '../../task.js'

export const BODY_LIMIT = [
  '--body-limit <size>',
  'the largest request body, such as 64KiB or 4MiB (default 1MiB)',
] as const

export const SERVE_OPTIONS: readonly CommandOption[] = [
  ['--port <number>', 'the port; 0 selects a free one (default 4010)'],
  ['--host <address>', 'the address to listen on (default: both loopback addresses)'],
  ['--allow-remote', 'accept other machines; required for any address but loopback'],
  ['--ephemeral', 'serve an empty vault in memory, lost when the server stops'],
  ['--seed <file>', 'the contents of the vault in memory; see coffer seed apply --help'],
  ['--demo', 'serve the vault in .coffer-demo, created with sample data the first time'],
  ['--migrate', 'bring the tables of a store (--store) to the version of this program first'],
  ['--starter-apps', 'create the missing ones of a management, a private and a public application'],
  BODY_LIMIT,
  ['--rate-limit <rate>', 'the limit per application, then 429: 100/s, 600/m or 1000/h'],
  ['--no-cors', 'refuse calls from web pages of other origins'],
  ['--log <format>', 'the access log on standard error: text, json or none'],
  ['--test-controls', 'let tests of this vault set faults and see requests; see coffer control --help'],
  ['--exit-with-parent', 'stop when standard input, a pipe, ends'],
  ['--tls-cert <file>', 'use TLS with this certificate (PEM)'],
  ['--tls-key <file>', 'the private key of the certificate (PEM)'],
]

export function nameServeVariable(flag: string): string {
  return nameVariable(flag, 'COFFER_SERVE_')
}
