/**
 * All API calls, the permissions that the calls require, and for each call one valid and several invalid inputs. This
 * table is written by hand, so that it is independent of the registry.
 */
import { formatRequest } from '../../src/client/format-request.js'
import type { ApplicationType, Permission } from '../../src/domain/access/permissions.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import type { Handler } from '../../src/http/handler.js'
import { completeService } from '../../src/http/service.js'
import { registry } from '../../src/operations/all.js'
import { handlerOf } from '../support/service.js'
import type { TestVault } from '../support/test-vault.js'

/** Lists the five calls of a noun: create, list, read, replace and delete. */
const crudCalls = (path: string, noun: string) => ({
  [`${noun}:create`]: [`POST ${path}`],
  [`${noun}:read`]: [`GET ${path}`, `GET ${path}/{id}`],
  [`${noun}:update`]: [`PUT ${path}/{id}`],
  [`${noun}:delete`]: [`DELETE ${path}/{id}`],
})
/** Lists the calls for the merchants of a wallet and their certificates. */
const merchantCalls = (wallet: string) => {
  const merchants = `/${wallet}-pay/merchant-registration`
  return [merchants, `${merchants}/{merchant_id}/certificates`].flatMap((path) => [
    `POST ${path}`,
    `GET ${path}/{id}`,
    `DELETE ${path}/{id}`,
  ])
}
const KEYS = '/applications/{application_id}/keys'
const INVITATIONS = '/tenants/self/invitations'
const MERCHANTS = '/tenants/{tenant_id}/merchants'
const LINK = '/tokens/{parent_id}/children/{child_id}'

/**
 * The calls, grouped by the permissions that they require. Each property name is a list of permissions separated by
 * spaces. A list may occur in several objects.
 */
