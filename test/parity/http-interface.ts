/**
 * Performs the steps of the cases over HTTP, and checks every response against the OpenAPI document.
 */

import type { Answer } from '../../src/client/conform/cases.js'
import { formatRequest } from '../../src/client/format-request.js'
import { withoutServer } from '../../src/control/own-server.js'
import { readJsonBody } from '../../src/domain/proxy/code-answer.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import { createAnswerer } from '../../src/http/answerer.js'
import type { HttpResponse as HttpAnswer, HttpRequest } from '../../src/http/exchange.js'
import { createDocument } from '../../src/http/openapi/openapi.js'
import { DEFAULT_BODY_LIMIT_BYTES, DEFAULT_PREFIX } from '../../src/http/server.js'
import { completeService } from '../../src/http/service.js'
import { registry } from '../../src/operations/all.js'
import { createContract, isGiven } from '../http/contract.js'
import { openEphemeral } from '../support/ephemeral.js'
import { ALLOWED } from './destination.js'
import type { Interface, MovableClock, Request } from './interfaces.js'

type Json = { proxy_error?: object } | null

/**
 * Over HTTP, no caller is the owner of the vault. If a case needs an owner, this interface uses applications instead.
 */
const OWNER = 'owner'
const REVEALING_OWNER = 'owner,revealing'

/** All cases share one contract, because compiling its schemas takes longer than a case. */
const contract = createContract(
  createDocument(registry, {
    version: '0.0.0',
    prefix: DEFAULT_PREFIX,
    bodyLimitBytes: DEFAULT_BODY_LIMIT_BYTES,
  }),
)

/** Sends one request. */
type Send = (
  request: Pick<HttpRequest, 'method' | 'target' | 'headers'> & { body: string },
) => Promise<{ status: number; headers: HttpAnswer['headers']; body: string }>

/** Opens the interface HTTP without sockets, with a vault in memory. */
export async function openHttpInterface(clock: MovableClock): Promise<Interface> {
  const app = await openEphemeral({ tenantName: 'default', clock: () => clock.now })
  app.configureReactors({ allowNet: [ALLOWED] })
  app.attachServer(withoutServer(app))
  const options = completeService({
    host: app,
    registry,
    version: '0.0.0',
    authenticate: async (host, key) => {
      if (key === OWNER || key === REVEALING_OWNER) return app.owner({ reveal: key === REVEALING_OWNER })
      return authenticate(host, key)
    },
  })
  const answerer = createAnswerer(options)
  const send: Send = async ({ body, ...ask }) => {
    const { status, headers, ...answer } = await answerer({ ...ask, readBody: async () => Buffer.from(body) })
    const pieces: Uint8Array[] = [Buffer.from(answer.body), answer.bytes ?? Buffer.alloc(0)]
    for await (const piece of answer.stream ?? []) pieces.push(piece)
    return { status, headers, body: Buffer.concat(pieces).toString() }
  }
  return {
    name: 'HTTP',
    ask: (request) => askHttp(send, request, request.key ?? (request.reveal ? REVEALING_OWNER : OWNER)),
    close: () => app.close(),
  }
}

/** Sends a step as a request. The function also checks the response against the OpenAPI document. */
async function askHttp(
  send: Send,
  { operation, input, idempotencyKey }: Request,
  key: string,
): Promise<Answer> {
  if (operation === 'proxy call') return callThrough(send, input, key)
  const definition = registry.routed.find(({ name }) => name === operation)
  if (definition === undefined) throw new Error(`there is no operation "${operation}"`)
  const { method, path } = definition.endpoint
  const { target, body, contentType } = formatRequest(definition, input)
  const answer = await send({
    method,
    target,
    headers: {
      'svc-api-key': key,
      ...(idempotencyKey === undefined ? {} : { 'svc-idempotency-key': idempotencyKey }),
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
    },
    body: (body ?? '') as string,
  })
  const breach = contract.findBreach(method, path, answer)
  if (breach !== undefined) throw new Error(`${operation} breaks the document: ${breach}\n${answer.body}`)
  const replay = answer.headers['svc-idempotent-replayed'] === 'true' ? ({ isReplayed: true } as const) : {}
  return { ...readAnswer(definition, answer), ...replay }
}

/** Sends `proxy call` over HTTP. The input must name the key of a proxy, or a URL. */
async function callThrough(send: Send, input: Record<string, unknown>, key: string): Promise<Answer> {
  const { target, method = 'POST', path = '', headers = {}, body } = input as Record<string, string>
  const text = typeof body === 'string' || body === undefined ? (body ?? '') : JSON.stringify(body)
  const answer = await send({
    method,
    target: `/proxy${path}`,
    headers: {
      'svc-api-key': key,
      [`svc-proxy-${target!.includes('://') ? 'url' : 'key'}`]: target!,
      ...(text === body || text === '' ? {} : { 'content-type': 'application/json' }),
      ...(headers as unknown as Record<string, string>),
    },
    body: text,
  })
  const json = readJsonBody(answer.headers, answer.body)
  const result = answer.body === '' ? undefined : json === undefined ? answer.body : (json as Json)
  if (typeof result === 'object' && result?.proxy_error !== undefined)
    return { status: answer.status, body: result.proxy_error }
  // The headers that every response has are left out.
  const passed = Object.entries(answer.headers).filter(
    ([name]) => !/^(?:svc-trace-id|access-control-.*)$/.test(name),
  )
  const res = {
    statusCode: answer.status,
    headers: Object.fromEntries(passed),
    ...(result !== undefined && { body: result }),
  }
  return { status: answer.status, body: { res } }
}

/** Returns a response that code made, without the headers that every response has. */
function readGiven({ status: statusCode, headers, body }: Awaited<ReturnType<Send>>): unknown {
  const ours = [
    'svc-trace-id',
    'svc-idempotent-replayed',
    'cache-control',
    'content-security-policy',
    'x-content-type-options',
  ]
  const { 'content-type': type, ...given } = headers
  for (const name of ours) delete given[name]
  const isJson = type?.startsWith('application/json') === true
  const kept =
    type === undefined || isJson || type === 'text/plain; charset=utf-8' ? {} : { 'content-type': type }
  const read = body === '' ? {} : { body: isJson ? JSON.parse(body) : body }
  return { statusCode, headers: { ...given, ...kept }, ...read }
}

/** Only over HTTP, an error about a query parameter begins with `query.`. This function removes the prefix. */
function readAnswer(definition: RoutedOperation, answer: Awaited<ReturnType<Send>>): Answer {
  const { status, body } = answer
  if (isGiven(answer)) return { status, body: { res: readGiven(answer) } }
  if (body === '') return { status }
  const result = JSON.parse(body) as Record<string, unknown>
  if (status < 400 || typeof result.errors !== 'object' || result.errors === null)
    return { status, body: result }
  const { query } = definition.endpoint
  const errors = Object.entries(result.errors).map(([path, messages]) => {
    if (path === 'SVC-IDEMPOTENCY-KEY') return ['idempotency_key', messages]
    const bare = path.replace(/^query\./, '')
    if (Object.hasOwn(query, /^[^.[]*/.exec(bare)![0]) && bare === path)
      throw new Error(`${path} is in the query, which the answer does not say`)
    return [bare, messages]
  })
  return { status, body: { ...result, errors: Object.fromEntries(errors) } }
}
