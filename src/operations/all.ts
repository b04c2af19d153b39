/** The registry of all operations, in the order of the help and the API reference. */
import type { Operation } from '../framework/operation.js'
import { createRegistry } from '../framework/registry.js'
import type { Answer } from '../framework/schema.js'
import { noun as app } from './nouns/app.js'
import { noun as config } from './nouns/config.js'
import { noun as formula } from './nouns/formula.js'
import { noun as invite } from './nouns/invite.js'
import { noun as log } from './nouns/log.js'
import { noun as member } from './nouns/member.js'
import { noun as reactor } from './nouns/reactor.js'
import { noun as tenant } from './nouns/tenant.js'
import { noun as token } from './nouns/token.js'
import { noun as vault } from './nouns/vault.js'

const nouns = [token, app, formula, reactor, log, tenant, member, invite, vault, config]

export const registry = createRegistry(nouns)

type Declared = (typeof nouns)[number]['operations'][number]

export type OperationName = Declared['name']

/** The type of the answer of the operation with this name. */
export type ResultOf<Name extends string> =
  Extract<Declared, { name: Name }> extends Operation<infer _I, infer O, infer _C, Name> ? Answer<O> : unknown
