/** Every operation of the product, in the order that help and reference show them. */

import { createRegistry } from '../framework/registry.js'
import * as application from './application/application.js'
import * as formula from './formula/formula.js'
import * as invite from './invite/invite.js'
import * as log from './log/log.js'
import * as member from './member/member.js'
import { react } from './reactor/react.js'
import * as reactor from './reactor/reactor.js'
import * as tenant from './tenant/tenant.js'
import * as association from './token/association.js'
import { searchTokens } from './token/search.js'
import * as token from './token/token.js'
import { tokenize } from './token/tokenize.js'

export const operations = [
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
  application.createApplication,
  application.listApplications,
  application.getApplication,
  application.updateApplication,
  application.deleteApplication,
  application.regenerateKey,
  application.whoami,
  application.listPermissions,
  formula.createFormula,
  formula.listFormulas,
  formula.getFormula,
  formula.updateFormula,
  formula.deleteFormula,
  reactor.createReactor,
  reactor.listReactors,
  reactor.getReactor,
  reactor.updateReactor,
  reactor.deleteReactor,
  react,
  log.listLogs,
  log.listEntityTypes,
  tenant.getTenant,
  tenant.updateTenant,
  tenant.deleteTenant,
  tenant.reportUsage,
  member.listMembers,
  member.deleteMember,
  invite.createInvitation,
  invite.listInvitations,
  invite.getInvitation,
  invite.resendInvitation,
  invite.deleteInvitation,
]

export const registry = createRegistry(operations)
