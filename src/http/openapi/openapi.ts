/** The OpenAPI 3.1 document, derived from the registry: an operation that is added appears in it. */
import { takesIdempotencyKey } from '../../framework/idempotency/idempotency-key.js'
import { arrayOf, object, text } from '../../framework/output.js'
import type { RegisteredOperation, Registry, RoutedOperation } from '../../framework/registry.js'
import { type JsonSchema, type Schema, toJsonSchema } from '../../framework/schema.js'
import { nameHeaders } from '../headers.js'
import {
  describeBody,
  describeIdempotencyKey,
  describeParameters,
  describeResponses,
  STATUS_RANGES,
} from './messages.js'

export interface OpenApiOperation {
  operationId: string
  tags: string[]
  summary: string
  description: string
  parameters: JsonSchema[]
  requestBody?: JsonSchema
  responses: Record<string, JsonSchema>
  security: Record<string, readonly string[]>[]
  'x-code-samples': { lang: string; label: string; source: string }[]
}

export type OpenApiDocument = ReturnType<typeof createDocument>

const API_KEY = 'apiKey'

const problemOutput = {
  component: 'Problem',
  ...object({
    type: text,
    title: text,
    status: { type: 'integer', minimum: 400, maximum: 599 },
    detail: text,
    instance: { ...text, description: 'The trace id of the request.' },
    'errors?': {
      type: 'object',
      additionalProperties: arrayOf(text),
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
} satisfies Schema

/** The document that describes `registry` as this server answers it. `version`: of the product. */
export function createDocument(
  registry: Registry,
  { version, prefix, bodyLimitBytes }: { version: string; prefix: string; bodyLimitBytes: number },
) {
  const names = nameHeaders(prefix)
  /** By path, then by method in lower case. */
  const paths: Record<string, Record<string, OpenApiOperation>> = {}
  for (const operation of registry.routed) {
    const { path, method } = operation.endpoint
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(operation) }
  }
  for (const operation of registry.operations) {
    const { relay, name } = operation
    if (relay === undefined) continue
    for (const [path, at] of [
      [relay.path, []],
      [`${relay.path}/{path}`, [REST]],
    ] as const) {
      const described = describeRelay(operation, at, prefix)
      const methods = relay.methods.map((method) => {
        const operationId = `${name.replaceAll(' ', '-')}-${method.toLowerCase()}${at.length === 0 ? '' : '-below'}`
        return [method.toLowerCase(), { operationId, ...described }] as const
      })
      paths[path] = Object.fromEntries(methods)
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Coffer',
      version,
      summary: 'A token vault: store sensitive values, get tokens for them.',
      description: introduce(names.apiKey, names.traceId, bodyLimitBytes),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    // Relative to where the document was fetched, so that it is true behind any port or name.
    servers: [{ url: '/' }],
    tags: [...new Set(registry.routed.map(({ noun }) => noun))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { [API_KEY]: { type: 'apiKey', in: 'header', name: names.apiKey.toUpperCase() } },
      headers: {
        TraceId: { description: 'The trace id taken or made.', schema: { type: 'string' } },
        Replayed: {
          description: 'The answer to the first request with this idempotency key; nothing was done.',
          schema: { const: 'true' },
        },
      },
      responses: { Problem: describeProblem(names.traceId) },
      schemas: describeComponents([problemOutput, ...registry.routed.map(({ output }) => output ?? {})]),
    },
  }

  function describe(operation: RoutedOperation): OpenApiOperation {
    const body = operation.endpoint.takesBody ? describeBody(operation) : undefined
    return {
      operationId: operation.name.replaceAll(' ', '-'),
      tags: [operation.noun],
      summary: operation.summary,
      description: describePermissions(operation),
      parameters: [
        ...describeParameters(operation),
        ...(takesIdempotencyKey(operation) ? [describeIdempotencyKey(names.idempotencyKey)] : []),
      ],
      ...(body === undefined ? {} : { requestBody: body }),
      responses: describeResponses(operation, names),
      security: operation.needsOnePermission
        ? operation.permissions.map((permission) => ({ [API_KEY]: [permission] }))
        : [{ [API_KEY]: operation.permissions }],
      'x-code-samples': operation.examples.map((source) => ({ lang: 'shell', label: 'coffer', source })),
    }
  }
}

const REST = { name: 'path', in: 'path', required: true, schema: { type: 'string' } }

const RELAYED = {
  description: 'The answer of the destination, or an error of this server.',
  content: { '*/*': {} },
}

/** One method of a relay: any body, any answer; the problems of this server are inside another object. */
function describeRelay(
  { noun, summary, details = '', permissions, examples }: RegisteredOperation,
  parameters: readonly JsonSchema[],
  prefix: string,
): Omit<OpenApiOperation, 'operationId'> {
  const headers = ['key', 'url'].map((name) => ({
    name: `${prefix}-proxy-${name}`.toUpperCase(),
    in: 'header',
    required: false,
    schema: { type: 'string' },
  }))
  return {
    tags: [noun],
    summary,
    description: details.replaceAll('\n', '\n\n'),
    parameters: [...parameters, ...headers],
    requestBody: { required: false, content: { '*/*': {} } },
    responses: Object.fromEntries([...STATUS_RANGES, 'default'].map((status) => [status, RELAYED])),
    // Without a key for proxies that need none.
    security: [...permissions.map((permission) => ({ [API_KEY]: [permission] })), {}],
    'x-code-samples': examples.map((source) => ({ lang: 'shell', label: 'coffer', source })),
  }
}

function introduce(apiKey: string, traceId: string, bodyLimitBytes: number): string {
  return [
    `Every request carries an API key in the header ${apiKey.toUpperCase()}; only /, /healthz, /readyz and /openapi.json need none.`,
    `A request may bring its own trace id in ${traceId.toUpperCase()} (up to 128 visible ASCII characters); every answer carries one.`,
    `Bodies are UTF-8 JSON of at most ${bodyLimitBytes} bytes, 64 levels deep, without repeated names.`,
    'Failures are RFC 7807 problems.',
  ].join('\n\n')
}

/** The schemas that have a name of their own, at any depth of `schemas`. */
export function describeComponents(schemas: readonly Schema[]): Record<string, JsonSchema> {
  const found: Record<string, JsonSchema> = {}
  const state = (schema: Schema): void => {
    const { component, ...described } = schema
    if (component !== undefined) {
      if (Object.hasOwn(found, component)) return
      found[component] = toJsonSchema(described)
    }
    if (schema.type === 'array') state(schema.items)
    if (schema.type !== 'object') return
    Object.values(schema.properties ?? {}).forEach(state)
    if (typeof schema.additionalProperties === 'object') state(schema.additionalProperties)
  }
  schemas.forEach(state)
  return found
}

function describePermissions({ permissions, needsOnePermission, onlyFor, details }: RoutedOperation): string {
  const names = permissions.join(needsOnePermission ? ' or ' : ' and ')
  const key = onlyFor === undefined ? 'Any valid key.' : `The key of a ${onlyFor} application.`
  const needs = permissions.length === 0 ? key : `Permission: ${names}.`
  return details === undefined ? needs : `${details.replaceAll('\n', '\n\n')}\n\n${needs}`
}

function describeProblem(traceId: string): JsonSchema {
  const schema = toJsonSchema(problemOutput)
  return {
    description:
      'Refused or failed. 401 and 405 say in their headers what would do; 429 and 503 when to try again.',
    headers: { [traceId.toUpperCase()]: { $ref: '#/components/headers/TraceId' } },
    content: { 'application/problem+json': { schema }, 'application/json': { schema } },
  }
}
