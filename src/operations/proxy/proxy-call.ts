/** Calls through proxies, over HTTP and as a command. */

import { canonicalJson, tryJson } from '../../domain/json/json.js'
import { type CodeAnswer, readHeaders } from '../../domain/proxy/code-answer.js'
import { isJsonContent, textOfBody } from '../../domain/proxy/proxy-body.js'
import { isKey } from '../../domain/text/base58.js'
import { validationError } from '../../errors.js'
import { applicationCaller, isExpiredApplication } from '../../framework/caller/authenticate.js'
import { type Caller, decideBy } from '../../framework/caller/caller.js'
import { operation, type Relay } from '../../framework/operation.js'
import { HttpAnswer } from '../../framework/outcome.js'
import { anyJson, component, text, textMap } from '../../framework/output.js'
import type { OutboundAnswer } from '../../framework/ports/outbound.js'
import type { RelayRequest } from '../../framework/relay.js'
import { inputSchema } from '../../framework/schema.js'
import { callDestination, describeCall, findKey, type Target } from './proxy-relay.js'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
/** The prefix of headers that a command does not pass on. */
const COMMAND_PREFIX = 'svc'
const MOST_PRINTED_BYTES = 8 * 1024 * 1024

const relay: Relay = {
  path: '/proxy',
  methods: METHODS,
  describeError: (problem) => ({ proxy_error: problem }),
  admit: (store, hashSecret, request) =>
    store.read(async (reader) => {
      const { key } = readKey(request)
      if (key === undefined) return undefined
      const entry = await findKey(reader, (secret) => hashSecret(secret, reader), key)
      const proxy = entry && (await reader.get('proxy', entry.tenant, entry.proxy_id))
      if (entry === undefined || proxy?.require_auth !== false) return undefined
      const { application_id: bound } = proxy
      const application =
        bound === undefined ? undefined : await reader.get('application', entry.tenant, bound)
      const isUsable = application !== undefined && !isExpiredApplication(application, reader.now)
      if (isUsable) return applicationCaller(entry.tenant, application)
      const actor: Caller['actor'] = { type: 'system', id: proxy.id }
      return { tenant: entry.tenant, actor, ...decideBy({ permissions: [], rules: [] }) }
    }),
  run: (session, request) => {
    const { key, query } = readKey(request)
    const url = request.headers[`${request.prefix}-proxy-url`]
    if (key === undefined && url === undefined) {
      const names = ['key', 'url'].map((name) => `${request.prefix}-proxy-${name}`.toUpperCase())
      throw validationError(`Send the key of a proxy in ${names[0]}, or a destination in ${names[1]}.`)
    }
    const target: Target = key === undefined ? { url: url! } : { key }
    return callDestination(session, { ...request, query }, target)
  },
}

export const callProxy = operation({
  name: 'proxy call',
  audience: 'command',
  summary: 'Call another server, in which {{ token id }} stands for the data of the token.',
  details:
    'Expressions may be in the body, the values of headers, the path and the query. At most 20 tokens. Over HTTP: any\n' +
    'method, path and body on /proxy, with the header SVC-PROXY-KEY or SVC-PROXY-URL. The host must be named with\n' +
    '--allow-net. With --dry-run nothing is sent and no code runs: the request is shown, with masked data.',
  permissions: ['token:use', 'proxy:invoke'],
  needsOnePermission: true,
  positionals: ['target'],
  input: inputSchema(['target'], {
    target: {
      type: 'string',
      refersTo: 'proxy',
      description: 'The id, name or key of a proxy, or the URL of a destination.',
    },
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
  examples: [
    `coffer proxy call payments --path /charges --body '{"card":"{{ card-1 }}"}' --dry-run --allow-net api.example.com`,
    'coffer serve --ephemeral --port 4919 > server.txt & sleep 2; coffer proxy call http://localhost:4919/tokens --allow-net localhost:4919; kill $!; wait',
  ],
  mayAnswerHttp: true,
  relay,
  async runDetached(session, { target: named, body, dry_run, ...input }) {
    const request = toRequest(input, body)
    const target: Target = named.includes('://')
      ? { url: named }
      : isKey(named)
        ? { key: named }
        : { id: named }
    if (dry_run === true) return describeCall(session, request, target)
    const answer = await callDestination(session, request, target)
    return new HttpAnswer(await print(answer))
  },
})

/** The key of the proxy, and the query without it. */
function readKey({ headers, query, prefix }: RelayRequest): { key: string | undefined; query: string } {
  const name = `${prefix}-proxy-key`
  const isKey = (pair: string) => pair === name || pair.startsWith(`${name}=`)
  const pairs = query.split('&')
  const given = pairs.find(isKey)?.slice(name.length + 1)
  const rest = given === undefined ? query : pairs.filter((pair) => !isKey(pair)).join('&')
  return { key: headers[name] ?? given, query: rest }
}

function toRequest(
  input: { method?: string; path?: string; headers?: Record<string, string> },
  body: unknown,
): RelayRequest {
  const { method = 'POST', path = '', headers = {} } = input
  const [, before = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(path)!
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  const type = body === undefined || typeof body === 'string' ? {} : { 'content-type': 'application/json' }
  const bytes = new TextEncoder().encode(
    body === undefined ? '' : typeof body === 'string' ? body : canonicalJson(body),
  )
  return {
    method,
    path: before === '' || before.startsWith('/') ? before : `/${before}`,
    query,
    headers: readHeaders({ ...type, ...Object.fromEntries(given) }, 'headers'),
    prefix: COMMAND_PREFIX,
    readBody: async () => bytes,
  }
}

async function print({ status, headers, collect }: OutboundAnswer): Promise<CodeAnswer> {
  const bytes = await collect(MOST_PRINTED_BYTES)
  const text = textOfBody(headers, bytes) ?? Buffer.from(bytes).toString('base64')
  const value = isJsonContent(headers, text) ? tryJson(text) : undefined
  const body = value === undefined ? text : value
  return { statusCode: status, headers, ...(text === '' ? {} : { body }) }
}
