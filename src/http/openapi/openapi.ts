import { omitUndefined } from '../../domain/omit-undefined.js'
import { ERRORS } from '../../errors.js'
import { isControl, MAX_KEY_CHARACTERS, takesIdempotencyKey } from '../../framework/declaration.js'
import { arrayOf, object, text } from '../../framework/output.js'
import type { RegisteredOperation, Registry, RoutedOperation } from '../../framework/registry.js'
import { type JsonSchema, type Schema, toJsonSchema } from '../../framework/schema.js'
import { type HeaderNames, headerNames } from '../headers.js'

export type OpenApiDocument = ReturnType<typeof createDocument>

const API_KEY = 'apiKey'
export const CONTROL_KEY = 'controlKey'
const NO_REVEAL: JsonSchema = { $ref: '#/components/parameters/NoReveal' }

const serviceProblem = {
  component: 'ServiceProblem',
  ...object({
    title: text,
    status: { type: 'integer', minimum: 400, maximum: 499 },
    detail: text,
    'errors?': { type: 'object', additionalProperties: arrayOf(text) },
    'error?': object({
      service_status: text,
      session_id: text,
      error_source: text,
      message: text,
      detail: text,
    }),
  }),
  description:
    'A failure of 3-D Secure outside of this server, or a card that no scheme supports. Clients recognize the failure by these texts.',
} satisfies Schema

export const problemOutput = {
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
      description: 'Messages by the path of the property. The path has the spelling of the request.',
    },
  }),
  description: 'A failure, in the form of RFC 7807.',
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

export const TRACE_ID: JsonSchema = {
  description: 'The trace id of the request, or a new trace id if the request has none.',
  schema: { type: 'string' },
}

export interface DocumentOptions {
  version: string
  prefix: string
  bodyLimitBytes: number
}

export function createDocument(registry: Registry, { version, prefix, bodyLimitBytes }: DocumentOptions) {
  const names = headerNames(prefix)
  const paths: Record<string, Record<string, ReturnType<typeof describeOperation>>> = {}
  for (const operation of registry.routed) {
    const { path, method } = operation.endpoint
    paths[path] = { ...paths[path], [method.toLowerCase()]: describeOperation(operation, names) }
  }
  for (const operation of registry.operations) Object.assign(paths, describeRelay(operation, prefix))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Coffer',
      version,
      summary: 'A token vault: store sensitive values, get tokens for them.',
      description: introduce(names, bodyLimitBytes),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    // Relative to the address of the document, so it is correct behind any port or host name.
    servers: [{ url: '/' }],
    tags: [...new Set(registry.routed.map(({ noun }) => noun))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { [API_KEY]: { type: 'apiKey', in: 'header', name: names.apiKey.toUpperCase() } },
      parameters: {
        NoReveal: {
          name: names.noReveal.toUpperCase(),
          in: 'header',
          description:
            'If the header is present, with any value, the answer is masked even if access rules would reveal data. The answer contains the header too.',
          schema: { type: 'string' },
        },
      },
      headers: {
        TraceId: TRACE_ID,
        Replayed: {
          description:
            'This request did nothing. The answer is the answer to the first request with this idempotency key.',
          schema: { const: 'true' },
        },
      },
      responses: {
        Problem: describeProblem(names.traceId),
        ServiceProblem: describeServiceProblem(names.traceId),
      },
      schemas: describeComponents([
        problemOutput,
        serviceProblem,
        ...registry.routed.map(({ output }) => output ?? {}),
      ]),
    },
  }
}

function introduce({ apiKey, traceId }: HeaderNames, bodyLimitBytes: number): string {
  return [
    `Each operation of this document needs an API key in the header ${apiKey.toUpperCase()}. Only a proxy can accept calls without a key. The paths /, /healthz, /readyz, /llms.txt and /openapi.json need no key.`,
    `A request may contain a trace id in the header ${traceId.toUpperCase()} (up to 128 visible ASCII characters). Every answer contains the trace id of its request.`,
    `A JSON body is UTF-8 with at most ${bodyLimitBytes} bytes and at most 64 levels, without repeated names.`,
    'Failures are RFC 7807 problems.',
  ].join('\n\n')
}

