/**
 * A presentation is the part of a command that the declaration of its operation does not contain. A noun with
 * presentations has its own file.
 */
import type { AnyOperation } from '../../framework/operation.js'
import type { OperationName } from '../../operations/all.js'
import type { Presentation, Presentations } from '../task.js'
import * as access from './access.js'
import * as app from './app.js'
import * as config from './config.js'
import * as control from './control.js'
import * as document from './document.js'
import * as formula from './formula.js'
import * as invite from './invite.js'
import * as log from './log.js'
import * as reactor from './reactor.js'
import * as seed from './seed.js'
import { storeCode } from './stored-code.js'
import * as tenant from './tenant.js'
import * as token from './token.js'
import * as updater from './updater.js'
import * as vault from './vault.js'
import * as webhook from './webhook.js'

const NOUNS = {
  access,
  app,
  config,
  control,
  document,
  formula,
  invite,
  log,
  reactor,
  seed,
  tenant,
  token,
  updater,
  vault,
  webhook,
}

const PRESENTATIONS: Presentations = Object.assign(
  {},
  ...Object.values(NOUNS).map(({ presentations }) => presentations),
)

const STORES_CODE: Presentation = { hooks: storeCode }

export function findPresentation({ name, route, input }: AnyOperation): Presentation {
  const storesCode = route !== undefined && input.properties?.code !== undefined
  return PRESENTATIONS[name as OperationName] ?? (storesCode ? STORES_CODE : {})
}
