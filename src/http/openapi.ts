/**
 * The OpenAPI 3.1 document, derived from the registry: an operation that is added appears in it. Nothing here answers
 * a request.
 */
import type { AnyOperation } from '../framework/operation.js'
import type { Registry } from '../framework/registry.js'
import { type Schema, toJsonSchema } from '../framework/schema.js'
import { nameHeaders } from './headers.js'
import { describeEndpoint, type Endpoint } from './router.js'
import { COMPONENTS, type JsonSchema, resultOf } from './shapes.js'

export interface DocumentOptions {
  /** Of the product. */
  version: string
  /** As in {@link nameHeaders}. */
  prefix: string
  bodyLimitBytes: number
}

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

export interface OpenApiDocument {
  openapi: '3.1.0'
  info: JsonSchema
  servers: JsonSchema[]
  tags: { name: string }[]
  /** By path, then by method in lower case. */
  paths: Record<string, Record<string, OpenApiOperation>>
  components: Record<string, JsonSchema>
}

const API_KEY = 'apiKey'

/** The document that describes `registry` as this server answers it. */
export function createDocument(registry: Registry, options: DocumentOptions): OpenApiDocument {
  const names = nameHeaders(options.prefix)
  const paths: OpenApiDocument['paths'] = {}
  for (const definition of registry.operations) {
    const endpoint = describeEndpoint(definition)
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method.toLowerCase()]: describe(endpoint) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Coffer',
      version: options.version,
      summary: 'A token vault: store sensitive values, get tokens for them.',
      description: introduce(names.apiKey, names.traceId, options.bodyLimitBytes),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    // Relative to where the document was fetched, so that it is true behind any port or name.
    servers: [{ url: '/' }],
    tags: registry.nouns.map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { [API_KEY]: { type: 'apiKey', in: 'header', name: names.apiKey.toUpperCase() } },
      headers: { TraceId: { description: 'The trace id taken or made.', schema: { type: 'string' } } },
      responses: { Problem: describeProblem(names.traceId) },
      schemas: COMPONENTS,
    },
  }

  function describe(endpoint: Endpoint): OpenApiOperation {
    const { definition } = endpoint
    const body = endpoint.takesBody ? describeBody(definition) : undefined
    return {
      operationId: definition.name.replaceAll(' ', '-'),
      tags: [definition.name.split(' ')[0]!],
      summary: definition.summary,
      description: describePermissions(definition),
      parameters: [...describePath(endpoint), ...describeQuery(endpoint)],
      ...(body === undefined ? {} : { requestBody: body }),
      responses: describeResponses(endpoint, names.traceId),
      security: [{ [API_KEY]: definition.permissions }],
      'x-code-samples': definition.examples.map((source) => ({ lang: 'shell', label: 'coffer', source })),
    }
  }
}

function introduce(apiKey: string, traceId: string, bodyLimitBytes: number): string {
  return [
    `Every request carries an API key in the header ${apiKey.toUpperCase()}; only /, /healthz and /openapi.json need none.`,
    `A request may bring its own trace id in ${traceId.toUpperCase()} (up to 128 visible ASCII characters); every answer carries one.`,
    `Bodies are UTF-8 JSON of at most ${bodyLimitBytes} bytes, 64 levels deep, without repeated names.`,
    'Failures are RFC 7807 problems.',
  ].join('\n\n')
}

function describePermissions({ permissions, details }: AnyOperation): string {
  const needs = permissions.length === 0 ? 'Any valid key.' : `Permission: ${permissions.join(' and ')}.`
  return details === undefined ? needs : `${details.replaceAll('\n', '\n\n')}\n\n${needs}`
}

function propertiesOf({ input }: AnyOperation): Record<string, Schema> {
  return input.properties ?? {}
}

function describePath({ definition, segments }: Endpoint): JsonSchema[] {
  const names = segments.filter((each) => each.startsWith('{')).map((each) => each.slice(1, -1))
  return names.map((name) => {
    const { description, ...schema } = toJsonSchema(propertiesOf(definition)[name]!)
    return { name, in: 'path', required: true, ...(description ? { description } : {}), schema }
  })
}

function describeQuery({ definition, query }: Endpoint): JsonSchema[] {
  const required: readonly string[] = definition.input.required ?? []
  return Object.entries(query).map(([name, property]) => {
    const { description, ...schema } = toJsonSchema(property)
    // A map is spelled `metadata[key]=value`, or `metadata.key=value`.
    const style = property.type === 'object' ? { style: 'deepObject', explode: true } : {}
    return {
      name,
      in: 'query',
      required: required.includes(name),
      ...(description ? { description } : {}),
      ...style,
      schema,
    }
  })
}

function describeBody(definition: AnyOperation): JsonSchema {
  const { required = [] } = definition.input
  const { query, segments } = describeEndpoint(definition)
  const isElsewhere = (name: string) => Object.hasOwn(query, name) || segments.includes(`{${name}}`)
  const properties = Object.fromEntries(
    Object.entries(propertiesOf(definition)).filter(([name]) => !isElsewhere(name)),
  )
  const names = (required as readonly string[]).filter((name) => !isElsewhere(name))
  const whole = definition.wholeBody === undefined ? undefined : properties[definition.wholeBody]
  const schema = toJsonSchema(whole ?? { ...definition.input, properties, required: names })
  const example = findExample(definition.examples)
  return {
    required: true,
    content: {
      [definition.contentType ?? 'application/json']: {
        schema,
        ...(example === undefined ? {} : { example }),
      },
    },
  }
}

/** The body of the first example that is given on standard input. */
function findExample(examples: readonly string[]): unknown {
  const given = examples.map((line) => /^echo '(.+)' \|/.exec(line)?.[1]).find((body) => body !== undefined)
  return given === undefined ? undefined : JSON.parse(given)
}

const PROBLEM = { $ref: '#/components/responses/Problem' }

function describeResponses(
  { definition, segments, takesBody }: Endpoint,
  traceId: string,
): Record<string, JsonSchema> {
  const { success } = definition
  const headers = { [traceId.toUpperCase()]: { $ref: '#/components/headers/TraceId' } }
  const content = { 'application/json': { schema: resultOf(definition.route) ?? {} } }
  const done =
    success === 204 ? { description: 'Done.', headers } : { description: 'Done.', headers, content }
  const hasParameters = segments.some((each) => each.startsWith('{'))
  const statuses = [
    '400',
    '401',
    ...(definition.permissions.length > 0 ? ['403'] : []),
    ...(hasParameters ? ['404'] : []),
    ...(takesBody ? ['413', '415'] : []),
    '429',
    '500',
    'default',
  ]
  const existing = 'deduplicate_token' in propertiesOf(definition) && success === 201
  return {
    [success]: done,
    ...(existing ? { 200: { ...done, description: 'The token that has this fingerprint already.' } } : {}),
    ...Object.fromEntries(statuses.map((status) => [status, PROBLEM])),
  }
}

function describeProblem(traceId: string): JsonSchema {
  const schema = { $ref: '#/components/schemas/Problem' }
  return {
    description:
      'Refused or failed. 401 and 405 say in their headers what would do; 429 and 503 when to try again.',
    headers: { [traceId.toUpperCase()]: { $ref: '#/components/headers/TraceId' } },
    content: { 'application/problem+json': { schema }, 'application/json': { schema } },
  }
}
