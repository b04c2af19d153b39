/**
 * The paths and properties that the newest client for Node uses. This file lists the paths and properties that
 * Coffer does not emulate, with the reasons.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { ObjectSchema, Schema } from '../../src/framework/schema.js'
import { memberOf } from '../../src/framework/schema.js'
import { readAreas } from '../../src/http/openapi/emulation.js'
import { registry } from '../../src/operations/all.js'
import { createHandler } from '../support/service.js'
import { openTestVault } from '../support/test-vault.js'

const root = dirname(createRequire(import.meta.url).resolve('@basis-theory/node-sdk'))
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
const readAll = (end: string) =>
  files.filter((file) => file.endsWith(end)).map((file) => readFileSync(join(root, file), 'utf8'))

const CALL = /Default,\s*(?:"([^"]+)"|`([^`]+)`)\),\s*method: "(\w+)"/g
const ENDS = /^(?:401 Unauthorized|501 Not Emulated|200 undefined)$/

t.test('each path of the client is emulated or listed as not emulated', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const handle = createHandler(vault.app)
  const calls = [...readAll('/client/Client.js').join('').matchAll(CALL)]
  t.ok(calls.length > 140, `${calls.length} calls`)
  for (const [, plain, template, method = ''] of calls) {
    const path = `/${plain ?? template!.replaceAll(/\$\{[^}]*\}/g, 'x')}`
    const answer = await handle(new Request(`http://localhost${path}`, { method }))
    const text = await answer.text()
    const outcome = `${answer.status} ${text === '' ? undefined : JSON.parse(text).title}`
    t.match(outcome, ENDS, `${method} ${path}`)
    if (answer.status === 200) t.equal(path, '/ping')
  }
})

const TOKEN = { type: 'token', data: 'a' }
const PROXY = { name: 'a', destination_url: 'https://example.com' }
const MERCHANT = { merchant_identifier: 'a' }
const FILE = 'MAMCAQM='
const GOOGLE = { google_payment_data: { protocolVersion: 'ECv2', signature: 'a', signedMessage: 'a' } }
const WEBHOOK = { name: 'a', url: 'https://example.com', events: ['token.created'] }
/** For each request type of the client: an operation and a body. */
const REQUESTS: Record<string, [operation: string, body: object]> = {
  CreateTokenRequest: ['token create', TOKEN],
  UpdateTokenRequest: ['token update', {}],
  CreateApplicationRequest: ['app create', {}],
  UpdateApplicationRequest: ['app update', {}],
  CreateReactorRequest: ['reactor create', {}],
  UpdateReactorRequest: ['reactor update', {}],
  PatchReactorRequest: ['reactor patch', {}],
  CreateProxyRequest: ['proxy create', PROXY],
  UpdateProxyRequest: ['proxy update', { id: 'x', ...PROXY }],
  PatchProxyRequest: ['proxy patch', {}],
  CreateWebhookRequest: ['webhook create', WEBHOOK],
  UpdateWebhookRequest: ['webhook update', { id: 'x', ...WEBHOOK }],
  CreateTokenIntentRequest: ['intent create', TOKEN],
  ClientEncryptionKeyRequest: ['key create', {}],
  AuthorizeSessionRequest: ['session authorize', {}],
  UpdateTenantRequest: ['tenant update', {}],
  UpdateTenantMemberRequest: ['member update', {}],
  CreateTenantInvitationRequest: ['invite create', {}],
  CreateReactorFormulaRequest: ['formula create', {}],
  UpdateReactorFormulaRequest: ['formula update', {}],
  AccountUpdaterRealTimeRequest: ['updater real-time', { token_id: 'x' }],
  CreateAccountUpdaterJobRequest: ['updater job create', {}],
  CreateNetworkTokenRequest: ['network-token create', {}],
  CreateDocumentRequest: ['document create', { document: 'x' }],
  BankVerificationRequest: ['enrich bank', { token_id: 'x' }],
  TransferTenantOwnerRequest: ['tenant transfer-owner', { member_id: 'x' }],
  SecurityContactEmailRequest: ['tenant set-security-contact', { email: 'x' }],
  TenantMerchantRequest: ['tenant merchant create', { name: 'x' }],
  GooglePayCreateRequest: ['google-pay create', GOOGLE],
  GooglePayMerchantRegisterRequest: ['google-pay merchant create', MERCHANT],
  GooglePayMerchantCertificatesRegisterRequest: [
    'google-pay certificate create',
    { merchant_id: 'x', merchant_certificate_data: FILE, merchant_certificate_password: 'x' },
  ],
  ApplePayCreateRequest: ['apple-pay create', { apple_payment_data: { paymentData: {} } }],
  ApplePaySessionRequest: ['apple-pay session', { domain: 'a.example', display_name: 'a' }],
  ApplePayDomainRegistrationRequest: ['apple-pay domain register', { domain: 'a.example' }],
  ApplePayDomainRegistrationListRequest: ['apple-pay domain replace', { domains: [] }],
  ApplePayDomainDeregistrationRequest: ['apple-pay domain deregister', { domain: 'a.example' }],
  ApplePayMerchantRegisterRequest: ['apple-pay merchant create', MERCHANT],
  ApplePayMerchantCertificatesRegisterRequest: [
    'apple-pay certificate create',
    {
      merchant_id: 'x',
      payment_processor_certificate_data: FILE,
      payment_processor_certificate_password: 'x',
    },
  ],
}

