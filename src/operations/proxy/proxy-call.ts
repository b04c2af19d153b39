import { isExpired } from '../../domain/access/application.js'
import { canonicalJson } from '../../domain/json/json.js'
import { type HeaderMap, readHeaders, readJsonBody, textOfBody } from '../../domain/proxy/code-answer.js'
import { isKey } from '../../domain/text/base58.js'
import { CofferError, validationError } from '../../errors.js'
import { applicationCaller } from '../../framework/caller/authenticate.js'
import { type Caller, decideBy } from '../../framework/caller/caller.js'
import { requiresAny } from '../../framework/declaration.js'
import { type Relay, relay } from '../../framework/operation.js'
import { HttpAnswer } from '../../framework/outcome.js'
import { anyJson, component, text, textMap } from '../../framework/output.js'
import type { RelayRequest } from '../../framework/ports/outbound.js'
import { inputSchema } from '../../framework/schema.js'
import type { StoreReader } from '../../storage/store.js'
import { callDestination, describeCall, findKey, type Target } from './proxy-relay.js'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
/** A command does not forward headers with this prefix. */
const COMMAND_PREFIX = 'svc'
const MAX_PRINTED_BYTES = 8 * 1024 * 1024

const proxyRelay: Relay = {
  path: '/proxy',
  methods: METHODS,
  describeError: (problem) => ({ proxy_error: problem }),
  admit: ({ store, hashSecret }, request) =>
    store.read(async (reader) => {
      const { key = '' } = readKey(request)
      const entry = await findKey(reader, (secret) => hashSecret(secret, reader), key)
      return entry && readKeylessCaller(reader, entry.tenant, entry.proxy_id)
    }),
  run: (session, request) => {
    const { key, query } = readKey(request)
    const url = request.headers[`${request.prefix}-proxy-url`]
    if (key === undefined && url === undefined) {
      const names = ['key', 'url'].map((name) => `${request.prefix}-proxy-${name}`.toUpperCase())
      throw validationError(`Send the key of a proxy in ${names[0]}, or a destination in ${names[1]}.`)
    }
    // Clients of Coffer can name a proxy by its key or by its id. A call by id needs an API key.
    const target: Target = key === undefined ? { url: url! } : isKey(key) ? { key } : { id: key }
    return callDestination(session, { ...request, query }, target)
  },
}

/**
 * The caller of a request without an API key: the application of the proxy, or a caller without permissions.
 * Returns undefined if the proxy requires an API key.
 */
async function readKeylessCaller(
  reader: StoreReader,
  tenant: number,
  id: string,
): Promise<Caller | undefined> {
  const proxy = await reader.get('proxy', tenant, id)
  if (proxy?.require_auth !== false) return undefined
  const found = await reader.get('application', tenant, proxy.application_id ?? '')
  const isUsable = found !== undefined && !isExpired(found, reader.now)
  const actor: Caller['actor'] = { type: 'system', id: proxy.id }
  const caller = isUsable
    ? applicationCaller(tenant, found)
    : { tenant, actor, ...decideBy({ permissions: [], rules: [] }) }
  const read = async (later: StoreReader) => {
    const current = await readKeylessCaller(later, tenant, id)
    if (current?.actor.id === caller.actor.id) return current
    throw new CofferError(
      'unauthenticated',
      'This proxy, or its application, was deleted or changed during the call.',
    )
  }
  // The rights are always read again, because the PostgreSQL store does not count changes of proxies.
  return { ...caller, source: { isCurrent: () => false, read } }
}

export const callProxy = relay({
  name: 'proxy call',
  summary: 'Call another server, and put the data of a token in place of {{ token id }}.',
  details:
    'Expressions may be in the body, the values of headers, the path and the query. At most 20 tokens. Over HTTP: any\n' +
    'method, path and body on /proxy, with the header SVC-PROXY-KEY or SVC-PROXY-URL. The host must be named with\n' +
    '--allow-net. With --dry-run nothing is sent and no code runs: the request is shown, with masked data.',
  access: requiresAny('token:use', 'proxy:invoke'),
  http: { mayAnswer: 'anything' },
  input: inputSchema(['target'], {
    target: { type: 'string', refersTo: 'proxy', description: 'The id, name or key of a proxy, or a URL.' },
    method: { type: 'string', enum: METHODS, default: 'POST', description: `One of ${METHODS.join(', ')}.` },
    path: { type: 'string', description: 'Appended to the URL of the destination: /charges?limit=3.' },
    headers: {
      type: 'object',
      additionalProperties: { type: 'string' },
      maxProperties: 100,
      sensitive: true,
      flag: 'header',
      description: 'A header: authorization=@file.',
    },
    body: { sensitive: true, description: 'The body: any JSON, or text.' },
    dry_run: { type: 'boolean', description: 'Show the request, masked, instead of sending it.' },
  }),
  output: component('ProxyCall', ['method', 'url', 'headers', 'body'], {
    method: text,
    url: text,
    headers: textMap,
    'body?': anyJson('JSON, or text.'),
  }),
  cli: { positionals: ['target'] },
  examples: [
    `echo '{"card":"{{ card-1 }}"}' | coffer proxy call payments --path /charges --body - --dry-run --allow-net api.example.com`,
    'coffer serve --ephemeral --port 4919 > server.txt & sleep 2; coffer proxy call http://localhost:4919/tokens --allow-net localhost:4919; kill $!; wait',
  ],
  relay: proxyRelay,
  async run(session, { target: named, body: sent, dry_run, ...input }) {
    const request = toRequest(input, sent)
    const kind = named.includes('://') ? 'url' : isKey(named) ? 'key' : 'id'
    const target = { [kind]: named } as Target
    if (dry_run === true) return describeCall(session, request, target)
    const { status, headers, collect } = await callDestination(session, request, target)
    const bytes = await collect(MAX_PRINTED_BYTES)
    const text = textOfBody(headers, bytes) ?? Buffer.from(bytes).toString('base64')
    const json = readJsonBody(headers, text)
    const body = json === undefined ? text : json
    return new HttpAnswer({ statusCode: status, headers, ...(text === '' ? {} : { body }) })
  },
})

function readKey({ headers, query, prefix }: RelayRequest): { key: string | undefined; query: string } {
  const name = `${prefix}-proxy-key`
  const isKey = (pair: string) => pair === name || pair.startsWith(`${name}=`)
  const pairs = query.split('&')
  const given = pairs.find(isKey)?.slice(name.length + 1)
  const rest = given === undefined ? query : pairs.filter((pair) => !isKey(pair)).join('&')
  return { key: headers[name] ?? given, query: rest }
}

function toRequest(
  { method = 'POST', path = '', headers = {} }: { method?: string; path?: string; headers?: HeaderMap },
  body: unknown,
): RelayRequest {
  const [, before = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(path)!
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  const isJson = body !== undefined && typeof body !== 'string'
  const type = isJson ? { 'content-type': 'application/json' } : {}
  const bytes = new TextEncoder().encode(isJson ? canonicalJson(body) : body)
  return {
    method,
    path: before === '' || before.startsWith('/') ? before : `/${before}`,
    query,
    headers: readHeaders({ ...type, ...Object.fromEntries(given) }, 'headers'),
    prefix: COMMAND_PREFIX,
    readBody: async () => bytes,
  }
}
