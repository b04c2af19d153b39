/** A small registry behind the real answerer, for tests of HTTP that are not about tokens. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Permission } from '../../src/domain/access/permissions.js'
import { CofferError } from '../../src/errors.js'
import type { Caller } from '../../src/framework/caller/caller.js'
import { type AnyOperation, Existing, type Host, operation } from '../../src/framework/operation.js'
import { listOf, pageInput } from '../../src/framework/page.js'
import { createRegistry } from '../../src/framework/registry.js'
import { toJsonSchema } from '../../src/framework/schema.js'
import type { AccessEntry } from '../../src/http/access-log.js'
import { type Answerer, type AnswererOptions, createAnswerer } from '../../src/http/answerer.js'
import type { HttpRequest, HttpResponse } from '../../src/http/exchange.js'
import { createDocument } from '../../src/http/openapi/openapi.js'
import { createPages } from '../../src/http/pages/pages.js'
import {
  type RunningServer,
  type SocketOptions,
  type SocketService,
  startServer,
} from '../../src/http/server.js'
import type { Store, StoreWriter } from '../../src/storage/store.js'
import { createContract } from './contract.js'

const id = { type: 'string' } as const
const common = { columns: [], examples: ['coffer thing'] }

/** What handlers were given, newest last. */
export interface Toy {
  options: AnswererOptions
  seen: Record<string, unknown>[]
  entries: AccessEntry[]
  faults: unknown[]
  ask(request: ToyRequest): Promise<ToyAnswer>
}

export interface ToyRequest {
  method?: string
  target: string
  headers?: Record<string, string>
  body?: string | Uint8Array
}

export type ToyAnswer = HttpResponse & { json: unknown }

export const KEYS = { all: 'key_all', reader: 'key_reader' }
export const APPLICATIONS = {
  all: '00000000-0000-4000-8000-000000000001',
  reader: '00000000-0000-4000-8000-000000000002',
}

function createOperations(seen: Record<string, unknown>[]): AnyOperation[] {
  const note = (input: Record<string, unknown>) => {
    seen.push(input)
    return input
  }
  return [
    operation({
      ...common,
      name: 'thing create',
      summary: 'Make a thing.',
      permissions: ['token:create'],
      route: 'POST /things',
      success: 201,
      output: {},
      mayAnswerExisting: true,
      input: {
        type: 'object',
        properties: {
          id,
          name: { type: 'string', maxLength: 5 },
          data: { nullable: true },
          deduplicate_token: { type: 'boolean' },
        },
        required: ['name'],
        additionalProperties: true,
      },
      run: async (_, input) => {
        note(input)
        return input.deduplicate_token ? new Existing(input) : input
      },
    }),
    operation({
      ...common,
      name: 'thing list',
      summary: 'List things.',
      permissions: ['token:read'],
      route: 'GET /things',
      output: {},
      input: {
        type: 'object',
        properties: {
          id: { type: 'array', items: id, maxItems: 3 },
          metadata: { type: 'object', additionalProperties: { type: 'string' }, maxProperties: 3 },
          deep: { type: 'boolean' },
          ...pageInput(50),
        },
        additionalProperties: true,
      },
      run: async (_, input) => {
        note(input)
        return listOf([], 0, { page: input.page ?? 1, size: input.size ?? 20 })
      },
    }),
    operation({
      ...common,
      name: 'thing search',
      summary: 'Search things.',
      permissions: [],
      route: 'POST /things/search',
      output: {},
      input: { type: 'object', properties: { query: id }, additionalProperties: true },
      run: async (_, input) => note(input),
    }),
    operation({
      ...common,
      name: 'thing get',
      summary: 'Get a thing.',
      permissions: ['token:read'],
      route: 'GET /things/{id}',
      output: {},
      input: { type: 'object', properties: { id }, required: ['id'], additionalProperties: true },
      run: async (_, input) => {
        note(input)
        if (input.id === 'fault') throw new TypeError('4242424242424242')
        if (input.id !== 'missing') return { id: input.id }
        throw new CofferError('not_found', 'There is no such thing.')
      },
    }),
    operation({
      ...common,
      name: 'thing update',
      summary: 'Change a thing.',
      permissions: ['token:update'],
      route: 'PATCH /things/{id}',
      output: {},
      contentType: 'application/merge-patch+json',
      input: {
        type: 'object',
        properties: { id, name: { type: 'string' } },
        required: ['id'],
        additionalProperties: true,
      },
      run: async (_, input) => note(input),
    }),
    operation({
      ...common,
      name: 'thing link',
      summary: 'Link two things.',
      permissions: ['token:read'],
      route: 'POST /things/{id}/links/{other_id}',
      input: {
        type: 'object',
        properties: { id, other_id: id },
        required: ['id', 'other_id'],
        additionalProperties: true,
      },
      run: async (_, input) => {
        note(input)
        return undefined
      },
    }),
    operation({
      ...common,
      name: 'thing delete',
      summary: 'Delete a thing.',
      permissions: ['token:delete'],
      route: 'DELETE /things/{id}',
      input: { type: 'object', properties: { id }, required: ['id'], additionalProperties: true },
      run: async (_, input) => {
        note(input)
        return undefined
      },
    }),
  ]
}

