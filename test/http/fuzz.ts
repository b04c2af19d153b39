/**
 * Sends random requests to a complete product in memory. Some requests are valid by their schemas, and some are not.
 * Every response must match the OpenAPI document, and no response may be an internal error.
 */
import fc from 'fast-check'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import type { Schema } from '../../src/framework/schema.js'
import { type Answerer, createAnswerer } from '../../src/http/answerer.js'
import { completeService } from '../../src/http/service.js'
import { registry } from '../../src/operations/all.js'
import type { App } from '../../src/vault/app.js'
import { ensureSampleApplications } from '../../src/vault/sample-applications.js'
import { openEphemeral } from '../support/ephemeral.js'
import { createContract, documentOf } from './contract.js'

/** A random request. The ids of existing records are inserted when the request is sent. */
interface Draw {
  operation: RoutedOperation
  /** For each path parameter, the position of a known id in the list of ids, or a text. */
  ids: (number | string)[]
  search: string
  headers: Record<string, string>
  body: string | Uint8Array
  key: 'management' | 'private' | 'public' | 'none' | 'unknown'
}

const HOSTILE = [
  '',
  '\0',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  '{{ data | alias_preserve_format }}',
  "{{ data | reveal: 1, 1, '#' }}",
  '{% for a in (1..100000000) %}x{% endfor %}',
  '{{ data | json: "$..*" }}',
  '{{',
  'a:b AND (c OR NOT d)',
  'data:"x" OR -id:y*',
  '/pci/high/',
  '/a//b/',
  '1/1/2100',
  '2100-02-30T00:00:00Z',
  '4242424242424242',
  '💥',
  'x'.repeat(401),
]

const text = fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ maxLength: 20 }), fc.uuid())
const anyJson = fc.oneof(
  { weight: 3, arbitrary: text },
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.jsonValue({ maxDepth: 3 }),
)

type ObjectSchema = Extract<Schema, { type: 'object' }>

/** In most cases, draws a valid value of the schema. In the other cases, draws any value. */
function drawValue(schema: Schema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 12, arbitrary: drawValid(schema) }, { weight: 1, arbitrary: anyJson })
}

function drawValid(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.type === undefined) return anyJson
  if (schema.type === 'string') return schema.enum === undefined ? text : fc.constantFrom(...schema.enum)
  if (schema.type === 'boolean') return fc.boolean()
  if (schema.type === 'array') return fc.array(drawValue(schema.items), { maxLength: 3 })
  if (schema.type === 'object') return drawObject(schema.properties ?? {}, schema)
  const min = (schema.minimum ?? 0) - 1
  return fc.integer({ min, max: Math.min(schema.maximum ?? 100, min + 201) })
}

function drawObject(
  properties: Readonly<Record<string, Schema>>,
  { required = [], additionalProperties }: Pick<ObjectSchema, 'required' | 'additionalProperties'>,
): fc.Arbitrary<unknown> {
  const drawn = Object.fromEntries(
    Object.entries(properties).map(([name, each]) => [name, drawNamed(name, drawValue(each))]),
  )
  const needed = required.filter((name) => Object.hasOwn(drawn, name))
  const named = fc.record(drawn, { requiredKeys: needed, noNullPrototype: true })
  if (typeof additionalProperties !== 'object') return named
  const entries = fc.dictionary(text, drawValue(additionalProperties), { maxKeys: 3, noNullPrototype: true })
  return fc.tuple(named, entries).map(([own, more]) => ({ ...own, ...more }))
}

/**
 * Plausible values by property name, because a schema cannot express all rules of the program. Without these values,
 * few requests would pass validation.
 */
