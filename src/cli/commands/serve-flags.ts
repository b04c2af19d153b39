/** The flags of `serve` and `openapi`, apart from what reads them so that parsing a line loads no server. */

const PREFIX = ['--prefix <name>', 'the first part of the names of its headers (default svc)'] as const
const BODY_LIMIT = ['--body-limit <size>', 'the largest body, such as 64KiB or 4MiB (default 1MiB)'] as const

export const SERVE_FLAGS: readonly (readonly [flag: string, description: string])[] = [
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
]

export const OPENAPI_FLAGS: readonly (readonly [flag: string, description: string])[] = [PREFIX, BODY_LIMIT]

export const SERVE_EXAMPLES = `Examples:
  coffer serve --ephemeral
  coffer serve --port 0 --ephemeral --output json --log none
  coffer serve --starter-apps
  coffer serve --allow-host vault.test`
