/**
 * What operations answer with, as JSON Schema (2020-12), by route: the part of the OpenAPI document that no input
 * schema can tell. Nothing here is checked when a request is answered; tests check every answer against it.
 */

export type JsonSchema = Readonly<Record<string, unknown>>

const text = { type: 'string' } as const
const uuid = { type: 'string', format: 'uuid' } as const
const count = { type: 'integer', minimum: 0 } as const
const date = {
  type: 'string',
  format: 'date-time',
  description: 'UTC, with milliseconds and the offset spelled.',
  examples: ['2030-08-27T02:23:57.000+00:00'],
} as const
const texts = { type: 'array', items: text } as const
const notes = { type: 'object', additionalProperties: text } as const
const anything = (description: string): JsonSchema => ({ description })
const reference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })
const arrayOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items })

/** A closed object; names that end with `?` may be absent. An attribute without a value is absent, never null. */
function object(properties: Record<string, JsonSchema>): JsonSchema {
  const names = Object.keys(properties)
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name.replace('?', ''), properties[name]])),
    required: names.filter((name) => !name.endsWith('?')),
    additionalProperties: false,
  }
}

const made = { created_by: uuid, created_at: date, 'modified_by?': uuid, 'modified_at?': date }
const maybeMade = { 'created_by?': uuid, 'created_at?': date, 'modified_by?': uuid, 'modified_at?': date }

const element = { name: text, 'description?': text, type: { enum: ['string', 'boolean', 'number'] } }

/** Schemas that have a name of their own. */
export const COMPONENTS: Readonly<Record<string, JsonSchema>> = {
  Problem: {
    ...object({
      type: text,
      title: text,
      status: { type: 'integer', minimum: 400, maximum: 599 },
      detail: text,
      instance: { ...text, description: 'The trace id of the request.' },
      'errors?': {
        type: 'object',
        additionalProperties: texts,
        description: 'Messages by the path of the property, as the caller wrote it.',
      },
    }),
    description: 'A failure, as RFC 7807 shapes it.',
    examples: [
      {
        type: 'urn:coffer:problem:validation',
        title: 'Bad Request',
        status: 400,
        detail: 'The request is not valid: type is required.',
        instance: '5c1f3f0e-6a55-4a43-9d5c-0b5b2a1f6d8e',
        errors: { type: ['is required'] },
      },
    ],
  },
  Pagination: object({ total_items: count, page_number: count, page_size: count, total_pages: count }),
  Token: {
    ...object({
      id: text,
      tenant_id: uuid,
      type: text,
      'data?': anything(
        'As the transform of the access rule that decides shows it; absent where it is redacted.',
      ),
      'mask?': anything('Any JSON whose strings are expressions over the data.'),
      fingerprint: text,
      containers: texts,
      'metadata?': notes,
      'search_indexes?': texts,
      'fingerprint_expression?': text,
      'deduplicate_token?': { type: 'boolean' },
      'expires_at?': date,
      ...made,
    }),
    examples: [
      {
        id: 'b0b5e7ab-0b5f-4d4e-8a64-4a5c8a3f5a0e',
        tenant_id: '0d7f2bb0-52f5-4d6b-9f0d-6a6f7c1e2b3a',
        type: 'card_number',
        data: 'XXXXXXXXXXXX4242',
        mask: '{{ data | reveal_last: 4 }}',
        fingerprint: '9rQ7XkH7cJ3mVq1s8oYzWb2nTfLpRgUdEaKxMvCwBzFy',
        fingerprint_expression: '{{ data }}',
        containers: ['/pci/high/'],
        created_by: '3f0c1c9e-8d0e-4c3f-9a8b-6f6f4e1a2d3c',
        created_at: '2030-08-27T02:23:57.000+00:00',
      },
    ],
  },
  Log: object({
    tenant_id: uuid,
    'actor_id?': text,
    'actor_type?': { enum: ['application', 'user', 'system'] },
    entity_type: text,
    entity_id: text,
    operation: { enum: ['create', 'read', 'update', 'delete', 'use', 'react'] },
    message: text,
    created_at: date,
  }),
  EntityType: object({ display_name: text, value: text }),
  Rule: object({
    'description?': text,
    priority: { type: 'integer', minimum: 1 },
    container: text,
    transform: { enum: ['redact', 'mask', 'reveal'] },
    permissions: texts,
  }),
  Application: object({
    id: uuid,
    tenant_id: uuid,
    name: text,
    'key?': { ...text, description: 'Shown only when it is created or regenerated.' },
    type: { enum: ['public', 'private', 'management'] },
    'permissions?': texts,
    'rules?': arrayOf(reference('Rule')),
    'expires_at?': date,
    ...made,
  }),
  Permission: object({ type: text, description: text, application_types: texts }),
  Formula: object({
    id: uuid,
    name: text,
    'description?': text,
    type: { enum: ['official', 'private'] },
    status: { enum: ['verified', 'coming_soon'] },
    'icon?': text,
    code: text,
    configuration: arrayOf(object(element)),
    request_parameters: arrayOf(object({ ...element, 'optional?': { type: 'boolean' } })),
    ...maybeMade,
  }),
  Reactor: object({
    id: uuid,
    tenant_id: uuid,
    name: text,
    formula: reference('Formula'),
    configuration: notes,
    'application?': object({ id: uuid, name: text, type: { enum: ['public', 'private'] } }),
    ...maybeMade,
  }),
  ReactorResponse: object({
    'tokens?': anything('What the `tokenize` block of the code became.'),
    'raw?': anything('What the code gave back in the clear.'),
  }),
  Tenant: object({
    id: uuid,
    owner_id: uuid,
    name: text,
    settings: object({ 'deduplicate_tokens?': { enum: ['true', 'false'] } }),
    ...maybeMade,
  }),
  UsageReport: object({
    token_report: object({
      metrics_by_type: {
        type: 'object',
        additionalProperties: object({ count, 'last_created_at?': date }),
      },
      included_monthly_active_tokens: count,
      monthly_active_tokens: count,
    }),
  }),
  User: object({ id: uuid, 'email?': text, 'first_name?': text, 'last_name?': text, 'picture?': text }),
  Member: object({
    id: uuid,
    tenant_id: uuid,
    role: { enum: ['OWNER', 'ADMIN'] },
    user: reference('User'),
    ...maybeMade,
  }),
  Invitation: object({
    id: uuid,
    tenant_id: uuid,
    email: text,
    status: { enum: ['PENDING', 'EXPIRED'] },
    expires_at: date,
    ...maybeMade,
  }),
}

