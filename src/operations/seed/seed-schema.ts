import { API_KEY } from '../../domain/access/application.js'
import { ROLES } from '../../domain/access/permissions.js'
import { BASE58_RULE } from '../../domain/text/base58.js'
import { MAX_NAME_LENGTH } from '../../domain/text/display-name.js'
import { closedInput, type Infer, inputSchema, type ObjectSchema } from '../../framework/schema.js'
import { createApplication } from '../application/noun.js'
import { createFormula } from '../formula/noun.js'
import { createInvitation } from '../invite/noun.js'
import { createProxy } from '../proxy/noun.js'
import { createReactor } from '../reactor/reactor.js'
import { updateTenant } from '../tenant/noun.js'
import { createToken, linkTokens } from '../token/noun.js'
import { createWebhook, webhookStatus } from '../webhook/noun.js'

export const MAX_SEEDED_TOKENS = 10_000
/** The limit of each list except tokens. */
export const MAX_SEEDED_OTHERS = 1000

const { create_key: _, ...applicationProperties } = createApplication.input.properties
const { settings, name: tenantName } = updateTenant.input.properties
const id = {
  type: 'string',
  format: 'uuid',
  description: 'The id that the record gets; default: a random UUID.',
} as const
const personName = { type: 'string', maxLength: MAX_NAME_LENGTH } as const

function referenceTo(noun: string) {
  return { description: `${noun}: its name, or {"id":"…"}.` } as const
}

/** Items may have attributes that only answers have. `readItem` removes these attributes. */
function seedList<const I extends ObjectSchema>(items: I, maxItems = MAX_SEEDED_OTHERS) {
  return { type: 'array', items, maxItems } as const
}

const contentsSchema = {
  settings,
  applications: seedList({
    ...createApplication.input,
    properties: {
      id,
      ...applicationProperties,
      key: {
        type: 'string',
        sensitive: true,
        description: `In a vault in memory: ${API_KEY} and 22 characters of ${BASE58_RULE}, or any key with serve --test-keys; default: a random key.`,
      },
    },
  } as const),
  formulas: seedList({
    ...createFormula.input,
    properties: { id, ...createFormula.input.properties },
  } as const),
  tokens: seedList(createToken.input, MAX_SEEDED_TOKENS),
  associations: seedList(linkTokens.input),
  reactors: seedList({
    ...createReactor.input,
    properties: {
      id,
      ...createReactor.input.properties,
      formula: referenceTo('A formula of this tenant, or an official one'),
      application: referenceTo('An application of this tenant'),
    },
  } as const),
  proxies: seedList({
    ...createProxy.input,
    properties: {
      id,
      ...createProxy.input.properties,
      application: referenceTo('An application of this tenant'),
      key: {
        type: 'string',
        description: `22 characters of ${BASE58_RULE}; default: a random key. The key of a proxy without require_auth may be chosen only in a vault in memory that other machines cannot reach.`,
      },
    },
  } as const),
  webhooks: seedList({
    ...createWebhook.input,
    properties: { id, ...createWebhook.input.properties, status: webhookStatus },
  } as const),
  // In an answer of the API, the address and the names of a member are in `user`, and the list of members
  // contains the owner too.
  members: seedList(
    inputSchema([], {
      ...createInvitation.input.properties,
      role: { ...createInvitation.input.properties.role, enum: ROLES },
      first_name: personName,
      last_name: personName,
      user: inputSchema([], { email: { type: 'string' }, first_name: personName, last_name: personName }),
    }),
  ),
  invitations: seedList(createInvitation.input),
} as const

const schema = {
  ...closedInput([], {
    $schema: {
      type: 'string',
      maxLength: 2048,
      description:
        'The address of the schema, for editors. `coffer seed schema` prints the schema. Coffer ignores this value.',
    },
    name: tenantName,
    ...contentsSchema,
    tenants: {
      type: 'array',
      items: closedInput(['name'], { name: tenantName, ...contentsSchema }),
      maxItems: 100,
    },
  }),
  sensitive: true,
  description: 'The contents of the tenant, and further tenants.',
} as const

type Schema = typeof schema
/** Without this name, the type declarations of the package would repeat the whole type. */
export interface SeedSchema extends Schema {}
export const seedSchema: SeedSchema = schema
export type Seed = Infer<typeof seedSchema>
export type SeedContents = Omit<Seed, 'tenants' | '$schema'>
export type ListName = Exclude<keyof SeedContents, 'name' | 'settings'>
