/** The requests and the answers of one operation, as OpenAPI describes them. */
import { MOST_KEY_CHARACTERS, takesIdempotencyKey } from '../../framework/idempotency/idempotency-key.js'
import type { RoutedOperation } from '../../framework/registry.js'
import { type JsonSchema, type Schema, toJsonSchema } from '../../framework/schema.js'
import type { HeaderNames } from '../headers.js'

/** The parameters in the path, then those of the query. */
export function describeParameters({ input, endpoint }: RoutedOperation): JsonSchema[] {
  const properties: Record<string, Schema> = input.properties ?? {}
  const required: readonly string[] = input.required ?? []
  const describe = (place: 'path' | 'query', name: string, property: Schema): JsonSchema => {
    const { description, ...schema } = toJsonSchema(property)
    // A map is spelled `metadata[key]=value`, or `metadata.key=value`.
    const style = property.type === 'object' ? { style: 'deepObject', explode: true } : {}
    const about = description ? { description } : {}
    return {
      name,
      in: place,
      required: place === 'path' || required.includes(name),
      ...about,
      ...style,
      schema,
    }
  }
  return [
    ...endpoint.parameters.map((name) => describe('path', name, properties[name]!)),
    ...Object.entries(endpoint.query).map(([name, property]) => describe('query', name, property)),
  ]
}

export function describeBody(operation: RoutedOperation): JsonSchema {
  const { input, wholeBody, contentType, alsoContentType, examples, endpoint } = operation
  const { body: properties } = endpoint
  const required = ((input.required ?? []) as readonly string[]).filter((name) => name in properties)
  const whole = wholeBody === undefined ? undefined : properties[wholeBody]
  const schema = toJsonSchema(whole ?? { ...input, properties, required })
  const example = findExample(examples)
  const described = { schema, ...(example === undefined ? {} : { example }) }
  const types = [
    contentType ?? 'application/json',
    ...(alsoContentType === undefined ? [] : [alsoContentType]),
  ]
  return { required: true, content: Object.fromEntries(types.map((type) => [type, described])) }
}

/** The body of the first example that is given on standard input. */
function findExample(examples: readonly string[]): unknown {
  const given = examples.map((line) => /^echo '(.+)' \|/.exec(line)?.[1]).find((body) => body !== undefined)
  return given === undefined ? undefined : JSON.parse(given)
}

/** The answer that code gives in full may have any status; one of ours has the schema of its own status. */
export const STATUS_RANGES = ['2XX', '3XX', '4XX', '5XX']
const GIVEN = { description: 'The answer that the code gave.', content: { '*/*': {} } }
const PROBLEM = { $ref: '#/components/responses/Problem' }

export function describeResponses(operation: RoutedOperation, { traceId, replayed }: HeaderNames) {
  const { permissions, onlyFor, output, mayAnswerExisting, mayAnswerHttp, endpoint } = operation
  const { success, parameters, takesBody } = endpoint
  const takesKey = takesIdempotencyKey(operation)
  const headers = {
    [traceId.toUpperCase()]: { $ref: '#/components/headers/TraceId' },
    ...(takesKey && { [replayed.toUpperCase()]: { $ref: '#/components/headers/Replayed' } }),
  }
  const content = { 'application/json': { schema: toJsonSchema(output ?? {}) } }
  const done =
    output === undefined ? { description: 'Done.', headers } : { description: 'Done.', headers, content }
  const statuses = [
    '400',
    '401',
    ...(permissions.length > 0 || onlyFor !== undefined ? ['403'] : []),
    ...(parameters.length > 0 ? ['404'] : []),
    ...(takesKey ? ['409'] : []),
    ...(takesBody ? ['413', '415'] : []),
    '429',
    '500',
    'default',
  ]
  return {
    [success]: done,
    ...(mayAnswerExisting
      ? { 200: { ...done, description: 'The token that has this fingerprint already.' } }
      : {}),
    ...Object.fromEntries(statuses.map((status) => [status, PROBLEM])),
    ...(mayAnswerHttp ? Object.fromEntries(STATUS_RANGES.map((range) => [range, GIVEN])) : {}),
  }
}

export function describeIdempotencyKey(name: string): JsonSchema {
  return {
    name: name.toUpperCase(),
    in: 'header',
    required: false,
    description:
      'For 24 hours the same call with the same key gets the first answer, if that was a success, and does nothing.',
    schema: { type: 'string', minLength: 1, maxLength: MOST_KEY_CHARACTERS, pattern: '^[ -~]+$' },
  }
}