function listOf(name: string): JsonSchema {
  return object({ pagination: reference('Pagination'), data: arrayOf(reference(name)) })
}

/** The result of each route that has one. */
const RESULTS: Readonly<Record<string, JsonSchema>> = {
  'POST /tokens': reference('Token'),
  'GET /tokens': listOf('Token'),
  'GET /tokens/{}': reference('Token'),
  'PATCH /tokens/{}': reference('Token'),
  'POST /tokens/search': listOf('Token'),
  'POST /tokens/{}/children': reference('Token'),
  'GET /tokens/{}/children': listOf('Token'),
  'POST /tokenize': anything('The body with every value replaced by its token or the id of its token.'),
  'GET /logs': listOf('Log'),
  'GET /logs/entity-types': arrayOf(reference('EntityType')),
  'POST /applications': reference('Application'),
  'GET /applications': listOf('Application'),
  'GET /applications/key': reference('Application'),
  'GET /applications/{}': reference('Application'),
  'PUT /applications/{}': reference('Application'),
  'POST /applications/{}/regenerate': reference('Application'),
  'GET /permissions': arrayOf(reference('Permission')),
  'POST /reactor-formulas': reference('Formula'),
  'GET /reactor-formulas': listOf('Formula'),
  'GET /reactor-formulas/{}': reference('Formula'),
  'PUT /reactor-formulas/{}': reference('Formula'),
  'POST /reactors': reference('Reactor'),
  'GET /reactors': listOf('Reactor'),
  'GET /reactors/{}': reference('Reactor'),
  'PUT /reactors/{}': reference('Reactor'),
  'POST /reactors/{}/react': reference('ReactorResponse'),
  'GET /tenants/self': reference('Tenant'),
  'PUT /tenants/self': reference('Tenant'),
  'GET /tenants/self/reports/usage': reference('UsageReport'),
  'GET /tenants/self/members': listOf('Member'),
  'POST /tenants/self/invitations': reference('Invitation'),
  'POST /tenants/self/invitations/{}/resend': reference('Invitation'),
  'GET /tenants/self/invitations': listOf('Invitation'),
  'GET /tenants/self/invitations/{}': reference('Invitation'),
}

/** What `route` answers with, or undefined where nobody has written it down yet. */
export function resultOf(route: string): JsonSchema | undefined {
  return RESULTS[route.replaceAll(/\{[^}]*\}/g, '{}')]
}
