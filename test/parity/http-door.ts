/** The way in over HTTP, as a function from a step to an answer; every answer is held against the OpenAPI document. */

import { authenticate } from '../../src/framework/authenticate.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import { createAnswerer } from '../../src/http/answerer.js'
import type { Answer as HttpAnswer } from '../../src/http/exchange.js'
import { createDocument } from '../../src/http/openapi.js'
import { completeService, DEFAULT_BODY_LIMIT_BYTES, DEFAULT_PREFIX } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { openEphemeral } from '../ephemeral.js'
import { createContract, isGiven } from '../http/contract.js'
import type { Answer } from './cases.js'
import type { Door, MovableClock } from './doors.js'

/** HTTP knows no owner; these stand for one, as the cases need one. */
const OWNER = 'owner'
const REVEALING_OWNER = 'owner, revealing'

/** One for all cases: compiling its schemas takes longer than a case. */
const contract = createContract(
  createDocument(registry, {
    version: '0.0.0',
    prefix: DEFAULT_PREFIX,
    bodyLimitBytes: DEFAULT_BODY_LIMIT_BYTES,
  }),
)

/** HTTP without sockets, on a vault in memory. */
export async function openHttpDoor(clock: MovableClock): Promise<Door> {
  const app = await openEphemeral({ tenantName: 'default', clock: () => clock.now })
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
  return {
    name: 'HTTP',
    ask: async ({ operation, input, key, reveal }) => {
      const definition = registry.routed.find(({ name }) => name === operation)
      if (definition === undefined) throw new Error(`there is no operation "${operation}"`)
      const { method, path } = definition.endpoint
      const { target, body } = spellRequest(definition, input)
      const answer = await answerer({
        method,
        target,
        headers: {
          'svc-api-key': key ?? (reveal ? REVEALING_OWNER : OWNER),
          ...(body === undefined ? {} : { 'content-type': definition.contentType ?? 'application/json' }),
        },
        readBody: async () => Buffer.from(body ?? ''),
      })
      const breach = contract.findBreach(method, path, answer)
      if (breach !== undefined) throw new Error(`${operation} breaks the document: ${breach}\n${answer.body}`)
      return readAnswer(definition, answer)
    },
    close: () => app.close(),
  }
}

/** The request that asks for `input`: its path, its query, and the rest as the body. */
export function spellRequest(
  definition: RoutedOperation,
  input: Record<string, unknown>,
): { target: string; body: string | undefined } {
  const { path, parameters, query, takesBody } = definition.endpoint
  const target = path.replaceAll(/\{([a-z_]+)\}/g, (_, name: string) =>
    encodeURIComponent(String(input[name])),
  )
  const pairs = Object.keys(query).flatMap((name) => spellPairs(name, input[name]))
  const search = pairs.map((pair) => pair.map(encodeURIComponent).join('=')).join('&')
  const isInPath = (name: string) => parameters.includes(name)
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !isInPath(name)))
  const body = definition.wholeBody === undefined ? rest : (input[definition.wholeBody] ?? null)
  return {
    target: search === '' ? target : `${target}?${search}`,
    body: takesBody ? JSON.stringify(body) : undefined,
  }
}

function spellPairs(name: string, value: unknown): [string, string][] {
  if (value === undefined) return []
  if (Array.isArray(value)) return value.map((item) => [name, String(item)])
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).map(([key, item]) => [`${name}.${key}`, String(item)])
  return [[name, String(value)]]
}

/** An answer that code gave, without the headers that every answer has. */
function readGiven({ status: statusCode, headers, body }: HttpAnswer): unknown {
  const ours = ['svc-trace-id', 'cache-control', 'content-security-policy', 'x-content-type-options']
  const { 'content-type': type, ...given } = headers
  for (const name of ours) delete given[name]
  const isJson = type?.startsWith('application/json') === true
  const kept =
    type === undefined || isJson || type === 'text/plain; charset=utf-8' ? {} : { 'content-type': type }
  const read = body === '' ? {} : { body: isJson ? JSON.parse(body) : body }
  return { statusCode, headers: { ...given, ...kept }, ...read }
}

/** A query parameter has its place in its name here, and nowhere else. */
function readAnswer(definition: RoutedOperation, answer: HttpAnswer): Answer {
  const { status, body } = answer
  if (isGiven(answer)) return { status, body: { res: readGiven(answer) } }
  if (body === '') return { status }
  const result = JSON.parse(body) as Record<string, unknown>
  if (status < 400 || typeof result.errors !== 'object' || result.errors === null)
    return { status, body: result }
  const { query } = definition.endpoint
  const errors = Object.entries(result.errors).map(([path, messages]) => {
    const bare = path.replace(/^query\./, '')
    if (Object.hasOwn(query, /^[^.[]*/.exec(bare)![0]) && bare === path)
      throw new Error(`${path} is in the query, which the answer does not say`)
    return [bare, messages]
  })
  return { status, body: { ...result, errors: Object.fromEntries(errors) } }
}
