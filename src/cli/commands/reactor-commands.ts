/** The commands around formulas and reactors that are no operations, as data; what each does loads when it is run. */
import type { OwnerCommand } from './owner-commands.js'

export const REACTOR_COMMANDS: readonly OwnerCommand[] = [
  {
    name: 'formula check',
    summary: 'Compile code without calling it, and list what it reads.',
    details:
      'The file is JavaScript, or a formula as JSON whose code is a file beside it. With a contract, which is a\n' +
      'formula as JSON too, it also lists what the code reads that the contract lacks. What is read as a whole or by a\n' +
      'computed name is listed as unknown. Needs no vault.',
    arguments: [['<file>', 'formula.js, or formula.json']],
    options: [['--contract <file>', 'a formula as JSON, for its configuration and request_parameters']],
    examples: ['coffer formula check formula.js', 'coffer formula check formula.js --contract formula.json'],
    run: async (desk, [file], flags) => (await import('./formula.js')).checkFile(desk, file!, flags),
  },
  {
    name: 'formula install',
    summary: 'Install official formulas: those that come with this program, or one of your own.',
    details: 'Every tenant sees them. One that is there already, by its name, is replaced.',
    arguments: [
      ['[name]', 'card-alias, matching-hmac, json-webhook, or the path of a formula as JSON; else all'],
    ],
    options: [],
    examples: ['coffer formula install', 'coffer formula install card-alias'],
    run: async (desk, [name]) => (await import('./formula.js')).installFormulas(desk, name),
  },
  {
    name: 'reactor logs',
    summary: 'Show the last runs of a reactor: outcome, time, memory, console.',
    details: 'At most 100 are kept. They may show what the code was given, so they are for you alone.',
    arguments: [['<id>', 'the reactor']],
    options: [
      ['-n, --number <count>', 'how many; 20 unless said'],
      ['-f, --follow', 'go on with every run that comes, until Ctrl-C'],
    ],
    examples: ['coffer reactor logs 9a1f…', 'coffer reactor logs 9a1f… -f'],
    run: async (desk, [id], flags) => (await import('./reactor.js')).showRuns(desk, id!, flags),
  },
  {
    name: 'reactor dev',
    summary: 'Run a file as a reactor would, and with --watch on every save.',
    details:
      'The same runtime and limits as in production, but no vault: arguments are taken as they are, and the code has\n' +
      'no client. What it prints is on standard error, what it returns on standard output.',
    arguments: [['<file>', 'formula.js']],
    options: [
      ['--args <json>', 'what the code is given, as JSON or key=value: @args.json (repeatable)', true],
      ['--configuration <json>', 'its configuration, as JSON or key=value (repeatable)', true],
      ['--verbose', 'say what holds the code on this machine'],
      ['--watch', 'run again whenever the file is saved, until Ctrl-C'],
    ],
    examples: [`coffer reactor dev formula.js --args '{"name":"Ada"}' --watch`],
    run: async (desk, [file], flags) => (await import('./reactor-dev.js')).develop(desk, file!, flags),
  },
]
