/** Arguments, options and hooks that commands add to the declarations of operations. Each hook is loaded when it runs. */
import type { AnyOperation } from '../../framework/operation.js'
import type { OperationName } from '../../operations/all.js'
import type { Presentation } from '../task.js'

const FOLLOW = ['-f, --follow', 'also print new entries, until Ctrl-C'] as const
const STORES_CODE: Presentation = { load: async () => (await import('./reactor/formula.js')).store }
const loadTenant = async () => import('./tenant.js')

const PRESENTATIONS: Partial<Record<OperationName, Presentation>> = {
  'app key list': { empty: 'No such keys. Create one: coffer app key create --help' },
  'token import': {
    arguments: [['[file]', 'the rows; without it, or -, standard input']],
    options: [
      ['--format <format>', 'ndjson, json or csv'],
      [
        '--map <column=path>',
        'of CSV: where a column goes, such as number=data.number; nowhere: notes= (repeatable)',
        true,
      ],
      ['--type <text>', 'the type of rows that have none'],
      ['--results <file>', 'write a line of JSON for each row: its line, and its id or why it was refused'],
      ['--continue-on-error', 'leave out rows that are refused'],
      ['--resume <file>', 'keeps how far the run came; started again with it, the run goes on from there'],
      ['--dry-run', 'tell what would become of the rows, and write nothing'],
    ],
    servedBy: 'token tokenize',
    load: async () => (await import('../bulk/import.js')).importRows,
  },
  'token update': { load: async () => (await import('./token.js')).update },
  'formula create': STORES_CODE,
  'formula update': STORES_CODE,
  'reactor create': STORES_CODE,
  'reactor update': STORES_CODE,
  'reactor patch': STORES_CODE,
  'formula check': {
    arguments: [['<file>', 'formula.js, or formula.json']],
    options: [['--contract <file>', 'a formula as JSON, for its configuration and request_parameters']],
    load: async () => (await import('./reactor/formula.js')).check,
  },
  'formula install': {
    arguments: [
      [
        '[name]',
        'card-alias, matching-hmac, json-webhook, or the path of a formula as JSON; default: all included ones',
      ],
    ],
    load: async () => (await import('./reactor/formula.js')).install,
  },
  'reactor dev': {
    arguments: [['<file>', 'formula.js']],
    options: [
      ['--args <json>', 'the arguments, as JSON or key=value: @args.json (repeatable)', true],
      ['--configuration <json>', 'the configuration, as JSON or key=value (repeatable)', true],
      ['--verbose', 'print how the code is confined on this machine'],
      ['--watch', 'run again when the file is saved, until Ctrl-C'],
    ],
    load: async () => (await import('./reactor/reactor-dev.js')).develop,
  },
  'reactor logs': {
    options: [FOLLOW],
    empty: 'The reactor has not run yet.',
    load: async () => (await import('./reactor/reactor.js')).logs,
  },
  'log tail': {
    options: [FOLLOW],
    empty: 'The log is empty.',
    load: async () => (await import('./log.js')).tail,
  },
  'log verify': { load: async () => (await import('./log.js')).verify },
  'tenant create': { load: async () => (await loadTenant()).create },
  'tenant list': {
    empty: 'This vault has no tenant. Create one: coffer tenant create NAME',
    load: async () => (await loadTenant()).list,
  },
  'tenant use': { load: async () => (await loadTenant()).use },
  'tenant delete': { load: async () => (await loadTenant()).remove },
  'invite create': { load: async () => (await import('./invite.js')).mail },
  'invite resend': { load: async () => (await import('./invite.js')).mail },
  'invite outbox': {
    empty: 'No mail yet. Invite a person: coffer invite create --help',
    load: async () => (await import('./invite.js')).outbox,
  },
  'invite accept': {
    arguments: [['[link]', 'the link in the mail, or its token; - reads standard input']],
    options: [
      ['--first-name <text>', 'their first name'],
      ['--last-name <text>', 'their last name'],
    ],
    load: async () => (await import('./invite.js')).accept,
  },
  'config set': {
    arguments: [
      ['<name>', 'see coffer config list'],
      ['[value]', 'the value; @FILE reads a file, - standard input; without it, a prompt asks'],
    ],
    load: async () => (await import('./config.js')).set,
  },
  'seed apply': {
    arguments: [['<file>', 'the seed as JSON; - reads standard input']],
    load: async () => (await import('./seed.js')).apply,
  },
  'vault status': { load: async () => (await import('./vault.js')).status },
  'vault verify': { load: async () => (await import('./vault.js')).verify },
}

export function findPresentation({ name }: AnyOperation): Presentation {
  return PRESENTATIONS[name as OperationName] ?? {}
}
