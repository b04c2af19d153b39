/** The registry of all operations, in the order of the help and the API reference. */
import type { Operation } from '../framework/operation.js'
import { createRegistry } from '../framework/registry.js'
import type { Answer, Infer } from '../framework/schema.js'
import { noun as app } from './nouns/app.js'
import { noun as config } from './nouns/config.js'
import { noun as control } from './nouns/control.js'
import { noun as formula } from './nouns/formula.js'
import { noun as invite } from './nouns/invite.js'
import { noun as log } from './nouns/log.js'
import { noun as member } from './nouns/member.js'
import { noun as proxy } from './nouns/proxy.js'
import { noun as reactor } from './nouns/reactor.js'
import { noun as seed } from './nouns/seed.js'
import { noun as session } from './nouns/session.js'
import { noun as tenant } from './nouns/tenant.js'
import { noun as token } from './nouns/token.js'
import { noun as vault } from './nouns/vault.js'

const nouns = [
  token,
  app,
  session,
  formula,
  reactor,
  proxy,
  log,
  tenant,
  member,
  invite,
  seed,
  control,
  vault,
  config,
]

export const registry = createRegistry(nouns, { isChecked: true })

type Declared = (typeof nouns)[number]['operations'][number]

export type OperationName = Declared['name']

type Find<Name> = Extract<Declared, { name: Name }>

export type ResultOf<Name extends string> =
  Find<Name> extends Operation<infer _I, infer O, infer _C, Name, infer _R> ? Answer<O> : unknown

export type InputOf<Name extends string> =
  Find<Name> extends Operation<infer I, infer _O, infer _C, Name, infer _R> ? Infer<I> : never

export type RoutedName = {
  [Name in OperationName]: Find<Name> extends { readonly route?: infer R }
    ? R extends string
      ? Name
      : never
    : never
}[OperationName]
