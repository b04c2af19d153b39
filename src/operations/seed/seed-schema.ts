/** A seed: what tenants contain, as data. Its parts are the inputs of the operations that create them. */

import { MAX_NAME_LENGTH } from '../../domain/reactor/formula.js'
import { closedInput, type Infer, inputSchema, type ObjectSchema } from '../../framework/schema.js'
import { createApplication } from '../application/noun.js'
import { createFormula } from '../formula/formula.js'
import { createInvitation } from '../invite/noun.js'
import { createProxy } from '../proxy/proxy.js'
import { createReactor } from '../reactor/reactor.js'
import { updateTenant } from '../tenant/noun.js'
import { linkTokens } from '../token/association.js'
import { createToken } from '../token/noun.js'

export const MOST_SEEDED_TOKENS = 10_000
const MOST_OTHERS = 1000

const { create_key: _, ...applicationProperties } = createApplication.input.properties
const { settings, name: tenantName } = updateTenant.input.properties
const name = { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH } as const
const application = { ...name, description: 'The name of an application of this tenant.' } as const

/** A list whose items refuse unknown properties, which may be misspelled. */
function listOf<const I extends ObjectSchema>(items: I, maxItems = MOST_OTHERS) {
  const { additionalProperties: _, ...others } = items
  return { type: 'array', items: { ...others, additionalProperties: false }, maxItems } as const
}

const contents = {
  settings,
  applications: listOf({
    ...createApplication.input,
    properties: {
      ...applicationProperties,
      key: { type: 'string', sensitive: true, description: 'In a vault in memory; default: a random key.' },
    },
  } as const),
  formulas: listOf(createFormula.input),
  tokens: listOf(createToken.input, MOST_SEEDED_TOKENS),
  associations: listOf(linkTokens.input),
  reactors: listOf(
    closedInput(['name'], {
      ...createReactor.input.properties,
      formula: { ...name, description: 'The name of a formula of this tenant, or of an official one.' },
      application,
    }),
  ),
  proxies: listOf({
    ...createProxy.input,
    properties: { ...createProxy.input.properties, application },
  } as const),
  members: listOf(
    inputSchema(['email'], {
      ...createInvitation.input.properties,
      first_name: { type: 'string', maxLength: 200 },
      last_name: { type: 'string', maxLength: 200 },
    }),
  ),
  invitations: listOf(createInvitation.input),
} as const

const schema = {
  ...closedInput([], {
    name: tenantName,
    ...contents,
    tenants: listOf(closedInput(['name'], { name: tenantName, ...contents }), 100),
  }),
  sensitive: true,
  description: 'The contents of the tenant, and further tenants.',
} as const

type Schema = typeof schema
/** Named, so that the package's declarations refer to it instead of repeating it. */
export interface SeedSchema extends Schema {}
export const seedSchema: SeedSchema = schema
export type Seed = Infer<typeof seedSchema>
export type SeedContents = Omit<Seed, 'tenants'>
