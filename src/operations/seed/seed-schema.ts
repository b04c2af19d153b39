/** A seed: what tenants contain, as data. Its parts are the inputs of the operations that create them. */

import { GIVEN_ROLES } from '../../domain/access/roles.js'
import { MAX_NAME_LENGTH } from '../../domain/reactor/formula.js'
import { closedInput, type Infer, type ObjectSchema } from '../../framework/schema.js'
import { createApplication } from '../application/application.js'
import { createFormula } from '../formula/formula.js'
import { createInvitation } from '../invite/invite.js'
import { createProxy } from '../proxy/proxy.js'
import { createReactor } from '../reactor/reactor.js'
import { updateTenant } from '../tenant/tenant.js'
import { createToken } from '../token/token.js'

export const MOST_SEEDED_TOKENS = 10_000
const MOST_OTHERS = 1000

const { create_key: _, ...applicationProperties } = createApplication.input.properties
const { settings } = updateTenant.input.properties
const { formula: __, application: ___, ...reactorProperties } = createReactor.input.properties
const { application: ____, ...proxyProperties } = createProxy.input.properties
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
  associations: listOf(
    closedInput(['parent_id', 'child_id'], { parent_id: { type: 'string' }, child_id: { type: 'string' } }),
  ),
  reactors: listOf(
    closedInput(['name'], {
      ...reactorProperties,
      formula: { ...name, description: 'The name of a formula of this tenant, or of an official one.' },
      application,
    }),
  ),
  proxies: listOf(closedInput(['name', 'destination_url'], { ...proxyProperties, application })),
  members: listOf(
    closedInput(['email'], {
      email: { type: 'string' },
      role: { type: 'string', enum: GIVEN_ROLES },
      first_name: { type: 'string', maxLength: 200 },
      last_name: { type: 'string', maxLength: 200 },
    }),
  ),
  invitations: listOf(createInvitation.input),
} as const

const tenantName = updateTenant.input.properties.name

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

export type SeedContents = Omit<Infer<typeof seedSchema>, 'tenants'>

export type Seed = Infer<typeof seedSchema>