t.test('each property that the client sends is declared, refused or listed as ignored', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const ignored = readAreas().flatMap(({ ignored = [] }) => ignored)
  for (const [type, [operation, body]] of Object.entries(REQUESTS)) {
    const [declaration = ''] = readAll(`/${type}.d.ts`).filter((text) => text.includes('interface Raw {'))
    const names = [...declaration.matchAll(/^ {8}"?(\w+)"?\??:/gm)].map(([, name]) => name!)
    t.ok(names.length > 0, type)
    for (const name of names) {
      if (name in registry.find(operation)!.endpoint!.body || ignored.includes(name)) continue
      const refused = await vault
        .ask(operation, { ...body, [name]: 'x' })
        .catch((error: { errors?: object }) => error)
      t.ok((refused as { errors?: Record<string, unknown> }).errors?.[name], `${type}.${name}`)
    }
  }
})

/** For each response type of the client: an operation that returns this type. */
const ANSWERS: Record<string, string> = {
  Token: 'token get',
  TokenIntent: 'intent get',
  CreateTokenIntentResponse: 'intent create',
  ClientEncryptionKeyResponse: 'key create',
  ClientEncryptionKeyMetadataResponse: 'key get',
  Application: 'app get',
  ApplicationKey: 'app key get',
  AsyncReactResponse: 'reactor react-async',
  ReactResponse: 'reactor react',
  Reactor: 'reactor get',
  ReactorFormula: 'formula get',
  Proxy: 'proxy get',
  Tenant: 'tenant get',
  TenantUsageReport: 'tenant usage',
  TenantInvitationResponse: 'invite get',
  TenantMemberResponse: 'member update',
  Webhook: 'webhook get',
  WebhookList: 'webhook list',
  CreateSessionResponse: 'session create',
  LogPaginatedList: 'log list',
  LogEntityType: 'log entity-types',
  Permission: 'app permissions',
  Role: 'member roles',
  TokenCursorPaginatedList: 'token list-after',
  ApplicationPaginatedList: 'app list',
  AccountUpdaterJob: 'updater job get',
  AccountUpdaterJobList: 'updater job list',
  AccountUpdaterRealTimeResponse: 'updater real-time',
  NetworkToken: 'network-token get',
  NetworkTokenCryptogram: 'network-token cryptogram',
  NetworkTokenAccount: 'network-token account',
  Document: 'document get',
  BankVerificationResponse: 'enrich bank',
  GooglePayCreateResponse: 'google-pay create',
  GooglePayToken: 'google-pay get',
  GooglePayMerchant: 'google-pay merchant get',
  GooglePayMerchantCertificates: 'google-pay certificate get',
  ApplePayCreateResponse: 'apple-pay create',
  ApplePayToken: 'apple-pay get',
  ApplePayDomainRegistrationResponse: 'apple-pay domain list',
  ApplePayMerchant: 'apple-pay merchant get',
  ApplePayMerchantCertificates: 'apple-pay certificate get',
  CardDetailsResponse: 'enrich card',
  ApplicationTemplate: 'app template get',
  SecurityContactEmailResponse: 'tenant security-contact',
  TenantMerchant: 'tenant merchant get',
  TenantMerchantPaginatedList: 'tenant merchant list',
}
/**
 * Attributes that no response has. Unless a comment gives another reason, an attribute belongs to an area that is not
 * emulated, or is newer than the API of 2023.
 */