const SENSIBLE: Readonly<Record<string, readonly unknown[]>> = {
  id: ['my-id-1', 'my-id-2', '{{ data | alias_preserve_length: 0, 2 }}'],
  containers: [['/pci/high/'], ['/general/', '/pii/low/']],
  container: ['/', '/pci/'],
  mask: ['{{ data }}', { shown: '{{ data.number | reveal_last: 4 }}' }, null],
  search_indexes: [['{{ data | stringify | last4 }}']],
  fingerprint_expression: ['{{ data | stringify }}'],
  metadata: [{ a: 'b' }],
  expires_at: ['1/1/2100', '2100-01-01'],
  name: ['a name'],
  email: ['ada@example.com'],
  query: ['', 'type:card OR metadata.a:b', 'NOT container:/pci/*'],
  permissions: [['token:create'], ['token:read', 'token:use'], ['log:read']],
  rules: [[], [{ priority: 1, container: '/', transform: 'mask', permissions: ['token:read'] }]],
  settings: [{ deduplicate_tokens: 'true' }, { disable_ephemeral_proxy: 'false' }],
}

function drawNamed(name: string, drawn: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const sensible = SENSIBLE[name]
  if (sensible === undefined) return drawn
  return fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...sensible) }, { weight: 1, arbitrary: drawn })
}

/** Data of tokens, valid for their types. */
const TYPED_DATA = [
  { type: 'card', data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2099 } },
  { type: 'bank', data: { routing_number: '021000021', account_number: '1234567' } },
  { type: 'social_security_number', data: '123-45-6789' },
  { type: 'token', data: { name: 'Ada', list: [1, 2, { a: null }] } },
  { type: 'card_number', data: '4242424242424242' },
]

function drawBody({ input, http, endpoint }: RoutedOperation): fc.Arbitrary<string | Uint8Array> {
  if (!endpoint.takesBody) return fc.constant('')
  const { body: properties } = endpoint
  const { whole: property } = http?.body ?? {}
  const whole = property === undefined ? undefined : properties[property]
  const value = whole === undefined ? drawObject(properties, input) : drawValue(whole)
  const typed = fc
    .tuple(value, fc.constantFrom(...TYPED_DATA))
    .map(([drawn, data]) => ({ ...(drawn as object), ...data }))
  return fc.oneof(
    { weight: 10, arbitrary: value.map((drawn) => JSON.stringify(drawn) ?? '') },
    { weight: 6, arbitrary: typed.map((drawn) => JSON.stringify(drawn)) },
    { weight: 1, arbitrary: fc.string() },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }) },
  )
}

function drawSearch({ endpoint: { query } }: RoutedOperation): fc.Arbitrary<string> {
  const names = Object.entries(query).flatMap(([name, schema]) =>
    schema.type === 'object' ? [`${name}.a`, `${name}[b]`] : [name],
  )
  if (names.length === 0) return fc.constant('')
  const value = fc.oneof(text, fc.integer({ min: -1, max: 120 }).map(String))
  const pair = fc
    .tuple(fc.constantFrom(...names, 'unknown'), value)
    .map(([name, each]) => `${encodeURIComponent(name)}=${encodeURIComponent(each)}`)
  return fc.oneof(
    { weight: 12, arbitrary: fc.array(pair, { maxLength: 4 }).map((pairs) => pairs.join('&')) },
    { weight: 1, arbitrary: fc.string({ maxLength: 10 }) },
  )
}

const drawHeaders: fc.Arbitrary<Record<string, string>> = fc.oneof(
  { weight: 20, arbitrary: fc.constant({}) },
  fc.constantFrom<Record<string, string>>(
    { 'content-type': 'text/plain' },
    { 'content-encoding': 'gzip' },
    { accept: 'application/json' },
    { 'svc-trace-id': 'mine' },
    { 'svc-trace-id': 'not fit to be logged' },
  ),
)

function drawRequest(operation: RoutedOperation): fc.Arbitrary<Draw> {
  const count = operation.endpoint.parameters.length
  const id = fc.oneof({ weight: 4, arbitrary: fc.nat() }, { weight: 1, arbitrary: text })
  return fc.record({
    operation: fc.constant(operation),
    ids: fc.array(id, { minLength: count, maxLength: count }),
    search: drawSearch(operation),
    headers: drawHeaders,
    body: drawBody(operation),
    key: fc.oneof(
      { weight: 10, arbitrary: fc.constant(isForManagement(operation) ? 'management' : 'private') },
      { weight: 2, arbitrary: fc.constant('public') },
      { weight: 1, arbitrary: fc.constantFrom('none', 'unknown', 'management', 'private') },
    ) as fc.Arbitrary<Draw['key']>,
  })
}