const CALLS: Record<string, string[]>[] = [
  {
    '': [
      'GET /applications/key',
      'GET /permissions',
      'GET /roles',
      'POST /sessions',
      'POST /sessions/authorize',
      'GET /enrichments/card-details',
      'GET /application-templates',
      'GET /application-templates/{id}',
    ],
  },
  { 'token:use': ['POST /enrichments/bank-account-verify'] },
  { 'token:create': ['POST /tokens', 'POST /tokenize'], 'token:update': ['PATCH /tokens/{id}'] },
  { 'token:read': ['GET /tokens', 'GET /v2/tokens', 'GET /tokens/{id}', 'POST /detokenize', `POST ${LINK}`] },
  { 'token:read': ['GET /tokens/{parent_id}/children'] },
  { 'token:create token:read': ['POST /tokens/{parent_id}/children'] },
  { 'token:search': ['POST /tokens/search', 'POST /v2/tokens/search'] },
  { 'token:delete': ['DELETE /tokens/{id}', `DELETE ${LINK}`] },
  { 'token-intent:create': ['POST /token-intents'], 'token-intent:read': ['GET /token-intents/{id}'] },
  { 'token-intent:delete': ['DELETE /token-intents/{id}'] },
  crudCalls('/applications', 'application'),
  { 'application:update': ['POST /applications/{id}/regenerate'], 'application:create': [`POST ${KEYS}`] },
  { 'application:read': [`GET ${KEYS}`, `GET ${KEYS}/{id}`], 'application:delete': [`DELETE ${KEYS}/{id}`] },
  { 'log:read': ['GET /logs', 'GET /logs/entity-types'] },
  { 'tenant:read': ['GET /tenants/self'], 'tenant:update': ['PUT /tenants/self'] },
  { 'tenant:read': ['GET /tenants/self/owner', 'GET /tenants/self/security-contact'] },
  { 'tenant:update': ['PUT /tenants/self/owner', 'PUT /tenants/self/security-contact'] },
  {
    'tenant:merchant:create': [`POST ${MERCHANTS}`],
    'tenant:merchant:read': [`GET ${MERCHANTS}`, `GET ${MERCHANTS}/{id}`],
    'tenant:merchant:update': [`PATCH ${MERCHANTS}/{id}`],
    'tenant:merchant:delete': [`DELETE ${MERCHANTS}/{id}`],
  },
  { 'tenant:delete': ['DELETE /tenants/self'], 'report:read': ['GET /tenants/self/reports/usage'] },
  { 'tenant:member:read': ['GET /tenants/self/members'] },
  { 'tenant:member:update': ['PUT /tenants/self/members/{id}'] },
  { 'tenant:member:delete': ['DELETE /tenants/self/members/{id}'] },
  { 'tenant:invitation:create': [`POST ${INVITATIONS}`] },
  { 'tenant:invitation:create tenant:invitation:update': [`POST ${INVITATIONS}/{id}/resend`] },
  { 'tenant:invitation:read': [`GET ${INVITATIONS}`, `GET ${INVITATIONS}/{id}`] },
  { 'tenant:invitation:delete': [`DELETE ${INVITATIONS}/{id}`] },
  crudCalls('/reactor-formulas', 'reactor'),
  crudCalls('/reactors', 'reactor'),
  crudCalls('/proxies', 'proxy'),
  {
    'account-updater:real-time:invoke': ['POST /account-updater/real-time'],
    'account-updater:job:create': ['POST /account-updater/jobs'],
    'account-updater:job:read': ['GET /account-updater/jobs', 'GET /account-updater/jobs/{id}'],
  },
  {
    'network-token:create': ['POST /network-tokens'],
    'network-token:read network-token:reveal': ['GET /network-tokens/{id}'],
    'network-token:read': ['GET /network-tokens/{id}/account'],
    'network-token:cryptogram': ['POST /network-tokens/{id}/cryptogram'],
    'network-token:suspend': ['PUT /network-tokens/{id}/suspend'],
    'network-token:resume': ['PUT /network-tokens/{id}/resume'],
    'network-token:delete': ['DELETE /network-tokens/{id}'],
    'apple-pay:create': ['POST /apple-pay'],
    'apple-pay:read apple-pay:reveal': ['GET /apple-pay/{id}'],
    'apple-pay:delete': ['DELETE /apple-pay/{id}'],
    'apple-pay:unlink': ['POST /apple-pay/{id}/unlink'],
    'apple-pay:session': ['POST /apple-pay/session'],
    'apple-pay:manage': [
      ...['POST', 'PUT', 'GET'].map((method) => `${method} /apple-pay/domain-registration`),
      'POST /apple-pay/domain-deregistration',
      ...merchantCalls('apple'),
    ],
    'google-pay:create': ['POST /google-pay'],
    'google-pay:read google-pay:reveal': ['GET /google-pay/{id}'],
    'google-pay:delete': ['DELETE /google-pay/{id}'],
    'google-pay:manage': merchantCalls('google'),
  },
  { 'documents:create': ['POST /documents'], 'documents:read': ['GET /documents/{id}'] },
  { 'documents:reveal': ['GET /documents/{id}/data'], 'documents:delete': ['DELETE /documents/{id}'] },
  { 'keys:create': ['POST /keys'], 'keys:read': ['GET /keys', 'GET /keys/{id}'] },
  { 'keys:delete': ['DELETE /keys/{id}'] },
  { 'webhooks:create webhook:create': ['POST /webhooks'] },
  { 'webhooks:read webhook:read': ['GET /webhooks', 'GET /webhooks/{id}', 'GET /webhooks/event-types'] },
  { 'webhooks:update webhook:update': ['PUT /webhooks/{id}'] },
  { 'webhooks:delete webhook:delete': ['DELETE /webhooks/{id}'] },
  { '3ds:session:create': ['POST /3ds/sessions', 'PUT /3ds/sessions/{id}'] },
  { '3ds:session:read': ['GET /3ds/sessions/{id}'] },
  {
    '3ds:session:authenticate': [
      'POST /3ds/sessions/{id}/authenticate',
      'GET /3ds/sessions/{id}/challenge-result',
    ],
  },
  { 'reactor:update': ['PATCH /reactors/{id}'], 'proxy:update': ['PATCH /proxies/{id}'] },
  { 'token:use reactor:invoke': ['POST /reactors/{id}/react', 'POST /reactors/{id}/react-async'] },
  { 'token:use reactor:invoke': ['GET /reactors/{id}/results/{request_id}'] },
]