export function describeOperation(operation: RoutedOperation, names: HeaderNames) {
  const { details, endpoint } = operation
  const { needs, security } = describeAccess(operation)
  const paragraphs = [...(details === undefined ? [] : [toParagraphs(details)]), ...needs]
  const parameters: JsonSchema[] = [
    ...endpoint.parameters.map((name) => describeParameter(operation, name, 'path')),
    ...Object.keys(endpoint.query).map((name) => describeParameter(operation, name, 'query')),
  ]
  if (takesIdempotencyKey(operation))
    parameters.push({
      name: names.idempotencyKey.toUpperCase(),
      in: 'header',
      required: false,
      description:
        'If a call with this key has succeeded in the last 24 hours, a repeated call does nothing and returns the first answer.',
      schema: { type: 'string', minLength: 1, maxLength: MAX_KEY_CHARACTERS, pattern: '^[ -~]+$' },
    })
  return {
    ...describeCommon(operation),
    operationId: operation.name.replaceAll(' ', '-'),
    description: paragraphs.join('\n\n'),
    parameters: isControl(operation) ? parameters : [...parameters, NO_REVEAL],
    ...(endpoint.takesBody ? { requestBody: describeBody(operation) } : {}),
    responses: describeResponses(operation, names),
    security,
  }
}

type Security = Record<string, readonly string[]>[]

function describeAccess(operation: RoutedOperation): { needs: string[]; security: Security } {
  if (isControl(operation)) return { needs: [], security: [{ [CONTROL_KEY]: [] }] }
  const { permissions, isAnyEnough, keyOf } = operation.access
  const key = keyOf === undefined ? 'Any valid key.' : `The key of a ${keyOf} application.`
  const listed = permissions.join(isAnyEnough ? ' or ' : ' and ')
  return {
    needs: [permissions.length === 0 ? key : `Permission: ${listed}.`],
    security: isAnyEnough
      ? permissions.map((permission) => ({ [API_KEY]: [permission] }))
      : [{ [API_KEY]: permissions }],
  }
}

function describeCommon({ noun, summary, examples }: RegisteredOperation) {
  const samples = examples.map((source) => ({ lang: 'shell', label: 'coffer', source }))
  return { tags: [noun], summary, 'x-code-samples': samples }
}

function toParagraphs(details: string): string {
  return details.replaceAll('\n', '\n\n')
}

function describeParameter({ input }: RoutedOperation, name: string, place: 'path' | 'query'): JsonSchema {
  const property = input.properties[name]
  const required = place === 'path' || ((input.required ?? []) as readonly string[]).includes(name)
  const { description, ...schema } = toJsonSchema(property)
  // A map in a query is written as `metadata[key]=value` or `metadata.key=value`.
  const style = property.type === 'object' ? { style: 'deepObject', explode: true } : {}
  return { name, in: place, required, ...omitUndefined({ description }), ...style, schema }
}

function describeBody(operation: RoutedOperation): JsonSchema {
  const { input, http, examples } = operation
  const { whole: property, types = ['application/json'], isOptional, form } = http?.body ?? {}
  const { body: properties } = operation.endpoint
  const required = ((input.required ?? []) as readonly string[]).filter((name) => name in properties)
  if (form !== undefined) return describeForm(operation, form)
  const whole = property === undefined ? undefined : properties[property]
  const schema = {
    ...toJsonSchema(whole ?? { ...input, properties, required }),
    ...describeAlternatives(properties),
  }
  // The first example that passes its body on standard input.
  const given = examples.map((line) => /^echo '(.+)' \|/.exec(line)?.[1]).find((body) => body !== undefined)
  const described = { schema, ...(given === undefined ? {} : { example: JSON.parse(given) as unknown }) }
  return {
    required: isOptional !== true,
    content: Object.fromEntries(types.map((type) => [type, described])),
  }
}

function describeForm(
  { input, endpoint }: RoutedOperation,
  { file, json }: { file: string; json: string },
): JsonSchema {
  const { [file]: content, content_type: _, ...properties } = endpoint.body
  const rest = toJsonSchema({ ...input, properties, required: [] })
  const binary = { type: 'string', format: 'binary', description: content?.description }
  const schema = { type: 'object', properties: { [file]: binary, [json]: rest }, required: [file] }
  const encoding = { [json]: { contentType: 'application/json' } }
  return { required: true, content: { 'multipart/form-data': { schema, encoding } } }
}

function describeAlternatives(properties: Readonly<Record<string, Schema>>): JsonSchema {
  const needed = Object.entries(properties).filter(([, { requiredUnless }]) => requiredUnless !== undefined)
  const others = [...new Set(needed.flatMap(([, { requiredUnless }]) => requiredUnless!))]
  const neededBeside = (other: string) =>
    needed.filter(([, { requiredUnless }]) => !requiredUnless!.includes(other)).map(([name]) => name)
  const either = [needed.map(([name]) => name), ...others.map((name) => [...neededBeside(name), name])]
  return others.length === 0 ? {} : { anyOf: either.map((required) => ({ required })) }
}

/**
 * Code may answer with any status. A specific status such as 404 has precedence over its range, and is an error of
 * Coffer.
 */