const NEVER = {
  Token: 'enrichments network_token aliases authentication',
  TokenExtras: 'tsp_details',
  CardDetails: 'issuer segment product additional',
  CardDetailsResponse: 'segment binRange additional',
  CardIssuerDetails: 'name',
  TokenIntent: 'network_token authentication',
  CreateTokenIntentResponse: 'network_token authentication',
  ApplicationKey: 'version',
  // The rules of an application have no conditions.
  AccessRule: 'conditions',
  ReactResponse: 'body headers',
  TenantMerchant: 'services',
  Proxy: 'proxy_host timeout client_certificate',
  // The requested version of a proxy has only the attributes that are needed to build the proxy.
  PendingProxy: 'destination_url require_auth',
  User: 'provider mfa_enrolled',
  GooglePayToken: 'type ingest_source',
  GooglePayMerchantCertificates: 'merchant_certificate_expiration_date',
  ApplePayToken: 'ingest_source',
  // Coffer does not read the dates of certificates.
  ApplePayMerchantCertificates:
    'merchant_certificate_expiration_date payment_processor_certificate_expiration_date',
  // Only Apple Pay with several merchants has these attributes.
  Authentication: 'authentication_responses',
  TokenServiceProviderDetails:
    'transaction_id currency_code transaction_amount cardholder_name device_manufacturer_identifier ' +
    'payment_data_type merchant_token_identifier authentication_responses status',
  // A list that is read by page number has no cursor.
  Pagination: 'after next',
}
/**
 * The test does not compare these attributes: a response shows only a part of each, or repeats the value of a request.
 */
const IN_PART = [
  'NetworkToken.card',
  'NetworkToken.data',
  'NetworkToken.network_token',
  'ProxyTransformOptions.token',
  'Reactor.application',
  'Reactor.application',
  'ProxyTransformOptions.token',
  // Coffer does not invent an issuer for the card of a wallet.
  'GooglePayToken.card',
  'ApplePayToken.card',
]

t.test('each attribute that the client reads is declared or listed as absent', async (t) => {
  const found = new Set<string>()
  for (const [type, operation] of Object.entries(ANSWERS)) {
    const { output } = registry.find(operation)!
    t.ok(output, operation)
    for (const absent of listAbsent(type, output ?? {})) found.add(absent)
  }
  const never = Object.entries(NEVER).flatMap(([type, names]) =>
    names.split(' ').map((name) => `${type}.${name}`),
  )
  t.strictSame([...found].sort(), never.sort())
})

/** Yields each attribute, also of nested types, that the schema lacks or that only the client requires. */
function* listAbsent(type: string, given: Schema): Generator<string> {
  const declaration = readAll(`serialization/types/${type}.d.ts`)[0]?.split('interface Raw {')[1] ?? ''
  const schema = memberOf(given)
  const { properties = {}, required = [] } = schema.type === 'object' ? (schema as ObjectSchema) : {}
  for (const [, name = '', optional, value = ''] of declaration.matchAll(/^ {8}"?(\w+)"?(\??): (.*);$/gm)) {
    const inner = properties[name]
    if (inner === undefined || (optional === '' && !required.includes(name))) yield `${type}.${name}`
    const [, innerType] = /([A-Z]\w+)\.Raw/.exec(value) ?? []
    if (inner !== undefined && innerType !== undefined && !IN_PART.includes(`${type}.${name}`))
      yield* listAbsent(innerType, inner)
  }
}