/** The permissions that each call requires. */
export const NEEDED: Record<string, Permission[]> = Object.fromEntries(
  CALLS.flatMap(Object.entries<string[]>).flatMap(([permissions, calls]) =>
    calls.map((call) => [call, permissions.split(' ').filter(Boolean) as Permission[]]),
  ),
)

/** Several permissions allow these calls. A caller needs only one of these permissions. */
export const NEEDS_ONE = [
  'GET /apple-pay/{id}',
  'GET /google-pay/{id}',
  'POST /reactors/{id}/react',
  'POST /reactors/{id}/react-async',
  'GET /reactors/{id}/results/{request_id}',
  'POST /webhooks',
  'GET /webhooks',
  'GET /webhooks/{id}',
  'PUT /webhooks/{id}',
  'DELETE /webhooks/{id}',
  'GET /webhooks/event-types',
  'GET /network-tokens/{id}',
]

/** The calls that require the key of an application of a certain type. A session cannot make these calls. */
export const ONLY_FOR: Record<string, ApplicationType> = {
  'POST /sessions': 'public',
  'POST /sessions/authorize': 'private',
}

/** The calls that no session may make, even if the session has the permission. */
export const NOT_FOR_SESSIONS = [
  'PUT /3ds/sessions/{id}',
  'GET /3ds/sessions/{id}',
  'POST /3ds/sessions/{id}/authenticate',
  'GET /3ds/sessions/{id}/challenge-result',
]

export type Input = Record<string, unknown>

/**
 * A valid request of a call, and changes that make the request invalid. The inputs other than `good` are merged into
 * `good`. In an input, `$name` stands for the id of a record that `populate` in `matrix.test.ts` has made.
 */
export interface FaultyInputs {
  /**
   * A valid input. By default, each parameter of the path is the id of a record that `populate` has made for the
   * noun.
   */
  good?: Input
  /** Each of these inputs is invalid, whatever the vault contains. */
  input?: Input[]
  /**
   * An input with an id of a record that does not exist. By default, the last parameter of the path is an unknown id.
   */
  missing?: Input
  /**
   * A valid input that is forbidden to this caller because of the caller's type, or because the caller's rules lack the
   * container.
   */
  forbidden?: Input
  conflict?: Input
}

/** Each of the invalid inputs below breaks a different rule of the schema, or of the validation after the schema. */
const PAGE = [{ size: 0 }]
const CREATE = { type: 'token', data: 'new', containers: ['/open/'] }
const WRONG_TOKENS = [
  // JavaScript cannot convert this object to a text.
  { type: { toString: 1 } },
  { type: 'card', data: { number: '1' } },
  { mask: '{{ data | no_such_filter }}' },
  { search_indexes: ['{{ data.missing }}'] },
  { metadata: { a: 1 } },
  { expires_at: '1/1/2001' },
]
const WRONG_PATCHES = [
  { data: null },
  { containers: ['open'] },
  { mask: { a: ['{{ data | no_such_filter }}'] } },
  { expires_at: '1/1/2001' },
  { encrypted: 'x' },
  { token_intent_id: 'x' },
]
const RULE = { priority: 1, container: '/', transform: 'mask', permissions: ['token:read'] }
const CONDITION = { attribute: 'id', operator: 'equals', value: 'open' }
const WRONG_GRANTS = [{ name: '' }, { permissions: [] }, { rules: [RULE, RULE] }, { expires_at: '1/1/2001' }]
export const WEBHOOK = { name: 'w', url: 'https://example.com/events', events: ['token.created'] }
const WRONG_WEBHOOKS = [{ name: '' }, { url: 'x' }, { events: ['token.made'] }]
export const PROXY = { name: 'p', destination_url: 'https://api.example.com' }
const WRONG_PROXIES = [{ name: 1 }, { destination_url: 'x' }, { request_transforms: [{ type: 'mask' }] }]
export const FORMULA = { name: 'f', type: 'private', code: 'module.exports = async () => ({})' }
const WRONG_FORMULAS = [
  { code: '' },
  { icon: 'no image' },
  { configuration: [{ name: 'a b', type: 'string' }] },
]
const WRONG_REACTORS = [{ name: 1 }, { configuration: { KEY: {} } }, { runtime: { timeout: 901 } }]

