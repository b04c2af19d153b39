/** Every call, what it takes, and how a request for it is made and spoiled: written from the specification, not from the registry. */
import type { ApplicationType, Permission } from '../../src/domain/access/permissions.js'

/** Every call and what it takes, written from the specification and not from the registry. */
export const NEEDED: Record<string, Permission[]> = {
  'POST /tokens': ['token:create'],
  'GET /tokens': ['token:read'],
  'GET /v2/tokens': ['token:read'],
  'POST /v2/tokens/search': ['token:search'],
  'GET /tokens/{id}': ['token:read'],
  'PATCH /tokens/{id}': ['token:update'],
  'DELETE /tokens/{id}': ['token:delete'],
  'POST /tokens/search': ['token:search'],
  'POST /tokenize': ['token:create'],
  'POST /detokenize': ['token:read'],
  'POST /tokens/{parent_id}/children/{child_id}': ['token:read'],
  'DELETE /tokens/{parent_id}/children/{child_id}': ['token:delete'],
  'POST /tokens/{parent_id}/children': ['token:create', 'token:read'],
  'GET /tokens/{parent_id}/children': ['token:read'],
  'POST /applications': ['application:create'],
  'GET /applications': ['application:read'],
  'GET /applications/{id}': ['application:read'],
  'PUT /applications/{id}': ['application:update'],
  'DELETE /applications/{id}': ['application:delete'],
  'POST /applications/{id}/regenerate': ['application:update'],
  'POST /applications/{application_id}/keys': ['application:create'],
  'GET /applications/{application_id}/keys': ['application:read'],
  'GET /applications/{application_id}/keys/{id}': ['application:read'],
  'DELETE /applications/{application_id}/keys/{id}': ['application:delete'],
  'GET /applications/key': [],
  'GET /permissions': [],
  'POST /sessions': [],
  'POST /sessions/authorize': [],
  'GET /logs': ['log:read'],
  'GET /logs/entity-types': ['log:read'],
  'GET /tenants/self': ['tenant:read'],
  'PUT /tenants/self': ['tenant:update'],
  'DELETE /tenants/self': ['tenant:delete'],
  'GET /tenants/self/reports/usage': ['report:read'],
  'GET /tenants/self/members': ['tenant:member:read'],
  'PUT /tenants/self/members/{id}': ['tenant:member:update'],
  'GET /roles': [],
  'DELETE /tenants/self/members/{id}': ['tenant:member:delete'],
  'POST /tenants/self/invitations': ['tenant:invitation:create'],
  'POST /tenants/self/invitations/{id}/resend': ['tenant:invitation:create', 'tenant:invitation:update'],
  'GET /tenants/self/invitations': ['tenant:invitation:read'],
  'GET /tenants/self/invitations/{id}': ['tenant:invitation:read'],
  'DELETE /tenants/self/invitations/{id}': ['tenant:invitation:delete'],
  'POST /reactor-formulas': ['reactor:create'],
  'GET /reactor-formulas': ['reactor:read'],
  'GET /reactor-formulas/{id}': ['reactor:read'],
  'PUT /reactor-formulas/{id}': ['reactor:update'],
  'DELETE /reactor-formulas/{id}': ['reactor:delete'],
  'POST /reactors': ['reactor:create'],
  'GET /reactors': ['reactor:read'],
  'POST /proxies': ['proxy:create'],
  'GET /proxies': ['proxy:read'],
  'GET /proxies/{id}': ['proxy:read'],
  'PUT /proxies/{id}': ['proxy:update'],
  'PATCH /proxies/{id}': ['proxy:update'],
  'DELETE /proxies/{id}': ['proxy:delete'],
  'GET /reactors/{id}': ['reactor:read'],
  'PUT /reactors/{id}': ['reactor:update'],
  'PATCH /reactors/{id}': ['reactor:update'],
  'DELETE /reactors/{id}': ['reactor:delete'],
  'POST /reactors/{id}/react': ['token:use', 'reactor:invoke'],
  'POST /reactors/{id}/react-async': ['token:use', 'reactor:invoke'],
  'GET /reactors/{id}/results/{request_id}': ['token:use', 'reactor:invoke'],
}

/** The calls for which one of their permissions is enough. */
export const NEEDS_ONE = [
  'POST /reactors/{id}/react',
  'POST /reactors/{id}/react-async',
  'GET /reactors/{id}/results/{request_id}',
]

/** The calls that take the key of an application of this type, and no session. */
export const ONLY_FOR: Record<string, ApplicationType> = {
  'POST /sessions': 'public',
  'POST /sessions/authorize': 'private',
}

export type Input = Record<string, unknown>

/** How a request is made, and spoiled: inputs that are laid over the good one. `$name` is the id of something made before. */
export interface Spoiling {
  good: Input
  /** Each wrong in itself, whatever is stored. */
  input?: Input[]
  /** By default, and with a path that has parameters: nobody has the id of the last one. */
  missing?: Input
  container?: Input
  conflict?: Input
}

