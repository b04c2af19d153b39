import {
  anyJson,
  arrayOf,
  boolean,
  count,
  object,
  text,
  textMap,
  texts,
  uuid,
} from '../../framework/output.js'
import { ROW_FORMATS } from '../../global-flags.js'
import { VERSION } from '../../version.js'
import { TOPIC_NAMES } from '../context.js'
import { write } from '../output/terminal.js'
import type { TerminalCommand } from '../task.js'

const BODY_LIMIT = [
  '--body-limit <size>',
  'the largest request body, such as 64KiB or 4MiB (default 1MiB)',
] as const

const packageOutput = object({
  package: text,
  'version?': text,
  'bytes?': count,
  state: text,
  'reason?': text,
})

const init: TerminalCommand = {
  name: 'init',
  summary: 'Create an encrypted vault here, or at --vault',
  options: [
    ['--name <text>', 'the name of the first tenant'],
    ['--passphrase', 'open the vault with a passphrase instead of a key file'],
    ['--starter-apps', 'create an application of each type and print their keys, only once'],
  ],
  examples: ['coffer init', 'coffer init --vault support --name support --key-file support.key'],
  prints: {
    result: object({
      vault: text,
      'directory?': text,
      'store?': text,
      'key_file?': text,
      tenant: object({ id: uuid, name: text, owner_id: uuid }),
      'applications?': {
        type: 'object',
        additionalProperties: object({ id: uuid, 'key?': text, 'name?': text }),
      },
    }),
  },
  run: async (...line) => (await import('./init.js')).initVault(...line),
}