/** The toy with any of the answerer's options replaced. */
export function createToy(changes: Partial<AnswererOptions> = {}): Toy {
  const seen: Record<string, unknown>[] = []
  const entries: AccessEntry[] = []
  const faults: unknown[] = []
  const registry = createRegistry([{ name: 'thing', summary: 'Things', operations: createOperations(seen) }])
  const prefix = changes.prefix ?? 'svc'
  const bodyLimitBytes = changes.bodyLimitBytes ?? 1_000
  const options: AnswererOptions = {
    host: createHost(registry.operations),
    registry,
    authenticate,
    prefix,
    bodyLimitBytes,
    pages: createPages(() => createDocument(registry, { version: '1.2.3', prefix, bodyLimitBytes })),
    record: (entry) => entries.push(entry),
    reportFault: (error) => faults.push(error),
    clock: () => 0,
    cors: false,
    ...changes,
  }
  const answerer = createAnswerer(options)
  return { options, seen, entries, faults, ask: async (request) => withJson(await answerer(toAsk(request))) }
}

const contract = createContract(
  createDocument(createRegistry([]), { version: '0.0.0', prefix: 'svc', bodyLimitBytes: 1 }),
)

function withJson(answer: HttpResponse): ToyAnswer {
  const breach = answer.status < 400 ? undefined : contract.findProblemBreach(answer)
  if (breach !== undefined) throw new Error(`the answer breaks the document: ${breach}\n${answer.body}`)
  const isJson = answer.headers['content-type']?.includes('json')
  return { ...answer, json: isJson ? JSON.parse(answer.body) : undefined }
}

/** Serves `answerer` on 127.0.0.1 and a free port. */
export function serve(
  answerer: Answerer,
  options: Partial<SocketService & SocketOptions> = {},
): Promise<RunningServer> {
  const host = { createUuid: () => 'below-http' }
  return startServer(
    answerer,
    { host, cors: false, ...options },
    { addresses: ['127.0.0.1'], port: 0, ...options },
  )
}

/** With the key that may do everything, unless the request brings headers of its own. */
function toAsk({
  method = 'GET',
  target,
  headers = { 'svc-api-key': KEYS.all },
  body = '',
}: ToyRequest): HttpRequest {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return {
    method,
    target,
    headers,
    readBody: async (limitBytes) => (bytes.length > limitBytes ? undefined : bytes),
  }
}

export async function authenticate(_: Host, key: string): Promise<Caller> {
  if (key === KEYS.all) return callerWith(APPLICATIONS.all, () => true)
  if (key === KEYS.reader) return callerWith(APPLICATIONS.reader, (permission) => permission === 'token:read')
  throw new CofferError('unauthenticated', 'This API key is not known.')
}

function callerWith(applicationId: string, holds: (permission: Permission) => boolean): Caller {
  return {
    tenant: 1,
    actor: { type: 'application', id: applicationId },
    holds,
    holdsEverywhere: holds,
    transform: () => 'reveal',
  }
}

function createHost(operations: readonly AnyOperation[]): Host {
  const ajv = new Ajv2020({ strict: true, allErrors: true, ownProperties: true })
  const validators = new Map(operations.map(({ name, input }) => [name, ajv.compile(toJsonSchema(input))]))
  let uuids = 0
  const host: Partial<Host> = {
    store: {
      read: async (work) => work({} as StoreWriter),
      write: async (work) => work({ now: 0 } as StoreWriter),
      close: async () => {},
    } as Partial<Store> as Store,
    random: { bytes: (count) => new Uint8Array(count) },
    createUuid: () => `made-${++uuids}`,
    expressions: () => Promise.reject(new Error('the toy has no expressions')),
    validate: ({ name }, input) => {
      const validate = validators.get(name)!
      if (validate(input)) return
      const paths = validate.errors!.map(({ instancePath, params }) =>
        [...instancePath.split('/').slice(1), params.missingProperty ?? []].flat().join('.'),
      )
      throw new CofferError('validation', 'The request is not valid.', {
        errors: Object.fromEntries(paths.map((path) => [path, ['is wrong']])),
      })
    },
  }
  return host as Host
}