export const BROWSER = {
  browser_javascript_enabled: true,
  browser_java_enabled: false,
  browser_language: 'en-US',
  browser_color_depth: '24',
  browser_screen_height: '900',
  browser_screen_width: '1440',
  browser_tz: '-60',
  browser_user_agent: 'Mozilla/5.0',
}
export const APP = {
  sdk_transaction_id: 'b2385523-a66c-4907-ac3c-91848e8c0067',
  sdk_application_id: 'df898f15-b3b4-4a1e-a1d9-2a1a3b0e5b5f',
  sdk_encryption_data: 'eyJhbGciOiJSU0EtT0FFUCJ9',
  sdk_ephemeral_public_key: '{"kty":"EC"}',
  sdk_max_timeout: '05',
  sdk_reference_number: '3DS_LOA_SDK',
  sdk_render_options: { sdk_interface: 'native', sdk_ui_type: ['text'] },
}
export const AUTHENTICATE = {
  authentication_category: 'payment',
  authentication_type: 'payment-transaction',
  merchant_info: {
    mid: '9876543210001',
    acquirer_bin: '000000999',
    name: 'Example 3DS Merchant',
    country_code: '826',
    category_code: '7922',
  },
  purchase_info: { amount: '80000', currency: '826', exponent: '2', date: '20240109141010' },
  cardholder_info: { name: 'John Doe', email: 'john@me.com' },
}
const WRONG_AUTHENTICATION = [
  { authentication_category: 'both' },
  { purchase_info: { ...AUTHENTICATE.purchase_info, amount: '8.00' } },
  { cardholder_info: { name: 'John Doe' } },
  { metadata: { a: 1 } },
]

const closed = { id: 'closed' }
const merchant = { tenant_id: '$tenant', id: '$merchant' }
const WRONG_MERCHANTS = [{ name: '' }, { details: { merchant: { contact: { email: 1 } } } }]

const REACT: FaultyInputs = {
  good: { id: '$reactor', args: { a: 'x' } },
  input: [{ args: 1 }, { args: { a: '{{ closed | no_such_filter }}' } }, { args: manyTokens() }],
  forbidden: { args: { a: '{{ closed }}' } },
}

export const MERCHANT = { merchant_identifier: 'merchant.com.example' }
/** The smallest text that has the form of a PKCS#12 file, as base64. */
const FILE = 'MAMCAQM='
export const MERCHANT_FILE = { merchant_certificate_data: FILE, merchant_certificate_password: 'made up' }
export const PROCESSOR_FILE = {
  payment_processor_certificate_data: FILE,
  payment_processor_certificate_password: 'made up',
}
const PLAIN = { protocolVersion: 'BasisTheory', signature: 'network_token' }
const PLAIN_CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2040 }
const signedMessage = JSON.stringify({ ...PLAIN_CARD, cryptogram: 'AAAAAA=', eci_indicator: '7' })
export const GOOGLE_PAYLOAD = { google_payment_data: { ...PLAIN, signedMessage } }
const WRONG_GOOGLE_PAYLOADS = [
  { google_payment_data: {} },
  { google_payment_data: { ...PLAIN, signedMessage: '{}' } },
  { google_payment_data: { ...PLAIN, signature: 'other', signedMessage } },
  { google_payment_data: { ...PLAIN, protocolVersion: 'ECv1', signedMessage } },
  { expires_at: '1/1/2001' },
]
const BASE64 = 'bWFkZSB1cA=='
export const APPLE_PAYLOAD = {
  apple_payment_data: {
    paymentData: {
      ...{ version: 'EC_v1', data: BASE64, signature: BASE64 },
      header: { ephemeralPublicKey: BASE64 },
    },
  },
}