const PAGE = [{ size: 0 }, { page: 'x' }]
const CREATE = { type: 'token', data: 'new', containers: ['/open/'] }
const WRONG_TOKENS = [
  { type: 'cards' },
  { type: 'card', data: { number: '1' } },
  { containers: ['open'] },
  { mask: '{{ data | no_such_filter }}' },
  { fingerprint_expression: '{{' },
  { search_indexes: ['{{ data.missing }}'] },
  { metadata: { a: 1 } },
  { expires_at: '1/1/2001' },
]
const WRONG_PATCHES = [
  { data: null },
  { containers: null },
  { containers: ['open'] },
  { mask: { a: ['{{ data | no_such_filter }}'] } },
  { fingerprint_expression: '{{' },
  { search_indexes: ['{% if %}'] },
  { metadata: { '': 'x' } },
  { expires_at: '1/1/2001' },
  { deduplicate_token: 'yes' },
  { encrypted: 'x' },
  { token_intent_id: 'x' },
]
const RULE = { priority: 1, container: '/', transform: 'mask', permissions: ['token:read'] }
const CONDITION = { attribute: 'id', operator: 'equals', value: 'open' }
const WRONG_GRANTS = [
  { name: '' },
  { permissions: ['token:nothing'] },
  { permissions: [] },
  { rules: [{ ...RULE, container: 'x' }] },
  { rules: [{ ...RULE, conditions: [] }] },
  { rules: [RULE, RULE] },
  { expires_at: '1/1/2001' },
]
export const PROXY = { name: 'p', destination_url: 'https://api.example.com' }
const WRONG_PROXIES = [
  { name: '' },
  { destination_url: 'x' },
  { configuration: { a: [] } },
  { request_transforms: [{ type: 'mask' }] },
  { response_transform: 1 },
  { response_reactor_id: 'x' },
]
export const FORMULA = { name: 'f', type: 'private', code: 'module.exports = async () => ({})' }
const WRONG_FORMULAS = [
  { name: '' },
  { code: '' },
  { icon: 'no image' },
  { configuration: [{ name: 'a b', type: 'string' }] },
  { request_parameters: [{ name: 'a', type: 'x' }] },
]
const WRONG_REACTORS = [
  { name: '' },
  { configuration: { KEY: {} } },
  { code: '' },
  { runtime: { timeout: 0 } },
  { image: 'node22' },
]

const closed = { id: 'closed' }