/** Properties of a request body that the response to this request does not show under the same name. */
const DONE: Record<string, string[]> = {
  // The response to the creation does not show these properties. A later response about the session or its
  // authentication shows them.
  '3ds create': [
    'token_id',
    'token_intent_id',
    'pan',
    'device',
    'device_info',
    'web_challenge_mode',
    'authentication_request',
    'callback_urls',
  ],
  '3ds update': ['device_info'],
  '3ds authenticate': [
    'authentication_category',
    'authentication_type',
    'card_brand',
    'request_decoupled_challenge',
    'decoupled_challenge_max_time',
    'merchant_info',
    'purchase_info',
    'cardholder_info',
    'requestor_info',
    'metadata',
  ],
  // Another response has the content of the document.
  'document create': ['document'],
  // A job shows only the effect of these properties.
  'updater job create': ['deduplicate_tokens', 'merchant_id', 'result_version'],
  // The date in the body replaces the date of the card. The other properties have no effect.
  'network-token create': ['expiration_month', 'expiration_year', 'cardholder_info', 'merchant_id'],
  // The data of the intent, or the decrypted value of `encrypted`, becomes the data of the token.
  'token create': ['token_intent_id', 'encrypted'],
  'token create-child': ['token_intent_id', 'encrypted'],
  'intent create': ['data', 'encrypted'],
  // A body is refused if a rule has conditions, because only rules of sessions may have conditions.
  'app create': ['rules.conditions', 'create_key'],
  'app update': ['rules.conditions'],
  // The response is the member with this id.
  'tenant transfer-owner': ['member_id'],
  // The payload of a wallet becomes a card. Certificates are checked and not stored.
  'google-pay create': ['google_payment_data', 'expires_at', 'merchant_registration_id'],
  'google-pay certificate create': ['merchant_certificate_data', 'merchant_certificate_password'],
  'apple-pay create': ['apple_payment_data', 'expires_at', 'merchant_registration_id'],
  'apple-pay certificate create': [
    'merchant_certificate_data',
    'merchant_certificate_password',
    'payment_processor_certificate_data',
    'payment_processor_certificate_password',
  ],
  // The response lists all registered domains.
  'apple-pay domain register': ['domain'],
  'apple-pay domain deregister': ['domain'],
  // The response shows this property as `application_id`.
  'proxy create': ['application'],
  'proxy update': ['application'],
  'proxy patch': ['application'],
}

t.test('every declared property of a body is shown in the response or listed as different', async (t) => {
  const found: Record<string, string[]> = {}
  for (const { name, noun, endpoint, output, log } of registry.routed) {
    if (endpoint === undefined || !['create', 'update'].includes(log?.operation ?? '')) continue
    const shown = output ?? registry.find(`${noun} get`)?.output ?? {}
    const hidden = [...listHidden(endpoint.body, memberOf(shown), '')]
    if (hidden.length > 0) found[name] = hidden
  }
  t.strictSame(found, DONE)
})

/**
 * Yields the properties of a request that the response does not show. A map, or a property that accepts any JSON,
 * counts as shown completely.
 */
function* listHidden(
  given: Readonly<Record<string, Schema>>,
  shown: Schema,
  path: string,
): Generator<string> {
  if (shown.type !== 'object' || shown.properties === undefined) return
  for (const [name, schema] of Object.entries(given)) {
    const member = memberOf(schema)
    const { properties = {} } = member.type === 'object' ? (member as ObjectSchema) : {}
    if (name in shown.properties)
      yield* listHidden(properties, memberOf(shown.properties[name]!), `${path}${name}.`)
    else yield path + name
  }
}
