/** Input and output attributes of reactors. */

import { PERMISSIONS, type Permission } from '../../domain/access/permissions.js'
import { MAX_CODE_BYTES, MAX_ELEMENTS, MAX_NAME_LENGTH } from '../../domain/reactor/formula.js'
import { IMAGES } from '../../domain/reactor/reactor.js'
import {
  arrayOf,
  boolean,
  component,
  enumOf,
  number,
  object,
  optionalAudit,
  text,
  textMap,
  uuid,
} from '../../framework/output.js'
import { idOf, type Schema } from '../../framework/schema.js'
import { formulaOutput } from '../formula/formula-attributes.js'

const TOKEN_PERMISSIONS = (Object.keys(PERMISSIONS) as Permission[]).filter((name) =>
  name.startsWith('token:'),
)

export const reactorOutput = component(
  'Reactor',
  ['id', 'name', 'formula.name', 'application.name', 'created_at'],
  {
    id: uuid,
    tenant_id: uuid,
    name: text,
    state: enumOf('active'),
    'formula?': formulaOutput,
    'code?': text,
    configuration: textMap,
    'application?': object({ id: uuid, name: text, type: enumOf('public', 'private') }),
    'runtime?': object({
      image: enumOf(...IMAGES),
      'async?': boolean,
      'dependencies?': textMap,
      'resolutions?': textMap,
      'warm_concurrency?': number,
      'timeout?': number,
      'resources?': text,
      'permissions?': arrayOf({ enum: TOKEN_PERMISSIONS }),
    }),
    ...optionalAudit,
  },
)

export const reactorId = idOf('reactor', 'The id of the reactor, or its name.')

export function reference(refersTo: string, description: string) {
  return {
    type: 'object',
    refersTo,
    properties: { id: { type: 'string' } },
    required: ['id'],
    additionalProperties: true,
    description,
  } as const
}

const packages = {
  type: 'object',
  additionalProperties: { type: 'string', maxLength: MAX_NAME_LENGTH },
  maxProperties: MAX_ELEMENTS,
} as const

const runtimeProperties = {
  image: { type: 'string', enum: IMAGES },
  async: { type: 'boolean' },
  dependencies: packages,
  resolutions: packages,
  warm_concurrency: { type: 'integer', minimum: 0, maximum: 100 },
  timeout: { type: 'integer', minimum: 1, maximum: 600 },
  resources: { type: 'string', maxLength: MAX_NAME_LENGTH },
  permissions: { type: 'array', items: { type: 'string', enum: TOKEN_PERMISSIONS }, maxItems: 20 },
} as const

const code = {
  type: 'string',
  minLength: 1,
  maxLength: MAX_CODE_BYTES,
  description: 'A CommonJS module that exports an asynchronous function, instead of a formula: @reactor.js.',
} as const

export const reactorBody = {
  name: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'A display name.' },
  code,
  configuration: {
    type: 'object',
    additionalProperties: {},
    maxProperties: MAX_ELEMENTS,
    sensitive: true,
    description: 'A configuration parameter: KEY=value.',
  },
  application: reference('app', 'The application that its client acts as: its id or name, or {"id":"…"}.'),
  runtime: {
    type: 'object',
    properties: runtimeProperties,
    additionalProperties: false,
    description:
      'How it runs, as JSON: timeout (seconds), permissions of its client without an application, image.',
  },
} as const

/** In a merge patch null removes an attribute, or one of its entries. */
export const reactorPatch = {
  ...reactorBody,
  name: { ...reactorBody.name, nullable: false },
  code: { ...code, nullable: false },
  configuration: { ...reactorBody.configuration, nullable: true },
  application: { ...reactorBody.application, nullable: true },
  runtime: {
    ...reactorBody.runtime,
    nullable: true,
    properties: Object.fromEntries(
      Object.entries<Schema>(runtimeProperties).map(([name, schema]) => [name, toPatched(schema)]),
    ),
  },
} as const

function toPatched(schema: Schema): Schema {
  if (schema.type !== 'object') return { ...schema, nullable: true }
  const { additionalProperties: others } = schema
  const entries = typeof others === 'boolean' ? others : toPatched(others)
  return { ...schema, nullable: true, additionalProperties: entries }
}
