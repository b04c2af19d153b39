/** The registry of all operations, in the order of the help and the API reference. */
import type { Operation } from '../framework/operation.js'
import { createRegistry } from '../framework/registry.js'
import type { Answer } from '../framework/schema.js'
import * as application from './application/application.js'
import * as settings from './config/settings.js'
import * as formula from './formula/formula.js'
import { checkFormulaCode, installFormulas } from './formula/owner-formulas.js'
import { acceptInvitationLink } from './invite/accept-invitation.js'
import * as invite from './invite/invite.js'
import { readOutbox } from './invite/outbox.js'
import * as log from './log/log.js'
import * as member from './member/member.js'
import { developReactor, listReactorRuns } from './reactor/owner-reactors.js'
import { react } from './reactor/react.js'
import * as reactor from './reactor/reactor.js'
import { createTenant, listTenants, useTenant } from './tenant/owner-tenants.js'
import * as tenant from './tenant/tenant.js'
import * as association from './token/association.js'
import { searchTokens } from './token/search.js'
import * as token from './token/token.js'
import { tokenize } from './token/tokenize.js'
import * as offline from './vault/offline.js'
import * as vault from './vault/vault.js'

const nouns = [
  {
    name: 'token',
    summary: 'Store values and get tokens for them',
    operations: [
      token.createToken,
      token.listTokens,
      token.getToken,
      token.updateToken,
      token.deleteToken,
      searchTokens,
      tokenize,
      association.linkTokens,
      association.unlinkTokens,
      association.createChild,
      association.listChildren,
    ],
  },
  {
    name: 'app',
    summary: 'Manage applications: API keys, permissions and access rules',
    operations: [
      application.createApplication,
      application.listApplications,
      application.getApplication,
      application.updateApplication,
      application.deleteApplication,
      application.regenerateKey,
      application.whoami,
      application.listPermissions,
    ],
  },
  {
    name: 'formula',
    summary: 'Define the code that reactors run',
    operations: [
      formula.createFormula,
      formula.listFormulas,
      formula.getFormula,
      formula.updateFormula,
      formula.deleteFormula,
      checkFormulaCode,
      installFormulas,
    ],
  },
  {
    name: 'reactor',
    summary: 'Run code on the data of tokens',
    operations: [
      reactor.createReactor,
      reactor.listReactors,
      reactor.getReactor,
      reactor.updateReactor,
      reactor.deleteReactor,
      react,
      listReactorRuns,
      developReactor,
    ],
  },
  {
    name: 'log',
    summary: 'Read and verify the audit log',
    operations: [log.listLogs, log.listEntityTypes, log.tailLog, log.verifyLog],
  },
  {
    name: 'tenant',
    summary: 'Manage tenants and report usage',
    operations: [
      tenant.getTenant,
      tenant.updateTenant,
      tenant.deleteTenant,
      tenant.reportUsage,
      createTenant,
      listTenants,
      useTenant,
    ],
  },
  {
    name: 'member',
    summary: 'List and remove members of your tenant',
    operations: [member.listMembers, member.deleteMember],
  },
  {
    name: 'invite',
    summary: 'Invite people to your tenant',
    operations: [
      invite.createInvitation,
      invite.listInvitations,
      invite.getInvitation,
      invite.resendInvitation,
      invite.deleteInvitation,
      readOutbox,
      acceptInvitationLink,
    ],
  },
  {
    name: 'vault',
    summary: 'Maintain the vault: verify, back up, restore, change keys',
    operations: [
      vault.describeVault,
      vault.verifyVault,
      vault.compactVault,
      vault.backUpVault,
      offline.restoreVault,
      offline.changeKeys,
      offline.changePassphrase,
      offline.manageKeys,
      offline.showHolder,
      vault.readHeader,
      vault.replaceHeader,
      offline.noteRekey,
    ],
  },
  {
    name: 'config',
    summary: 'Change the settings of the vault',
    operations: [settings.listSettings, settings.getSetting, settings.setSetting, settings.unsetSetting],
  },
]

export const registry = createRegistry(nouns)

type Declared = (typeof nouns)[number]['operations'][number]

/** The type of the answer of the operation with this name. */
export type ResultOf<Name extends string> =
  Extract<Declared, { name: Name }> extends Operation<infer _I, infer O, infer _C, Name> ? Answer<O> : unknown
