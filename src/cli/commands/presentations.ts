/** What the commands of some operations add to their declarations. The code of each is loaded when it runs. */
import type { AnyOperation } from '../../framework/operation.js'
import { setSetting } from '../../operations/config/settings.js'
import { createFormula, updateFormula } from '../../operations/formula/formula.js'
import { checkFormulaCode, installFormulas } from '../../operations/formula/owner-formulas.js'
import { acceptInvitationLink } from '../../operations/invite/accept-invitation.js'
import { createInvitation, resendInvitation } from '../../operations/invite/invite.js'
import { readOutbox } from '../../operations/invite/outbox.js'
import { tailLog, verifyLog } from '../../operations/log/log.js'
import { developReactor, listReactorRuns } from '../../operations/reactor/owner-reactors.js'
import { createTenant, listTenants, useTenant } from '../../operations/tenant/owner-tenants.js'
import { deleteTenant } from '../../operations/tenant/tenant.js'
import { updateToken } from '../../operations/token/token.js'
import { restoreVault } from '../../operations/vault/offline.js'
import { describeVault, verifyVault } from '../../operations/vault/vault.js'
import type { Presentation } from '../context/task.js'

const FOLLOW = ['-f, --follow', 'also print new entries, until Ctrl-C'] as const
const loadTenant = async () => import('./tenant.js')

const PRESENTATIONS = new Map<AnyOperation, Presentation>([
  [updateToken, { load: async () => (await import('./token.js')).update }],
  [createFormula, { load: async () => (await import('./formula.js')).store }],
  [updateFormula, { load: async () => (await import('./formula.js')).store }],
  [
    checkFormulaCode,
    {
      arguments: [['<file>', 'formula.js, or formula.json']],
      options: [['--contract <file>', 'a formula as JSON, for its configuration and request_parameters']],
      load: async () => (await import('./formula.js')).check,
    },
  ],
  [
    installFormulas,
    {
      arguments: [
        [
          '[name]',
          'card-alias, matching-hmac, json-webhook, or the path of a formula as JSON; default: all included ones',
        ],
      ],
      load: async () => (await import('./formula.js')).install,
    },
  ],
  [
    developReactor,
    {
      arguments: [['<file>', 'formula.js']],
      options: [
        ['--args <json>', 'the arguments, as JSON or key=value: @args.json (repeatable)', true],
        ['--configuration <json>', 'the configuration, as JSON or key=value (repeatable)', true],
        ['--verbose', 'print how the code is confined on this machine'],
        ['--watch', 'run again when the file is saved, until Ctrl-C'],
      ],
      load: async () => (await import('./reactor-dev.js')).develop,
    },
  ],
  [
    listReactorRuns,
    {
      options: [FOLLOW],
      empty: 'The reactor has not run yet.',
      load: async () => (await import('./reactor.js')).logs,
    },
  ],
  [
    tailLog,
    { options: [FOLLOW], empty: 'The log is empty.', load: async () => (await import('./log.js')).tail },
  ],
  [verifyLog, { load: async () => (await import('./log.js')).verify }],
  [createTenant, { load: async () => (await loadTenant()).create }],
  [
    listTenants,
    {
      empty: 'This vault has no tenant. Create one: coffer tenant create NAME',
      load: async () => (await loadTenant()).list,
    },
  ],
  [useTenant, { load: async () => (await loadTenant()).use }],
  [deleteTenant, { load: async () => (await loadTenant()).remove }],
  [createInvitation, { load: async () => (await import('./invite.js')).mail }],
  [resendInvitation, { load: async () => (await import('./invite.js')).mail }],
  [
    readOutbox,
    {
      empty: 'No mail yet. Invite a person: coffer invite create --help',
      load: async () => (await import('./invite.js')).outbox,
    },
  ],
  [
    acceptInvitationLink,
    {
      arguments: [['[link]', 'the link in the mail, or its token; - reads standard input']],
      options: [
        ['--first-name <text>', 'their first name'],
        ['--last-name <text>', 'their last name'],
      ],
      load: async () => (await import('./invite.js')).accept,
    },
  ],
  [
    setSetting,
    {
      arguments: [
        ['<name>', 'see coffer config list'],
        ['[value]', 'the value; @FILE reads a file, - standard input; without it, a prompt asks'],
      ],
      load: async () => (await import('./config.js')).set,
    },
  ],
  [describeVault, { load: async () => (await import('./vault.js')).status }],
  [verifyVault, { load: async () => (await import('./vault.js')).verify }],
  [restoreVault, { load: async () => (await import('./vault.js')).restore }],
])

const BY_NAME = new Map([...PRESENTATIONS].map(([{ name }, presentation]) => [name, presentation]))

export function findPresentation({ name }: AnyOperation): Presentation {
  return BY_NAME.get(name) ?? {}
}