function isForManagement({ access }: RoutedOperation): boolean {
  return !access.permissions.some((permission) => permission.startsWith('token:'))
}

/**
 * The complete Coffer in memory to which the test sends its requests. The requests change the vault of this world. The
 * test replaces a world after some requests, because sooner or later a request deletes the tenant, or deletes or
 * restricts the keys.
 */
interface World {
  app: App
  answerer: Answerer
  keys: Record<Draw['key'], string>
  ids: string[]
}

const MAX_IDS = 200
/** After this number of requests, a new world replaces the old one. */
const WORLD_REQUESTS = 200

async function createWorld(faults: unknown[]): Promise<World> {
  const app = await openEphemeral({ tenantName: 'fuzz' })
  const samples = await ensureSampleApplications(app)
  const service = { host: app, registry, authenticate, version: '0' }
  const answerer = createAnswerer(completeService({ ...service, reportFault: (error) => faults.push(error) }))
  const keyOf = (type: 'management' | 'private' | 'public') => samples[type]?.key ?? ''
  return {
    app,
    answerer,
    keys: {
      management: keyOf('management'),
      private: keyOf('private'),
      public: keyOf('public'),
      none: '',
      unknown: 'key_1111111111111111111111',
    },
    ids: ['nothing'],
  }
}

/**
 * Sends `count` requests and counts the responses by status. @throws Error with the seed and the smallest request that
 * fails
 */
export async function runFuzz(count: number) {
  const faults: unknown[] = []
  const statuses: Record<number, number> = {}
  const contract = createContract(documentOf(registry))
  let world = await createWorld(faults)
  let sent = 0
  const draws = fc.oneof(...registry.routed.map(drawRequest))
  await fc.assert(
    fc.asyncProperty(draws, async (draw) => {
      const { method, path } = draw.operation.endpoint
      const answer = await send(world, draw)
      statuses[answer.status] = (statuses[answer.status] ?? 0) + 1
      const breach = contract.findBreach(method, path, answer)
      const fault = faults.shift()
      if (fault !== undefined) throw new Error(`${method} ${path}: a fault of ours`, { cause: fault })
      if (answer.status >= 500) throw new Error(`${method} ${path}: ${answer.body}`)
      if (breach !== undefined) throw new Error(`${method} ${path}: ${breach}\n${answer.body}`)
      remember(world, answer.body)
      const isLockedOut = answer.status === 401 && draw.key !== 'none' && draw.key !== 'unknown'
      if (isLockedOut || ++sent % WORLD_REQUESTS === 0) {
        await world.app.close()
        world = await createWorld(faults)
      }
    }),
    { numRuns: count },
  )
  await world.app.close()
  return { statuses }
}

function send({ answerer, keys, ids }: World, { operation, ids: chosen, search, headers, body, key }: Draw) {
  const { method, path, takesBody } = operation.endpoint
  let at = 0
  const target = path.replaceAll(/\{[a-z_]+\}/g, () => {
    const id = chosen[at++] ?? ''
    const spelled = typeof id === 'number' ? ids[id % ids.length]! : id
    // The text `-` replaces an empty id, because an empty id would change the path.
    return encodeURIComponent(spelled || '-')
  })
  const bytes = Buffer.from(body as string)
  return answerer({
    method,
    target: search === '' ? target : `${target}?${search}`,
    headers: {
      ...(takesBody ? { 'content-type': operation.http?.body?.types?.[0] ?? 'application/json' } : {}),
      ...(keys[key] === '' ? {} : { 'svc-api-key': keys[key] }),
      ...headers,
    },
    readBody: async (limitBytes) => (bytes.length > limitBytes ? undefined : bytes),
  })
}

/** Collects the ids in responses, so that later requests find existing records. */
function remember({ ids }: World, body: string): void {
  for (const [, id] of body.matchAll(/"id":"([^"\\]+)"/g)) {
    if (ids.length < MAX_IDS) ids.push(id!)
    else ids[Math.floor(Math.abs(Math.sin(ids.length + id!.length)) * MAX_IDS)] = id!
  }
}
