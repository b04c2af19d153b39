import type { AnyOperation } from '../../framework/operation.js'
import type { OperationName } from '../../operations/all.js'
import type { Presentation } from '../task.js'

const FOLLOW = ['-f, --follow', 'also print new entries, until Ctrl-C'] as const
const loadHooks = async () => import('./hooks.js')
const loadReactor = async () => import('./reactor.js')
const loadLog = async () => import('./log.js')

const tokens: Presentation = {
  options: [['--wide', 'a table with whole ids, times and data']],
  layout: { optional: ['containers', 'created'] },
  loadSummary: async () => (await import('../output/token-rows.js')).summarizeTokens,
}

const PRESENTATIONS: Partial<Record<OperationName, Presentation>> = {
  'app create': {
    options: [
      ['--agent <name>', 'an application for coffer mcp: it stores, finds and uses tokens, and sees masks'],
    ],
    load: async () => (await loadHooks()).createAgent,
  },
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
      [
        '--resume <file>',
        'like --results; run the same command again, and it continues after the last row in this file',
      ],
      ['--dry-run', 'tell what would become of the rows, and write nothing'],
    ],
    servedBy: 'token tokenize',
    load: async () => (await import('../bulk/import.js')).importRows,
  },
  'token generate': tokens,
  'token list': tokens,
  'token list-after': tokens,
  'token search': {
    ...tokens,
    empty: 'No token matches. Search finds data by search indexes only: coffer help search',
  },
  'token search-after': tokens,
  'token children': {
    ...tokens,
    empty: 'The token has no such children. Link one: coffer token link PARENT CHILD',
  },
  'token update': { load: async () => (await loadHooks()).updateToken },
  'formula create': { load: async () => (await loadReactor()).storeFormula },
  'formula update': { load: async () => (await loadReactor()).storeFormula },
  'formula check': {
    arguments: [['<file>', 'formula.js, or formula.json']],
    load: async () => (await loadReactor()).checkFormula,
  },
  'formula install': {
    arguments: [
      ['[name]', 'card-alias, matching-hmac, json-webhook, or a formula as JSON; default: these three'],
    ],
    load: async () => (await loadReactor()).installFormulas,
  },
  'reactor dev': {
    arguments: [['<file>', 'formula.js']],
    options: [
      ['--args <json>', 'the arguments, as JSON or key=value: @args.json (repeatable)', true],
      ['--configuration <json>', 'the configuration, as JSON or key=value (repeatable)', true],
      ['--watch', 'run again when the file is saved, until Ctrl-C'],
    ],
    load: async () => (await loadReactor()).develop,
  },
  'reactor logs': {
    options: [FOLLOW],
    empty: 'The reactor has not run yet.',
    load: async () => (await loadLog()).runs,
  },
  // The message says it too.
  'log list': { layout: { optional: ['operation'] }, load: async () => (await loadLog()).named },
  'log reveals': { load: async () => (await loadLog()).named },
  'log tail': {
    layout: { optional: ['operation'] },
    options: [FOLLOW],
    empty: 'The log is empty.',
    load: async () => (await loadLog()).tail,
  },
  'log verify': { load: async () => (await loadLog()).verify },
  'tenant create': { load: async () => (await loadHooks()).createTenant },
  'tenant list': {
    empty: 'This vault has no tenant. Create one: coffer tenant create NAME',
    load: async () => (await loadHooks()).listTenants,
  },
  'tenant use': { load: async () => (await loadHooks()).useTenant },
  'tenant delete': { load: async () => (await loadHooks()).deleteTenant },
  'invite create': { load: async () => (await loadHooks()).mailInvitation },
  'invite resend': { load: async () => (await loadHooks()).mailInvitation },
  'invite outbox': {
    empty: 'No mail yet. Invite a person: coffer invite create --help',
    load: async () => (await loadHooks()).showOutbox,
  },
  'control outbox': { empty: 'No mail yet.' },
  'control not-emulated': { empty: 'No request for an area that is not emulated.' },
  'control webhooks': { empty: 'No event matches.' },
  'webhook deliveries': {
    empty: 'No event of the last 24 hours. See: coffer webhook list',
    load: async () => (await loadHooks()).showDeliveries,
  },
  'invite accept': {
    arguments: [['[link]', 'the link in the mail, or its token; - reads standard input']],
    options: [
      ['--first-name <text>', 'their first name'],
      ['--last-name <text>', 'their last name'],
    ],
    load: async () => (await loadHooks()).acceptInvitation,
  },
  'vault backup': { load: async () => (await loadHooks()).backUpVault },
  'config list': { layout: { wraps: true } },
  'config set': {
    arguments: [
      ['<name>', 'see coffer config list'],
      ['[value]', 'the value; @FILE reads a file, - standard input; without it, a prompt asks'],
    ],
    load: async () => (await loadHooks()).setSetting,
  },
  'config unset': { load: async () => (await loadHooks()).unsetSetting },
  'seed apply': {
    arguments: [['<file>', 'the seed as JSON; - reads standard input']],
    load: async () => (await loadHooks()).applySeed,
  },
  'vault status': { load: async () => (await loadHooks()).showStatus },
  'vault verify': { load: async () => (await loadHooks()).verifyVault },
}

export function findPresentation({ name }: AnyOperation): Presentation {
  return PRESENTATIONS[name as OperationName] ?? {}
}