export const SPOILINGS: Record<string, Spoiling> = {
  'token create': {
    good: CREATE,
    input: WRONG_TOKENS,
    container: { containers: ['/closed/'] },
    conflict: { id: 'open' },
  },
  'token list': { good: {}, input: [...PAGE, { type: [''] }, { types: [','] }] },
  'token get': { good: { id: 'open' }, container: closed },
  'token update': { good: { id: 'open', metadata: { a: 'b' } }, input: WRONG_PATCHES, container: closed },
  'token delete': { good: { id: 'open' }, container: closed },
  'token search': { good: {}, input: [...PAGE, { query: 'data:' }, { query: 'created_at:x' }] },
  'token list-after': {
    good: {},
    input: [{ size: 0 }, { size: 101 }, { type: 'card', fingerprint: 'x' }],
    container: { container: '/closed/' },
  },
  'token search-after': {
    good: {},
    input: [{ size: 0 }, { query: 'type:a OR type:b' }],
    container: { query: 'container:/closed/' },
  },
  'token tokenize': {
    good: { payload: CREATE },
    input: WRONG_TOKENS.map((wrong) => ({ payload: [CREATE, { ...CREATE, ...wrong }] })),
    container: { payload: { ...CREATE, containers: ['/closed/'] } },
    conflict: { payload: { ...CREATE, id: 'open' } },
  },
  'token detokenize': {
    good: { payload: { a: '{{ open }}' } },
    input: [
      { payload: ['{{ closed | no_such_filter }}'] },
      { payload: manyTokens() },
      { payload: '{{ unknown }}' },
      { payload: '{{ encrypted: closed }}' },
    ],
    container: { payload: ['{{ open }}', '{{ closed }}'] },
  },
  'token link': {
    good: { parent_id: 'open', child_id: 'other' },
    container: { parent_id: 'closed' },
    conflict: { child_id: 'child' },
  },
  'token unlink': {
    good: { parent_id: 'open', child_id: 'child' },
    container: { parent_id: 'closed', child_id: 'shut' },
  },
  'token create-child': {
    good: { ...CREATE, parent_id: 'open' },
    input: WRONG_TOKENS,
    container: { containers: ['/closed/'] },
    conflict: { id: 'other' },
  },
  'token children': { good: { parent_id: 'open' }, input: PAGE, container: { parent_id: 'closed' } },
  'app create': {
    good: { name: 'a', type: 'private', permissions: ['token:read'] },
    input: [...WRONG_GRANTS, { permissions: ['log:read'] }, { create_key: 'no' }],
  },
  'app list': { good: {}, input: [...PAGE, { id: [''] }] },
  'app get': { good: { id: '$app' } },
  'app update': { good: { id: '$app', name: 'a', permissions: ['token:read'] }, input: WRONG_GRANTS },
  'app delete': { good: { id: '$app' } },
  'app regenerate': { good: { id: '$app' } },
  'app key create': { good: { application_id: '$app' }, conflict: { application_id: '$full' } },
  'app key list': { good: { application_id: '$app' }, input: [{ id: [''] }] },
  'app key get': { good: { application_id: '$app', id: '$key' } },
  'app key delete': { good: { application_id: '$app', id: '$key' } },
  'session create': { good: {} },
  'session authorize': {
    good: { nonce: '$nonce', permissions: ['token:create'] },
    input: [
      { permissions: [] },
      { permissions: ['log:read'] },
      { rules: [RULE, { ...RULE, priority: 2, conditions: [CONDITION] }] },
      { rules: [{ ...RULE, container: null }] },
      { rules: [{ ...RULE, container: null, conditions: [] }] },
      { rules: [{ ...RULE, container: null, conditions: [{ ...CONDITION, attribute: 'type' }] }] },
      { expires_at: '1/1/2031' },
      { expires_at: '2030-01-15' },
      { expires_at: '2031-01-15' },
    ],
    missing: { nonce: '1111111111111111111111' },
    conflict: { nonce: '$used' },
  },
  'app whoami': { good: {} },
  'app permissions': { good: {}, input: [{ application_type: '' }] },
  'formula create': { good: FORMULA, input: WRONG_FORMULAS, container: { type: 'official' } },
  'formula list': { good: {}, input: [...PAGE, { name: '' }] },
  'formula get': { good: { id: '$formula' } },
  'formula update': {
    good: { ...FORMULA, id: '$formula' },
    input: WRONG_FORMULAS,
    container: { type: 'official' },
  },
  'formula delete': { good: { id: '$unused' } },
  'reactor create': { good: { name: 'r', formula: { id: '$formula' } }, input: WRONG_REACTORS },
  'reactor list': { good: {}, input: [...PAGE, { name: '' }] },
  'reactor get': { good: { id: '$reactor' } },
  'reactor update': { good: { id: '$reactor', name: 'r' }, input: WRONG_REACTORS },
  'reactor patch': { good: { id: '$reactor', name: 'r' }, input: WRONG_REACTORS },
  'reactor delete': { good: { id: '$reactor' } },
  'reactor react': {
    good: { id: '$reactor', args: { a: 'x' } },
    input: [
      { args: 1 },
      { args: { a: '{{ closed | no_such_filter }}' } },
      { args: manyTokens() },
      { callback_url: '' },
    ],
    container: { args: { a: '{{ closed }}' } },
  },
  'reactor react-async': {
    good: { id: '$reactor', args: { a: 'x' } },
    input: [
      { args: 1 },
      { args: { a: '{{ closed | no_such_filter }}' } },
      { args: manyTokens() },
      { callback_url: '' },
    ],
    container: { args: { a: '{{ closed }}' } },
  },
  'reactor result': { good: { id: '$reactor', request_id: '$result' } },
  'proxy create': { good: PROXY, input: WRONG_PROXIES },
  'proxy list': { good: {}, input: [...PAGE, { name: '' }] },
  'proxy get': { good: { id: '$proxy' } },
  'proxy update': { good: { id: '$proxy', ...PROXY }, input: WRONG_PROXIES },
  'proxy patch': { good: { id: '$proxy' }, input: WRONG_PROXIES },
  'proxy delete': { good: { id: '$proxy' } },
  'log list': { good: {}, input: [...PAGE, { start_date: 'soon' }, { entity_id: '' }] },
  'log entity-types': { good: {} },
  'tenant get': { good: {} },
  'tenant update': {
    good: { name: 't' },
    input: [{ name: ' ' }, { name: 'a\nb' }, { settings: { x: '1' } }],
  },
  'tenant delete': { good: {} },
  'tenant usage': { good: {} },
  'member list': { good: {}, input: [...PAGE, { user_id: [''] }] },
  'member update': {
    good: { id: '$member', role: 'READ_ONLY' },
    input: [{ role: 'OWNER' }, { role: 'USER' }, { role: null }],
  },
  'member roles': { good: {} },
  'member delete': { good: { id: '$member' } },
  'invite create': {
    good: { email: 'ada@example.com' },
    input: [{ email: 'ada' }, { email: 1 }, { role: 'OWNER' }],
  },
  'invite list': { good: {}, input: [...PAGE, { status: 'USED' }, { status: '' }] },
  'invite get': { good: { id: '$invitation' } },
  'invite resend': { good: { id: '$invitation' } },
  'invite delete': { good: { id: '$invitation' } },
}

function manyTokens(): Input {
  return Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`a${at}`, `{{ token-${at} }}`]))
}
