/**
 * The fidelity table: how much of each area of the interface is emulated. The declarations of the operations decide what
 * is; this table says what there is to emulate, and what stays out of an area that is emulated.
 */
import { FILTERS, ORDERED_FILTERS } from '../domain/expression/filters.js'
import type { RegisteredOperation } from '../framework/registry.js'
import { NOT_EMULATED } from './not-emulated.js'

/**
 * A part is `METHOD /path` (or several methods, each a part), `METHOD /path attribute` for an attribute of the request or, but for
 * GET, the answer, `| name` for a filter of expressions, or anything else: a feature without a declaration, not emulated yet.
 */
type Part = string

interface Area {
  name: string
  /** Of the interface of January 2023. */
  early?: readonly Part[]
  /** What the interface has gained since. */
  since?: readonly Part[]
  /** What is left out on purpose. */
  without?: string
}

const AREAS: readonly Area[] = [
  {
    name: 'Tokens',
    early: ['POST GET /tokens', 'GET PATCH DELETE /tokens/{id}'],
    since: ['POST /tokens card', 'POST /tokens bank', 'POST /tokens _extras'],
    without: '`encrypted`, `token_intent_id`, `privacy`, `aliases`',
  },
  { name: 'Search of tokens', early: ['POST /tokens/search'] },
  { name: 'Lists and search by cursor', since: ['GET /v2/tokens', 'POST /v2/tokens/search'] },
  {
    name: 'Parents and children',
    early: ['POST DELETE /tokens/{parent_id}/children/{child_id}', 'POST GET /tokens/{parent_id}/children'],
  },
  { name: 'Tokenize', early: ['POST /tokenize'] },
  { name: 'Detokenize', since: ['POST /detokenize'] },
  {
    name: 'Expressions',
    early: ['| reveal_last', '| reveal', '| last4', '| stringify', '| json', '| alias_preserve_format'],
    since: [
      '| alias_card',
      '| card_mask',
      '| card_bin',
      '| card_exp',
      '| json_stringify',
      '| hmac',
      '| to_base64',
      '| to_base16',
    ],
    without: '`token_intent:`',
  },
  {
    name: 'Applications and access rules',
    early: [
      'POST GET /applications',
      'GET /applications/key',
      'GET PUT DELETE /applications/{id}',
      'POST /applications/{id}/regenerate',
      'GET /permissions',
    ],
  },
  {
    name: 'Several keys of an application',
    since: [
      'POST GET /applications/{id}/keys',
      'GET DELETE /applications/{id}/keys/{key_id}',
      'POST /applications create_key',
    ],
  },
  { name: 'Sessions', since: ['POST /sessions', 'POST /sessions/authorize'] },
  {
    name: 'Reactors',
    early: ['POST GET /reactors', 'GET PUT DELETE /reactors/{id}', 'POST /reactors/{id}/react'],
    since: [
      'POST /reactors code',
      'POST /reactors runtime',
      'PATCH /reactors/{id}',
      'POST /reactors/{id}/react-async',
      'GET /reactors/{id}/results/{request_id}',
    ],
    without: 'installation of `runtime.dependencies`, `callback_url`',
  },
  {
    name: 'Reactor formulas',
    early: ['POST GET /reactor-formulas', 'GET PUT DELETE /reactor-formulas/{id}'],
  },
  {
    name: 'Proxies',
    since: ['POST GET /proxies', 'GET PUT PATCH DELETE /proxies/{id}', 'calls through `/proxy`'],
    without: 'transforms other than `code` and `mask`',
  },
  { name: 'Logs', early: ['GET /logs', 'GET /logs/entity-types'] },
  {
    name: 'Tenant and usage',
    early: ['GET PUT DELETE /tenants/self', 'GET /tenants/self/reports/usage'],
  },
  {
    name: 'Members',
    early: ['GET /tenants/self/members', 'DELETE /tenants/self/members/{id}'],
    since: ['PUT /tenants/self/members/{id}', 'GET /roles'],
  },
  {
    name: 'Invitations',
    early: [
      'POST GET /tenants/self/invitations',
      'GET DELETE /tenants/self/invitations/{id}',
      'POST /tenants/self/invitations/{id}/resend',
    ],
    since: ['POST /tenants/self/invitations role', 'GET /tenants/self/invitations status'],
  },
  { name: 'Idempotency keys', since: [] },
  { name: 'Calls from web pages (CORS)', since: [] },
]

/** The rows of the table; in backticks: code. */
export function listFidelity(operations: readonly RegisteredOperation[]) {
  const filters = [...FILTERS.keys(), ...ORDERED_FILTERS.keys()].map((name) => `| ${name}`)
  const parts = new Set([...operations.flatMap(listParts), ...filters])
  const rows = AREAS.map(({ name, early, since = [], without }) => ({
    area: name,
    early: early === undefined ? '–' : rate(early, parts),
    today: rate([...(early ?? []), ...since], parts, without),
  }))
  const out = Object.keys(NOT_EMULATED).map((area) => ({ area, early: '–', today: 'not emulated' }))
  return [...rows, ...out]
}

/** The calls, as `METHOD /path`, that are in the table. */
export function listRatedCalls(): string[] {
  const all = AREAS.flatMap(({ early = [], since = [] }) => [...early, ...since].flatMap(eachPart))
  return all.filter((part) => /^[A-Z]+ \S+$/.test(part))
}

/** A part of several methods as parts of one. */
function eachPart(part: Part): Part[] {
  const [, methods, path] = /^([A-Z ]+) (\/.*)$/.exec(part) ?? []
  return methods === undefined ? [part] : methods.split(' ').map((method) => `${method} ${path}`)
}

function listParts({ endpoint, relay, output }: RegisteredOperation): Part[] {
  if (relay !== undefined) return [`calls through \`${relay.path}\``]
  if (endpoint === undefined) return []
  const { method, path, body, query } = endpoint
  const call = nameCall(`${method} ${path}`)
  const answered = output?.type === 'object' && method !== 'GET' ? output.properties : {}
  const attributes = Object.keys({ ...body, ...query, ...answered })
  return [call, ...attributes.map((name) => `${call} ${name}`)]
}

/** The names of a path's parameters do not matter. */
export function nameCall(part: Part): Part {
  return part.replaceAll(/\{[^}]*\}/g, '{}')
}

function rate(wanted: readonly Part[], parts: ReadonlySet<Part>, without?: string): string {
  const all = wanted.flatMap(eachPart)
  const missing = all.filter((part) => !parts.has(nameCall(part)))
  if (missing.length > 0 && missing.length === all.length) return 'not yet'
  const gaps = [
    ...(without === undefined ? [] : [`without ${without}`]),
    ...(missing.length === 0 ? [] : [`not yet ${missing.map(showPart).join(', ')}`]),
  ]
  return gaps.length === 0 ? 'emulated' : `partly: ${gaps.join('; ')}`
}

/** An attribute is shown by its name alone: the area says of what. */
function showPart(part: Part): string {
  const code = /^\| (\S+)$/.exec(part) ?? /^[A-Z]+ \S+ (\S+)$/.exec(part) ?? /^([A-Z]+ \S+)$/.exec(part)
  return code === null ? part : `\`${code[1]}\``
}
