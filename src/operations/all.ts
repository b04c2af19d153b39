import type { Declaration } from '../framework/declaration.js'
import { createRegistry } from '../framework/registry.js'
import type { Answer, Infer } from '../framework/schema.js'
import { noun as threeds } from './3ds/noun.js'
import { noun as access } from './access/noun.js'
import { noun as applePay } from './apple-pay/noun.js'
import { noun as app } from './application/noun.js'
import { noun as config } from './config/noun.js'
import { noun as control } from './control/noun.js'
import { noun as document } from './document/noun.js'
import { noun as enrich } from './enrich/noun.js'
import { noun as formula } from './formula/noun.js'
import { noun as googlePay } from './google-pay/noun.js'
import { noun as intent } from './intent/noun.js'
import { noun as invite } from './invite/noun.js'
import { noun as key } from './key/noun.js'
import { noun as log } from './log/noun.js'
import { noun as member } from './member/noun.js'
import { noun as networkToken } from './network-token/noun.js'
import { noun as proxy } from './proxy/noun.js'
import { noun as reactor } from './reactor/noun.js'
import { noun as seed } from './seed/noun.js'
import { noun as session } from './session/noun.js'
import { noun as tenant } from './tenant/noun.js'
import { noun as token } from './token/noun.js'
import { noun as updater } from './updater/noun.js'
import { noun as vault } from './vault/noun.js'
import { noun as webhook } from './webhook/noun.js'

const nouns = [
  token,
  intent,
  key,
  threeds,
  enrich,
  updater,
  networkToken,
  googlePay,
  applePay,
  document,
  app,
  access,
  session,
  formula,
  reactor,
  proxy,
  webhook,
  log,
  tenant,
  member,
  invite,
  seed,
  control,
  vault,
  config,
]

export const registry = createRegistry(nouns)

type Declared = (typeof nouns)[number]['operations'][number]

export type OperationName = Declared['name']

type Find<Name> = Extract<Declared, { name: Name }>

export type ResultOf<Name extends string> =
  Find<Name> extends Declaration<infer _I, infer O, infer _C, Name, infer _R> ? Answer<O> : unknown

export type InputOf<Name extends string> =
  Find<Name> extends Declaration<infer I, infer _O, infer _C, Name, infer _R>
    ? Infer<I> & Alternatives<I>
    : never

type Choose<P, N> = { [K in keyof P as K extends N ? K : never]: Infer<P[K]> }
type Unless<S> = S extends { requiredUnless: readonly (infer Other extends string)[] } ? Other : never
type Needed<P> = { [N in keyof P]: [Unless<P[N]>] extends [never] ? never : N }[keyof P]
/**
 * The names of the properties that are required even if the property `Other` is given, because their `requiredUnless`
 * does not contain `Other`.
 */
type Beside<P, Other> = { [N in Needed<P>]: Other extends Unless<P[N]> ? never : N }[Needed<P>]
/**
 * The valid combinations of properties for an input in which one property can replace others. For example, a
 * token request needs either `type` and `data`, or `token_intent_id`, which replaces both.
 */
type Alternatives<I> = I extends { properties: infer P }
  ?
      | Choose<P, Needed<P>>
      | { [Other in Unless<P[keyof P]>]: Choose<P, Other | Beside<P, Other>> }[Unless<P[keyof P]>]
  : unknown

export type RoutedName = {
  [Name in OperationName]: Find<Name> extends { readonly route?: infer R }
    ? R extends string
      ? Name
      : never
    : never
}[OperationName]