const STATUS_RANGES = ['2XX', '3XX', '4XX', '5XX']
const GIVEN = { description: 'The answer of the code.', content: { '*/*': {} } }
const PROBLEM = { $ref: '#/components/responses/Problem' }

function describeResponses(operation: RoutedOperation, { traceId, replayed }: HeaderNames) {
  const { access, output, http, endpoint } = operation
  const takesKey = takesIdempotencyKey(operation)
  const headers = {
    [traceId.toUpperCase()]: { $ref: '#/components/headers/TraceId' },
    ...(takesKey && { [replayed.toUpperCase()]: { $ref: '#/components/headers/Replayed' } }),
  }
  const isContent = output !== undefined && 'content' in output
  const content = isContent
    ? { content: { '*/*': {} } }
    : output && { content: { 'application/json': { schema: toJsonSchema(output) } } }
  const done = { description: 'Done.', headers, ...content }
  const existing = { ...done, description: 'The record that exists already.' }
  const isForSome = access.permissions.length > 0 || access.keyOf !== undefined
  const hasId = endpoint.parameters.length > 0
  const body = endpoint.takesBody ? [413, 415] : []
  const statuses = [400, 401, isForSome && 403, hasId && 404, takesKey && 409, ...body, 429, 500]
  return {
    [endpoint.success]: done,
    ...(http?.mayAnswer === 'existing' && { 200: existing }),
    ...Object.fromEntries(statuses.filter(Boolean).map((status) => [status, PROBLEM])),
    ...(http?.mayRefuseCard && { [ERRORS.card_refused.status]: PROBLEM }),
    ...(http?.mayFailOutside && {
      [ERRORS.threeds_unsupported.status]: SERVICE_PROBLEM,
      [ERRORS.threeds_failed.status]: SERVICE_PROBLEM,
    }),
    default: PROBLEM,
    ...(http?.mayAnswer === 'anything' && Object.fromEntries(STATUS_RANGES.map((range) => [range, GIVEN]))),
  }
}

const SERVICE_PROBLEM = { $ref: '#/components/responses/ServiceProblem' }

const RELAYED = {
  description: 'The answer of the destination, or an error of this server.',
  content: { '*/*': {} },
}

/** A relay takes any body and gives any answer. In an error, the problem document is a property of another object. */
function describeRelay(operation: RegisteredOperation, prefix: string) {
  if (operation.kind !== 'relay') return {}
  const { relay, name, details = '', access } = operation
  const schema = { type: 'string' }
  const nameOf = (word: string) => `${prefix}-proxy-${word}`.toUpperCase()
  const headers = ['key', 'url'].map((word) => ({
    name: nameOf(word),
    in: 'header',
    required: false,
    schema,
  }))
  const optional = [...headers, NO_REVEAL]
  const rest = { name: 'path', in: 'path', required: true, schema }
  const describeMethods = (suffix: string, parameters: JsonSchema[]) => {
    const described = {
      ...describeCommon(operation),
      description: toParagraphs(details),
      parameters,
      requestBody: { required: false, content: { '*/*': {} } },
      responses: Object.fromEntries([...STATUS_RANGES, 'default'].map((status) => [status, RELAYED])),
      // The empty object makes the API key optional, because some proxies need no key.
      security: [...access.permissions.map((permission) => ({ [API_KEY]: [permission] })), {}],
    }
    return Object.fromEntries(
      relay.methods.map((method) => {
        const operationId = `${name.replaceAll(' ', '-')}-${method.toLowerCase()}${suffix}`
        return [method.toLowerCase(), { operationId, ...described }]
      }),
    )
  }
  return {
    [relay.path]: describeMethods('', optional),
    [`${relay.path}/{path}`]: describeMethods('-below', [rest, ...optional]),
  }
}

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

function describeServiceProblem(traceId: string): JsonSchema {
  const schema = { anyOf: [toJsonSchema(problemOutput), toJsonSchema(serviceProblem)] }
  return {
    description: 'Refused, or failed outside of this server.',
    headers: { [traceId.toUpperCase()]: { $ref: '#/components/headers/TraceId' } },
    content: { 'application/problem+json': { schema }, 'application/json': { schema } },
  }
}

export function describeProblem(traceId: string): JsonSchema {
  const schema = toJsonSchema(problemOutput)
  return {
    description:
      'Refused or failed. A header of the answer names the header to send (401), the allowed methods (405), or the time to try again (429 and 503).',
    headers: { [traceId.toUpperCase()]: { $ref: '#/components/headers/TraceId' } },
    content: { 'application/problem+json': { schema }, 'application/json': { schema } },
  }
}