export const TERMINAL_COMMANDS: readonly TerminalCommand[] = [
  init,
  { ...init, name: 'vault init' },
  {
    name: 'serve',
    isAlone: true,
    summary: 'Serve the vault over HTTP',
    options: [
      ['--port <number>', 'the port; 0 selects a free one (default 4010)'],
      ['--host <address>', 'the address to listen on (default: both loopback addresses)'],
      ['--allow-remote', 'accept other machines; required for any address but loopback'],
      ['--ephemeral', 'serve an empty vault in memory, lost when the server stops'],
      [
        '--seed <file>',
        'the contents of the vault in memory: a JSON or YAML file, or a directory of these files; see coffer seed apply --help',
      ],
      [
        '--test-keys',
        'accept API keys of any form in the seed of a vault in memory, also from other machines',
      ],
      ['--watch', 'load the seed again when its file changes; the vault is reset to the new seed'],
      ['--demo', 'serve the vault in .coffer-demo, created with sample data the first time'],
      ['--starter-apps', 'create the missing ones of these applications: management, private, public'],
      BODY_LIMIT,
      [
        '--rate-limit <rate>',
        'limit the requests of each application: 100/s, 600/m or 1000/h; more requests are answered with 429',
      ],
      ['--no-cors', 'refuse calls from web pages of other origins'],
      ['--log <format>', 'the access log on standard error: text (default), json (with -o json) or none'],
      [
        '--log-sink <address>',
        'also send the audit log to https://… (lines of JSON), syslog+tcp://… or syslog+udp://…; see docs/security.md',
      ],
      [
        '--test-controls',
        'allow tests of this vault to set faults and see requests; see coffer control --help',
      ],
      [
        '--control-key-file <file>',
        'open the control plane to other machines that send this key; see docs/containers.md',
      ],
      ['--control-stored', 'open the control plane of a stored vault to other machines too'],
      ['--workers <number>', 'the number of processes that answer, with PostgreSQL (default 1)'],
      [
        '--run <command>',
        'run this command with COFFER_URL and keys; the server stops when the command ends',
      ],
      ['--exit-with-parent', 'stop when the process that started the server ends'],
      ['--tls-cert <file>', 'use TLS with this certificate (PEM)'],
      ['--tls-key <file>', 'the private key of the certificate (PEM)'],
    ],
    examples: [
      'coffer serve --port 0 & sleep 1; coffer token list; kill $!; wait',
      "coffer serve --ephemeral --run 'coffer token list'",
      'coffer serve --port 0 --ephemeral -o json --log none > server.json & sleep 1; cat server.json; kill $!; wait',
    ],
    prints: { text: ['json'] },
    run: async (...line) => (await import('./serve/serve.js')).serve(...line),
  },
  {
    name: 'token export',
    summary: 'Write all tokens as NDJSON, a JSON array, or CSV.',
    details:
      'The name of the file decides the format; the default is NDJSON. Data is masked as in `coffer token list`, unless\n' +
      '--reveal is given. `coffer token import` reads files that were exported with --reveal. For CSV, --fields chooses\n' +
      'columns. In CSV, cells that a spreadsheet would take for formulas begin with an apostrophe. An import of CSV reads\n' +
      'numbers as text, except in columns of expiration months and years.',
    arguments: [
      ['[file]', 'a new file, which only you can read; without a file, or with -, standard output'],
    ],
    options: [
      ['--format <format>', 'ndjson, json or csv; default: by the name of the file, else ndjson'],
      ['--reveal', 'write data in plaintext'],
      ['--type <text>', 'only tokens of this type', true],
      ['--container <text>', 'only tokens in this container or below it', true],
      ['--metadata <key=value>', 'only tokens with this metadata', true],
    ],
    examples: ['coffer token export tokens.csv', 'coffer token export --type card --reveal | wc -l'],
    prints: { text: ROW_FORMATS, itemsOf: 'token list-after' },
    run: async (...line) => (await import('../bulk/export.js')).exportTokens(...line),
  },
  {
    name: 'reactor link',
    summary: 'Link npm packages of a project for serve --modules',
    details:
      'Bundles each package that `dependencies` of package.json names, or only the packages given, with the esbuild of the\n' +
      'project. Writes one file for each package, and the list of their versions, into the directory of --out. Downloads\n' +
      'nothing. If a package cannot be linked, the reason is printed, and the exit code is 1.',
    arguments: [
      ['<directory>', 'the project: package.json and node_modules'],
      ['[package...]', 'names of packages; by default all of dependencies'],
    ],
    options: [['--out <directory>', 'where to write; created if missing']],
    examples: [`echo '{"dependencies":{}}' > package.json && coffer reactor link . --out modules`],
    prints: { result: arrayOf(packageOutput) },
    run: async (...line) => (await import('./reactor-packages.js')).linkPackages(...line),
  },
  {
    name: 'reactor check',
    summary: 'Check code and its npm packages before a deployment',
    details:
      'Links each package that the code requires, as a server with --dependencies does, then compiles and loads the code\n' +
      'with the packages in the sandbox. Does not call the function. The exit code is 1 if something is wrong.',
    arguments: [['<file>', 'the code']],
    options: [['--package-json <file>', 'package.json of the project (default: ./package.json)']],
    examples: [
      `coffer formula get greet --fields code -o value > greet.js && echo '{}' > package.json && coffer reactor check greet.js`,
    ],
    prints: { result: arrayOf(packageOutput) },
    run: async (...line) => (await import('./reactor-packages.js')).checkCode(...line),
  },
  {
    name: 'reactor dev',
    summary: 'Run a file as a reactor or transform; with --watch, run it again on every save.',
    details:
      'The code runs as in a vault, with its limits, but without a client. Expressions in the arguments are replaced\n' +
      'with the data of tokens, as in coffer reactor react. The tokens come from the vault, or from --seed. Without expressions,\n' +
      'no vault is opened. The file may be TypeScript, which the esbuild of its project compiles. The code may require the\n' +
      'packages of this project. Console output and errors go to standard error. Errors contain the lines of the file. The result\n' +
      'goes to standard output.',
    arguments: [['<file>', 'formula.js or formula.ts']],
    options: [
      ['--args <json>', 'the arguments: JSON, key=value, or @args.json to read a file (repeatable)', true],
      ['--configuration <json>', 'the configuration, as JSON or key=value (repeatable)', true],
      ['--image <name>', 'node-bt (default), node22 or node24'],
      [
        '--transform <direction>',
        'run a transform of a proxy: request or response; the message is in --args: {"body":…,"headers":…}',
      ],
      [
        '--seed <file>',
        'a seed, as a JSON or YAML file; expressions in the arguments use the tokens of this seed',
      ],
      ['--watch', 'run again when the file is saved, until Ctrl-C'],
    ],
    examples: [
      `echo 'module.exports = async ({ args }) => ({ raw: { hello: args.name } })' > greet.js && coffer reactor dev greet.js --args name=Ada`,
    ],
    prints: { result: anyJson('What the code returned.') },
    run: async (...line) => (await import('./reactor-dev/dev.js')).developReactor(...line),
  },
  {
    name: 'seed diff',
    summary: 'Compare a seed with your tenant, or with a tenant on a server.',
    details:
      'The order of records is not compared, and neither are attributes that the server sets. A list that the seed does not have\n' +
      'is not compared. Values are never printed. With --url, the command reads the tenant like coffer pull, so tokens and\n' +
      'people are not compared. Exit code 11 if something differs.',
    arguments: [
      ['<file>', 'the seed as JSON, or as YAML in a file .yaml or .yml; - reads JSON from standard input'],
    ],
    options: [
      ['--reveal', 'compare data in plaintext, and the configuration of reactors and proxies'],
      ['--api-key-file <file>', 'with --url: the first line is a management key'],
    ],
    examples: ['coffer seed export --reveal > seed.json && coffer seed diff seed.json'],
    prints: { result: arrayOf(object({ list: text, name: text, difference: text, 'attributes?': texts })) },
    run: async (...line) => (await import('./seed-diff.js')).diffSeed(...line),
  },
  {
    name: 'seed schema',
    summary: 'Print the JSON Schema of seeds, for editors.',
    details:
      'Name the file in the property $schema of a seed. For YAML, begin with: # yaml-language-server: $schema=FILE',
    examples: ['coffer seed schema > seed.schema.json'],
    prints: { text: ['json'] },
    run: async (context) => (await import('./seed-schema.js')).printSeedSchema(context),
  },
  {
    name: 'webhook listen',
    summary: 'Print events as they happen, and send them to an address of your machine.',
    details:
      'Creates a webhook, and deletes it at Ctrl-C. This command takes the events from the vault or server and sends them itself,\n' +
      'signed like all events. Therefore the server needs no --allow-net, and need not reach the address. An event without a\n' +
      '2xx answer is sent again later. With --url, the command needs the control key in COFFER_CONTROL_KEY.',
    options: [
      [
        '--forward-to <url>',
        'send the events here, such as http://localhost:3000/events or localhost:3000/events',
      ],
      ['--event <type>', 'only this type of event; repeatable (default: all types)', true],
      ['--print-key', 'print the public key that verifies the signatures (PEM), and end'],
    ],
    examples: ['coffer webhook listen --print-key'],
    prints: { text: ['ndjson', 'json', 'table'] },
    run: async (...line) => (await import('./listen.js')).listenToWebhooks(...line),
  },
  {
    name: 'pull',
    summary: 'Write the configuration of a tenant on a server as a seed',
    details:
      'Reads the settings, applications with their rules, formulas, reactors, proxies and webhooks of the tenant at --url, page\n' +
      'by page. Reads no tokens and no people, and writes no keys. The command needs a management key, and lists what\n' +
      'this key may not read. The key is read from --api-key-file, --api-key-stdin, COFFER_API_KEY or a prompt. Redirects are not followed.',
    arguments: [
      [
        '[file]',
        'a new file, which only you can read; .yaml or .yml for YAML; without a file, standard output',
      ],
    ],
    options: [
      ['--dry-run', 'print the requests, and send nothing'],
      ['--api-key-file <file>', 'the first line is the management key'],
    ],
    examples: ['coffer pull --url https://api.example.com --prefix bt --dry-run'],
    prints: { text: ['json', 'table'] },
    run: async (...line) => (await import('./pull.js')).pull(...line),
  },
  {
    name: 'conform',
    summary: 'Compare a server with the published cases of Coffer',
    details:
      'Runs the cases of fixtures/operations that are safe on the server at --url, and prints where its answers differ. Each run\n' +
      'uses ids of its own, changes only records that it has created, and deletes them, also after Ctrl-C. Use a tenant for\n' +
      'tests and a management key with all permissions. The key is read from --api-key-file, --api-key-stdin, COFFER_API_KEY\n' +
      'or a prompt. Exit code 12 if answers differ. If a record could not be deleted, a warning contains the command for it.',
    options: [
      ['--dry-run', 'list the cases that run and the cases that are left out, and send nothing'],
      ['--markdown', 'print the report as Markdown'],
      ['--only <file>', 'only the cases of this file of fixtures/operations, such as tokens'],
      ['--api-key-file <file>', 'the first line is the management key'],
    ],
    examples: ['coffer conform --dry-run --only tokens'],
    prints: { text: ['json', 'table'] },
    run: async (...line) => (await import('./conform/conform.js')).conform(...line),
  },
  {
    name: 'doctor',
    summary: 'Examine this machine and the vault, and say what to do',
    details:
      'Checks Node, permissions, the lock, the vault, its log and the confinement of reactor code. Sends nothing.\n' +
      'Exit code 1 if something is wrong.',
    examples: ['coffer doctor'],
    prints: { result: arrayOf(object({ check: text, state: text, found: text, 'advice?': text })) },
    run: async (context) => (await import('./doctor.js')).examine(context),
  },
  {
    name: 'scan',
    summary: 'Find token values in plaintext in files',
    details:
      'Takes each text and number of at least 6 bytes from the data of tokens, and looks for it in the files: as it is, as digits\n' +
      'with separators, in base64 (on one line), URL encoding and JSON escapes. If a value has several lines, only the longest\n' +
      'line is looked for. A value or line of more than 1,024 bytes is found by its first 1,024 bytes.\n' +
      'Not found: other case, other Unicode normal forms, HTML entities, UTF-16, compressed files, and letters and digits in\n' +
      'groups, as an IBAN may be written. Tokens with equal values have a row each.\n' +
      'The part of a value that the mask of its token shows is skipped.\n' +
      'Prints the id of the token, the file and the line, never a value. Exit code 10 if something is found. With the key of an\n' +
      'application, the command finds the values that the application may see. Each token is read in plaintext, and\n' +
      '`coffer log reveals` counts these reads.',
    arguments: [['<path...>', 'files, or directories with everything below; - reads standard input']],
    examples: ['coffer scan .coffer-demo/vault', "echo 'nothing to see' | coffer scan -"],
    prints: { result: arrayOf(object({ id: text, file: text, line: count })) },
    run: async (...line) => (await import('./scan.js')).scan(...line),
  },
  {
    name: 'mcp',
    isAlone: true,
    summary: 'Serve the vault to an agent, as tools of MCP',
    details:
      'The agent acts as the application whose key is in COFFER_API_KEY or in the profile, with the tools that its permissions\n' +
      'allow. Without --allow-reveal, the agent sees no plaintext: this is no-reveal mode. See docs/agents.md.',
    options: [
      ['--tools <nouns>', 'only operations of these nouns, separated by commas: token,proxy'],
      ['--read-only', 'only operations that change nothing'],
      ['--allow-reveal', 'show the agent what the rules of the application reveal'],
      ['--confirm', 'ask the person before calls of proxies and reactors and before deletions'],
    ],
    examples: [
      'coffer app create --agent helper --fields key -o value | coffer profile set helper api-key && coffer mcp --profile helper < /dev/null',
    ],
    prints: { text: [] },
    run: async (...line) => (await import('./mcp/mcp.js')).serveMcp(...line),
  },
  {
    name: 'openapi',
    summary: 'Print the OpenAPI document of the HTTP API',
    options: [['--control', 'the document of the control plane, which test servers have'], BODY_LIMIT],
    examples: ['coffer openapi', 'coffer openapi --control > control.json'],
    prints: { text: ['json'] },
    run: async (...line) => (await import('./serve/serve-options.js')).printOpenApi(...line),
  },
  {
    name: 'completion',
    summary: 'Print a completion script for your shell',
    arguments: [['<shell...>', 'bash, zsh, fish or powershell']],
    details:
      'For the current shell: eval "$(coffer completion bash)", or coffer completion fish | source.\n' +
      'In PowerShell, pipe the script to Out-String and then to Invoke-Expression.',
    examples: ['coffer completion bash > coffer.bash', 'coffer completion fish > coffer.fish'],
    prints: { text: [] },
    run: async (context, args) => (await import('./help/completion.js')).printCompletion(context, args),
  },
  {
    name: 'help',
    summary: 'Print help for a command or a topic',
    arguments: [['[words...]', `a command, or one of: ${TOPIC_NAMES.join(', ')}`]],
    options: [['--man', 'a manual page, in the format of man']],
    details: 'With --json, prints all commands with their flags, types, examples, permissions and outputs.',
    examples: [
      'coffer help token create',
      'coffer help expressions',
      'coffer help --json',
      'coffer help --man',
    ],
    prints: { text: ['json'] },
    run: async (...line) => (await import('./help/help.js')).printHelp(...line),
  },
  {
    name: 'version',
    summary: 'Print the version',
    examples: ['coffer version'],
    prints: { text: [] },
    run: async ({ terminal }) => {
      await write(terminal.stdout, `${VERSION}\n`)
    },
  },
  {
    name: 'profile set',
    summary: 'Store a setting in a profile; a profile that does not exist is created.',
    details:
      'A profile contains defaults for global flags (coffer help flags) and perhaps an API key. Flags and variables override a profile.',
    arguments: [
      ['<profile>', 'the name of the profile'],
      ['<setting>', 'the name of a global flag without dashes, such as vault, url or tenant; or api-key'],
      ['[value]', 'the value; @FILE reads a file, - reads standard input; without a value, a prompt asks'],
    ],
    examples: [
      'coffer profile set support vault ~/vaults/support',
      'coffer app key create "starter private" --fields key -o value | coffer profile set support api-key',
    ],
    prints: { result: object({ name: text, settings: textMap }) },
    run: async (context, args) => (await import('./profile.js')).setInProfile(context, args),
  },
  {
    name: 'profile list',
    summary: 'List your profiles and their settings.',
    examples: ['coffer profile list'],
    prints: { result: arrayOf(object({ name: text, is_used: boolean, settings: textMap })) },
    run: async (context) => (await import('./profile.js')).listProfiles(context),
  },
  {
    name: 'profile schema',
    summary: 'Print the JSON Schema of the file of profiles, config.json, for editors.',
    examples: ['coffer profile schema > config.schema.json'],
    prints: { text: ['json'] },
    run: async (context) => (await import('./profile.js')).printConfigurationSchema(context),
  },
  {
    name: 'profile use',
    summary: 'Choose the profile to use from now on, or none.',
    arguments: [['[profile]', 'the name of the profile; without a name, no profile is used']],
    examples: [
      'coffer profile set support vault .coffer-demo && coffer profile use support',
      'coffer profile use',
    ],
    prints: 'notices',
    run: async (context, args) => (await import('./profile.js')).useProfile(context, args),
  },
  {
    name: 'profile delete',
    summary: 'Delete a profile.',
    arguments: [['<profile>', 'the name of the profile']],
    examples: ['coffer profile set support vault .coffer-demo && coffer profile delete support'],
    prints: 'notices',
    run: async (context, args) => (await import('./profile.js')).deleteProfile(context, args),
  },
]

export const TERMINAL_NOUNS = { profile: 'Manage named sets of settings' } as const