const FAULTY_INPUTS: Record<string, FaultyInputs> = {
  'token create': {
    good: CREATE,
    input: WRONG_TOKENS,
    forbidden: { containers: ['/closed/'] },
    conflict: { id: 'open' },
  },
  'token list': { input: [...PAGE, { types: [','] }] },
  'token get': { good: { id: 'open' }, forbidden: closed },
  'token update': { good: { id: 'open', metadata: { a: 'b' } }, input: WRONG_PATCHES, forbidden: closed },
  'token delete': { good: { id: 'open' }, forbidden: closed },
  'token search': { input: [...PAGE, { query: 'data:' }] },
  'token list-after': {
    input: [...PAGE, { type: 'card', fingerprint: 'x' }],
    forbidden: { container: '/closed/' },
  },
  'token search-after': {
    input: [...PAGE, { query: 'type:a OR type:b' }],
    forbidden: { query: 'container:/closed/' },
  },
  'token tokenize': {
    good: { payload: CREATE },
    input: WRONG_TOKENS.map((wrong) => ({ payload: [CREATE, { ...CREATE, ...wrong }] })),
    forbidden: { payload: { ...CREATE, containers: ['/closed/'] } },
    conflict: { payload: { ...CREATE, id: 'open' } },
  },
  'token detokenize': {
    good: { payload: { a: '{{ open }}' } },
    input: [
      { payload: ['{{ closed | no_such_filter }}'] },
      { payload: manyTokens() },
      { payload: '{{ unknown }}' },
    ],
    forbidden: { payload: ['{{ open }}', '{{ closed }}'] },
  },
  'token link': {
    good: { parent_id: 'open', child_id: 'other' },
    forbidden: { parent_id: 'closed' },
    conflict: { child_id: 'child' },
  },
  'token unlink': {
    good: { parent_id: 'open', child_id: 'child' },
    forbidden: { parent_id: 'closed', child_id: 'shut' },
  },
  'token create-child': {
    good: { ...CREATE, parent_id: 'open' },
    input: WRONG_TOKENS,
    forbidden: { containers: ['/closed/'] },
    conflict: { id: 'other' },
  },
  'token children': { good: { parent_id: 'open' }, input: PAGE, forbidden: { parent_id: 'closed' } },
  'intent create': { good: { type: 'token', data: 1 }, input: [{ type: 'card' }, { data: null }] },
  '3ds create': {
    good: { token_id: '$token', device: 'browser', device_info: BROWSER },
    input: [{ token_intent_id: 'x' }, { device: 'phone' }, { device_info: { browser_tz: 1 } }],
  },
  '3ds get': { good: { id: '$threeds' } },
  '3ds update': {
    good: { id: '$threedsapp', device_info: APP },
    input: [{ device_info: { ...APP, sdk_max_timeout: 5 } }],
    conflict: { id: '$threedsover' },
  },
  '3ds authenticate': {
    good: { id: '$threeds', ...AUTHENTICATE },
    input: WRONG_AUTHENTICATION,
    conflict: { id: '$threedsover' },
  },
  '3ds result': { good: { id: '$threedsover' }, conflict: { id: '$threedsapp' } },
  'enrich bank': {
    good: { token_id: '$bank' },
    input: [{ token_id: 'unknown' }, { country_code: 'DE' }, { routing_number: '21' }],
    forbidden: { token_id: '$closedbank' },
  },
  'enrich card': { good: { bin: '424242' }, input: [{ bin: '42424' }] },
  'updater real-time': { good: { token_id: '$token' }, input: [{ expiration_month: 13 }] },
  'updater job create': { input: [{ result_version: '2' }] },
  'updater job get': { good: { id: '$updaterjob' } },
  'updater job list': { input: PAGE },
  'network-token create': {
    good: { token_id: '$opencard' },
    input: [
      { data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2031 } },
      { token_id: 'unknown' },
      { token_intent_id: 'unknown' },
      { expiration_month: 13 },
    ],
    forbidden: { token_id: '$closedcard' },
  },
  'network-token get': { good: { id: '$networktoken' } },
  'network-token account': { good: { id: '$networktoken' } },
  'network-token cryptogram': {
    good: { id: '$networktoken' },
    input: [{ id: '$suspended' }],
  },
  'network-token suspend': { good: { id: '$networktoken' }, conflict: { id: '$suspended' } },
  'network-token resume': { good: { id: '$suspended' }, conflict: { id: '$networktoken' } },
  'network-token delete': { good: { id: '$networktoken' } },
  'google-pay create': { good: GOOGLE_PAYLOAD, input: WRONG_GOOGLE_PAYLOADS },
  'google-pay get': { good: { id: '$googlepay' } },
  'google-pay delete': { good: { id: '$googlepay' } },
  'google-pay merchant create': { good: MERCHANT, input: [{ merchant_identifier: '' }] },
  'google-pay merchant get': { good: { id: '$googlemerchant' } },
  'google-pay merchant delete': { good: { id: '$googlemerchant' } },
  'google-pay certificate create': {
    good: { merchant_id: '$googlemerchant', ...MERCHANT_FILE },
    input: [{ merchant_certificate_data: 'MAMCAQQ=' }],
  },
  'google-pay certificate get': { good: { merchant_id: '$googlemerchant', id: '$googlecertificate' } },
  'google-pay certificate delete': { good: { merchant_id: '$googlemerchant', id: '$googlecertificate' } },
  'apple-pay create': { good: APPLE_PAYLOAD, input: [{ apple_payment_data: {} }, { expires_at: 'soon' }] },
  'apple-pay get': { good: { id: '$applepay' } },
  'apple-pay delete': { good: { id: '$applepay' } },
  'apple-pay unlink': { good: { id: '$applempan' } },
  'apple-pay session': {
    good: { domain: 'shop.example.com', display_name: 'Shop' },
    input: [{ display_name: 'a'.repeat(65) }],
  },
  'apple-pay domain register': { good: { domain: 'shop.example.com' }, input: [{ domain: '*.example.com' }] },
  'apple-pay domain replace': {
    good: { domains: ['shop.example.com'] },
    input: [{ domains: ['shop.example.com:80'] }],
  },
  'apple-pay domain list': { input: [] },
  'apple-pay domain deregister': { good: { domain: 'other.example.com' }, input: [{ domain: 5 }] },
  'apple-pay merchant create': { good: MERCHANT, input: [{ merchant_identifier: 'a'.repeat(256) }] },
  'apple-pay merchant get': { good: { id: '$applemerchant' } },
  'apple-pay merchant delete': { good: { id: '$applemerchant' } },
  'apple-pay certificate create': {
    good: { merchant_id: '$applemerchant', ...PROCESSOR_FILE },
    input: [{ payment_processor_certificate_data: '!' }, { domain: 'a b' }],
  },
  'apple-pay certificate get': { good: { merchant_id: '$applemerchant', id: '$applecertificate' } },
  'apple-pay certificate delete': { good: { merchant_id: '$applemerchant', id: '$applecertificate' } },
  'document create': {
    good: { document: 'text', metadata: { 'attribute 1': 'a' } },
    input: [{ metadata: { a: 1 } }, { metadata: { '': 'a' } }],
  },
  'key get': { good: { id: '$clientkey' } },
  'key delete': { good: { id: '$clientkey' } },
  'key create': { input: [{ expires_at: '1/1/2001' }, { expires_at: '2032-01-15' }] },
  'app create': {
    good: { name: 'a', type: 'private', permissions: ['token:read'] },
    input: [...WRONG_GRANTS, { permissions: ['log:read'] }],
  },
  'app update': { good: { id: '$app', name: 'a', permissions: ['token:read'] }, input: WRONG_GRANTS },
  'app key create': { good: { application_id: '$app' }, conflict: { application_id: '$full' } },
  'app key list': { good: { application_id: '$app' }, input: [{ id: [''] }] },
  'app key get': { good: { application_id: '$app', id: '$key' } },
  'app key delete': { good: { application_id: '$app', id: '$key' } },
  'session authorize': {
    good: { nonce: '$nonce', permissions: ['token:create'] },
    input: [
      { permissions: ['log:read'] },
      { rules: [{ ...RULE, container: null, conditions: [{ ...CONDITION, attribute: 'type' }] }] },
      { expires_at: '2031-01-15' },
    ],
    missing: { nonce: '1111111111111111111111' },
    conflict: { nonce: '$used' },
  },
  'app permissions': { input: [{ application_type: '' }] },
  'formula create': { good: FORMULA, input: WRONG_FORMULAS, forbidden: { type: 'official' } },
  'formula update': {
    good: { ...FORMULA, id: '$formula' },
    input: WRONG_FORMULAS,
    forbidden: { type: 'official' },
  },
  'formula delete': { good: { id: '$unused' } },
  'reactor create': { good: { name: 'r', formula: { id: '$formula' } }, input: WRONG_REACTORS },
  'reactor update': { good: { id: '$reactor', name: 'r' }, input: WRONG_REACTORS },
  'reactor patch': { good: { id: '$reactor', name: 'r' }, input: WRONG_REACTORS },
  'reactor react': REACT,
  'reactor react-async': REACT,
  'reactor result': { good: { id: '$reactor', request_id: '$result' } },
  'proxy create': { good: PROXY, input: WRONG_PROXIES },
  'proxy update': { good: { id: '$proxy', ...PROXY }, input: WRONG_PROXIES },
  'proxy patch': { good: { id: '$proxy' }, input: WRONG_PROXIES },
  'webhook create': { good: WEBHOOK, input: WRONG_WEBHOOKS },
  'webhook update': { good: { id: '$webhook', ...WEBHOOK }, input: WRONG_WEBHOOKS },
  'log list': { input: [...PAGE, { start_date: 'soon' }] },
  'tenant update': { good: { name: 't' }, input: [{ name: ' ' }, { settings: { x: '1' } }] },
  'tenant transfer-owner': {
    // This member already is the owner, so the request changes no member that the other rows use.
    good: { member_id: '$owner' },
    input: [{ member_id: 1 }],
    missing: { member_id: '00000000-0000-4000-8000-000000000000' },
  },
  'tenant set-security-contact': {
    good: { email: 'ada@example.com' },
    input: [
      { email: 'x' },
      { email: `${'a'.repeat(320)}@example.com` },
      { email: 'a\u001b[31m@example.com' },
    ],
  },
  'tenant merchant create': {
    good: { tenant_id: '$tenant', name: 'new' },
    input: WRONG_MERCHANTS,
    conflict: { name: 'shop' },
  },
  'tenant merchant list': { good: { tenant_id: '$tenant' }, input: PAGE },
  'tenant merchant get': { good: merchant },
  'tenant merchant patch': {
    good: { ...merchant, name: 'changed' },
    input: [...WRONG_MERCHANTS, { name: null }],
    conflict: { name: 'other' },
  },
  'tenant merchant delete': { good: merchant },
  'app template get': { good: { id: '6f0f6a3e-7c0e-4f0c-9a55-2f1f6f3b7d01' } },
  'member update': { good: { id: '$member', role: 'READ_ONLY' }, input: [{ role: 'USER' }] },
  'invite create': { good: { email: 'ada@example.com' }, input: [{ email: 'ada' }] },
}

export function faultyInputsOf({ name, noun, endpoint }: RoutedOperation) {
  const { parameters, query } = endpoint
  const good: Input = Object.fromEntries(parameters.map((parameter) => [parameter, `$${noun}`]))
  const input = / list$/.test(name) && 'size' in query ? PAGE : []
  const nobody = '00000000-0000-4000-8000-000000000000'
  const missing = parameters.slice(-1).map((last) => ({ [last]: nobody }))[0]
  return { good, input, ...(missing && { missing }), ...FAULTY_INPUTS[name] }
}

function manyTokens(): Input {
  return Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`a${at}`, `{{ token-${at} }}`]))
}

/** Returns a handler that answers requests without a socket. */
export function serve({ app }: TestVault): Handler {
  const service = { host: app, registry, authenticate, version: '0.0.0', bodyLimitBytes: 16_384 }
  return handlerOf(completeService(service))
}

/** The parts of a request other than its input. `filler` is appended to the body, and `suffix` to the address. */
export type Sent = { key: string | undefined; type?: string; filler?: string; suffix?: string }

export function toRequest(
  definition: RoutedOperation,
  input: Input,
  { key, type, filler = '', suffix = '' }: Sent,
): Request {
  const { target, body, contentType } = formatRequest(definition, input)
  return new Request(`http://localhost${target}${suffix}`, {
    method: definition.endpoint.method,
    headers: {
      'content-type': type ?? contentType ?? 'application/json',
      ...(key !== undefined && { 'svc-api-key': key }),
    },
    ...(body !== undefined && { body: body + filler }),
  })
}
