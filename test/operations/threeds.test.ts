/** 3-D Secure: sessions, authentication and challenges without pages. */
import t, { type Test } from 'tap'
import {
  answerChallenge,
  beginChallenge,
  completeMethodStep,
  readEndedChallenge,
} from '../../src/operations/3ds/pages.js'
import { createHandler } from '../support/service.js'
import { openTestVault, START, setSetting } from '../support/test-vault.js'
import { APP, AUTHENTICATE, BROWSER } from './documented.js'

type Json = Record<string, unknown>
type Event = { type: string; data: { session: Json; actor: { type: string } } }

const HOUR_MS = 60 * 60 * 1000
const MINUTE_MS = 60_000
const UNSUPPORTED = 'The card was not supported by any card schemes'
const CARDS = {
  FY: '5204247750001471',
  FN: '4264281511112228',
  CY: '4000020000000000',
  CYX: '4005562231212123',
  CYB: '4150580996517927',
  CYO: '4000000000000341',
  CN: '4055011111111111',
  ED: '4264281500003339',
  EI: '4264281500001119',
  X: '4100000000000003',
} as const

const MERCHANT = {
  ...AUTHENTICATE,
  authentication_type: 'other-payment',
  decoupled_challenge_max_time: 10,
}

/**
 * Opens a vault with keys of every kind and a token for each scenario. The result has a function that sends HTTP
 * requests.
 */
async function open(t: Test) {
  const vault = await openTestVault()
  const { app, ask, createApplication } = vault
  t.teardown(() => app.close())
  const keys = {
    public: (await createApplication('public', { permissions: ['3ds:session:create'] })).key,
    private: (
      await createApplication('private', {
        permissions: ['3ds:session:create', '3ds:session:read', '3ds:session:authenticate'],
      })
    ).key,
    none: (await createApplication('private', { permissions: ['token:read'] })).key,
    management: (await createApplication('management', { permissions: ['3ds:session:create'] })).key,
  }
  const events = (await ask('webhook event-types')) as string[]
  await ask('webhook create', { name: 'all', url: 'https://example.com/events', events })
  const tokens: Json = {}
  for (const [scenario, number] of Object.entries(CARDS))
    tokens[scenario] = (await ask('token create', { type: 'card', data: { number } })).id
  const handler = createHandler(app)
  const send = async (
    line: string,
    body?: object,
    key: string | undefined = keys.private,
    headers: object = {},
  ) => {
    const [method = '', path = ''] = line.split(' ')
    const request = new Request(`http://vault.test:4010${path}`, {
      method,
      headers: {
        ...(key !== '' && { 'svc-api-key': key }),
        'content-type': 'application/json',
        accept: 'application/json',
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = await handler(request)
    const text = await answer.text()
    return {
      status: answer.status,
      headers: answer.headers,
      body: text === '' ? {} : (JSON.parse(text) as Json),
    }
  }
  const create = async (scenario: keyof typeof CARDS, more: object = {}) => {
    const body = { token_id: tokens[scenario], device: 'browser', device_info: BROWSER, ...more }
    const answer = await send('POST /3ds/sessions', body, keys.public)
    t.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body.id as string
  }
  const authenticate = (id: string, body: object = AUTHENTICATE) =>
    send(`POST /3ds/sessions/${id}/authenticate`, body)
  const result = (id: string) => send(`GET /3ds/sessions/${id}/challenge-result`)
  const get = async (id: string) => (await send(`GET /3ds/sessions/${id}`)).body
  /** Returns the events of sessions, oldest first. */
  const eventsOf = async () => {
    const { data } = await ask('webhook deliveries', { size: 100 })
    const payloads = data
      .map(({ payload }) => payload as unknown as { event: Event })
      .map(({ event }) => event)
    return payloads.filter(({ type }) => type.startsWith('3ds.')).reverse()
  }
  return { ...vault, keys, tokens, send, create, authenticate, result, get, eventsOf }
}

type World = Awaited<ReturnType<typeof open>>

async function challenged({ create, authenticate }: World, scenario: keyof typeof CARDS = 'CY') {
  const id = await create(scenario)
  const { body } = await authenticate(id)
  return { id, acsTransactionId: body.acs_transaction_id as string }
}

t.test(
  'the response to the creation of a 3-D Secure session has the attributes that browsers need',
  async (t) => {
    const { send, keys, tokens } = await open(t)
    const body = { token_id: tokens.CY, device: 'browser', device_info: BROWSER }
    for (const path of ['/3ds/sessions', '/3ds/sessions/']) {
      const { status, body: made } = await send(`POST ${path}`, body, keys.public)
      t.equal(status, 201)
      t.strictSame(made, {
        id: made.id,
        type: 'customer',
        cardBrand: 'Visa',
        method_url: 'http://vault.test:4010/3ds/acs/browser/method',
        method_notification_url: `http://vault.test:4010/3ds/sessions/${made.id}/method-notification`,
        directory_server_id: 'M000000003',
        recommended_version: '2.2.0',
      })
    }
    const pan = await send('POST /3ds/sessions', { ...body, token_id: '', pan: tokens.CYB }, keys.public)
    t.match(pan.body, { cardBrand: 'Visa', additional_card_brands: ['Visa', 'Cartes Bancaires'] })
    const withoutMethod = await send('POST /3ds/sessions', { ...body, token_id: tokens.CYX }, keys.public)
    t.match(withoutMethod.body, { method_url: '' })
  },
)

t.test(
  'addresses in a 3-D Secure session begin with the setting public_url, and not with the host of the request',
  async (t) => {
    const { app, send, tokens } = await open(t)
    const body = { token_id: tokens.CY, device: 'browser', device_info: BROWSER }
    await setSetting(app, 'public_url', 'https://vault.example.com/base/')
    const { body: made } = await send('POST /3ds/sessions', body)
    t.equal(made.method_url, 'https://vault.example.com/base/3ds/acs/browser/method')
  },
)

t.test('a 3-D Secure session needs exactly one card, and the card must exist', async (t) => {
  const world = await open(t)
  const { send, keys, tokens, ask, createTenant } = world
  const rest = { device: 'browser', device_info: BROWSER }
  await createTenant('other')
  const data = { number: CARDS.CY }
  const foreign = await ask('token create', { type: 'card', data }, 'other')
  const plain = await ask('token create', { type: 'token', data: CARDS.CY })
  const intent = await ask('intent create', { type: 'card', data })
  const table: [object, string[]][] = [
    [{}, ['token_id']],
    [{ token_id: tokens.CY, token_intent_id: intent.id }, ['token_id', 'token_intent_id']],
    [{ token_id: tokens.CY, pan: tokens.CY }, ['token_id', 'pan']],
    [{ token_id: 'unknown' }, ['token_id']],
    [{ token_id: plain.id }, ['token_id']],
    [{ token_id: foreign.id }, ['token_id']],
    [{ token_id: '{{ data }}' }, ['token_id']],
    [{ token_intent_id: tokens.CY }, ['token_intent_id']],
    [{ pan: intent.id }, ['pan']],
  ]
  for (const [ids, paths] of table) {
    const { status, body } = await send('POST /3ds/sessions', { ...rest, ...ids }, keys.public)
    t.equal(status, 400, JSON.stringify(ids))
    t.strictSame(Object.keys(body.errors as object).sort(), paths.sort(), JSON.stringify(ids))
  }
  const made = await send('POST /3ds/sessions', { ...rest, token_intent_id: intent.id }, keys.public)
  t.equal(made.status, 201)
  const { token_intent_id, token_id, pan_token_id, expiration_date } = await world.get(made.body.id as string)
  t.strictSame([token_intent_id, token_id, pan_token_id], [intent.id, undefined, undefined])
  t.equal(expiration_date, intent.expires_at, 'the session expires with its intent')
  await ask('intent delete', { id: intent.id })
  t.equal(
    (await world.authenticate(made.body.id as string)).status,
    200,
    'the deletion of the intent changes nothing',
  )
})

t.test('a 3-D Secure session needs all attributes of the device, and their values are limited', async (t) => {
  const { send, tokens, get } = await open(t)
  const without = (name: string) =>
    Object.fromEntries(Object.entries(BROWSER).filter(([each]) => each !== name))
  const table: [object, string][] = [
    ...Object.keys(BROWSER).map((name): [object, string] => [
      { device: 'browser', device_info: without(name) },
      `device_info.${name}`,
    ]),
    [{}, 'device'],
    [{ device: 'mobile' }, 'device'],
    [{ device: 'browser' }, 'device_info'],
    [
      { device: 'browser', device_info: { ...BROWSER, browser_color_depth: 24 } },
      'device_info.browser_color_depth',
    ],
    [
      { device: 'browser', device_info: { ...BROWSER, browser_java_enabled: 'no' } },
      'device_info.browser_java_enabled',
    ],
    [
      { device: 'browser', device_info: { ...BROWSER, browser_tz: 'x'.repeat(5001) } },
      'device_info.browser_tz',
    ],
    [{ device: 'browser', device_info: BROWSER, metadata: { a: 1 } }, 'metadata.a'],
    [{ device: 'browser', device_info: BROWSER, web_challenge_mode: 'popup' }, 'web_challenge_mode'],
    [{ type: 'bank', device: 'app' }, 'type'],
  ]
  for (const [more, path] of table) {
    const { status, body } = await send('POST /3ds/sessions', { token_id: tokens.FY, ...more })
    t.equal(status, 400, path)
    t.strictSame(Object.keys(body.errors as object), [path])
  }
  const huge = { ...BROWSER, more: 'x'.repeat(100_000), browser_ip: '10.0.0.1' }
  const made = await send('POST /3ds/sessions', {
    token_id: tokens.FY,
    device: 'browser',
    device_info: huge,
    more: 1,
  })
  t.equal(made.status, 201)
  const session = await get(made.body.id as string)
  t.strictSame(
    session.device_info,
    { browser_accept_header: 'application/json', ...BROWSER, browser_ip: '10.0.0.1' },
    'unknown attributes are not stored',
  )
})

t.test('a 3-D Secure session of an app gets its device information in a later request', async (t) => {
  const { send, tokens, authenticate, keys, create, get } = await open(t)
  const made = await send('POST /3ds/sessions', { token_id: tokens.CY, device: 'app' }, keys.public)
  t.match(made.body, { method_url: '' })
  const id = made.body.id as string
  const early = await authenticate(id)
  t.equal(early.status, 400)
  t.ok('device_info' in (early.body.errors as object))
  const { sdk_max_timeout: _, ...incomplete } = APP
  const refused = await send(`PUT /3ds/sessions/${id}`, { device_info: incomplete }, keys.public)
  t.strictSame(Object.keys(refused.body.errors as object), ['device_info.sdk_max_timeout'])
  const put = await send(`PUT /3ds/sessions/${id}`, { device_info: APP }, keys.public)
  t.equal(put.status, 200)
  t.strictSame(put.body, made.body, 'the answer has the form of the creation')
  const { body } = await authenticate(id)
  t.match(body, {
    authentication_status: 'challenge',
    sdk_transaction_id: APP.sdk_transaction_id,
    acs_rendering_type: { acsInterface: '01', acsUiTemplate: '01' },
    acs_challenge_url: undefined,
  })
  t.equal((await send(`PUT /3ds/sessions/${id}`, { device_info: APP })).status, 409)
  const browser = await create('FY')
  const wrong = await send(`PUT /3ds/sessions/${browser}`, { device_info: APP }, keys.public)
  t.equal(wrong.status, 400)
  t.strictSame((await get(id)).device_info, APP)
})

t.test(
  'the type, the permissions and the rules of a caller decide which 3-D Secure requests the caller may make',
  async (t) => {
    const { send, keys, tokens, create, createApplication, askAs } = await open(t)
    const body = { token_id: tokens.CY, device: 'browser', device_info: BROWSER }
    const id = await create('CY')
    const page = await createApplication('public', {
      permissions: ['3ds:session:create', '3ds:session:read'],
    })
    const { session_key, nonce } = await askAs(page.key, 'session create')
    t.equal((await send('POST /3ds/sessions', body, session_key)).status, 403, 'not authorized yet')
    const permissions = ['3ds:session:create', '3ds:session:read', '3ds:session:authenticate']
    await askAs(keys.private, 'session authorize', { nonce, permissions })
    const rule = { priority: 1, container: '/closed/', transform: 'redact' as const }
    const ruled = await createApplication('private', {
      rules: [{ ...rule, permissions: ['3ds:session:read'] }],
    })
    const table: [string, object | undefined, string, number][] = [
      ['POST /3ds/sessions', body, keys.public, 201],
      ['POST /3ds/sessions', body, keys.private, 201],
      ['POST /3ds/sessions', body, session_key, 201],
      ['POST /3ds/sessions', body, keys.none, 403],
      ['POST /3ds/sessions', body, keys.management, 403],
      ['POST /3ds/sessions', body, '', 401],
      [`GET /3ds/sessions/${id}`, undefined, keys.private, 200],
      [`GET /3ds/sessions/${id}`, undefined, ruled.key, 200],
      [`GET /3ds/sessions/${id}`, undefined, keys.public, 403],
      [`GET /3ds/sessions/${id}`, undefined, page.key, 403],
      [`GET /3ds/sessions/${id}`, undefined, session_key, 403],
      [`PUT /3ds/sessions/${id}`, { device_info: APP }, session_key, 403],
      [`POST /3ds/sessions/${id}/authenticate`, AUTHENTICATE, session_key, 403],
      [`POST /3ds/sessions/${id}/authenticate`, AUTHENTICATE, keys.public, 403],
      [`POST /3ds/sessions/${id}/authenticate`, AUTHENTICATE, ruled.key, 403],
      [`GET /3ds/sessions/${id}/challenge-result`, undefined, keys.public, 403],
      ['GET /3ds/sessions', undefined, keys.private, 405],
      [`DELETE /3ds/sessions/${id}`, undefined, keys.private, 405],
      [`PATCH /3ds/sessions/${id}`, {}, keys.private, 405],
      ['GET /3ds/other', undefined, keys.private, 404],
    ]
    for (const [line, sent, key, status] of table) t.equal((await send(line, sent, key)).status, status, line)
  },
)

t.test('a 3-D Secure session is unknown to another tenant, and its id cannot be guessed', async (t) => {
  const { send, create, createTenant, createApplication, ask } = await open(t)
  await createTenant('other')
  const grants = {
    permissions: ['3ds:session:read', '3ds:session:authenticate', '3ds:session:create'] as const,
  }
  const { key } = await createApplication('private', grants, 'other')
  const id = await create('CY')
  const lines = (path: string): [string, object?][] => [
    [`GET /3ds/sessions/${path}`],
    [`PUT /3ds/sessions/${path}`, { device_info: APP }],
    [`POST /3ds/sessions/${path}/authenticate`, AUTHENTICATE],
    [`GET /3ds/sessions/${path}/challenge-result`],
  ]
  for (const [line, body] of lines(id)) t.equal((await send(line, body, key)).status, 404, line)
  for (const guess of [
    'x',
    id.toUpperCase(),
    `${id}%20`,
    '%00',
    '..%2f',
    'é'.repeat(300),
    '00000000-0000-4000-8000-000000000000',
  ])
    for (const each of lines(encodeURI(guess))) t.equal((await send(...each)).status, 404, each[0])
  await t.rejects(ask('3ds decide', { id }, 'other'), { code: 'not_found' })
})

t.test(
  "3-D Secure errors have exactly the form of the service's errors, because clients compare them",
  async (t) => {
    const world = await open(t)
    const { send, tokens, create, authenticate, ask, get, eventsOf } = world
    const rest = { device: 'browser', device_info: BROWSER }
    const before = (await ask('log list', { size: 1 })).pagination.total_items
    const unsupported = await send('POST /3ds/sessions', { token_id: tokens.X, ...rest })
    t.strictSame(unsupported.body, {
      title: '3DS Service Validation Error',
      status: 400,
      detail: "Check the 'errors' property for more details",
      errors: { [UNSUPPORTED]: ['Cardholder Account Number is not in a range belonging to Issuer.'] },
    })
    const failed = await send('POST /3ds/sessions', { token_id: tokens.EI, ...rest })
    t.equal(failed.status, 424)
    t.match(failed.body, {
      title: '3DS Service Error',
      status: 424,
      detail: "The 3DS service returned an error. See the 'error' field for more details.",
      error: {
        service_status: '500',
        session_id: '',
        error_source: '3DS Server',
        message: String,
        detail: String,
      },
    })
    t.strictSame(Object.keys(failed.body).sort(), ['detail', 'error', 'status', 'title'])
    t.strictSame(Object.keys(failed.body.error as object).sort(), [
      'detail',
      'error_source',
      'message',
      'service_status',
      'session_id',
    ])
    t.equal((await ask('log list', { size: 1 })).pagination.total_items, before, 'nothing is logged')
    t.strictSame(await eventsOf(), [])
    t.equal((await ask('3ds list')).pagination.total_items, 0)
    const id = await create('ED')
    for (const _ of [1, 2]) {
      const { status, body } = await authenticate(id)
      t.equal(status, 424)
      t.match(body, { error: { service_status: '502', session_id: id, error_source: 'Directory Server' } })
    }
    t.notOk('authentication' in (await get(id)))
  },
)

t.test('an invalid request for a 3-D Secure authentication is refused', async (t) => {
  const { create, authenticate, send, tokens } = await open(t)
  const id = await create('FY')
  const without = (path: string) => {
    const copy = JSON.parse(JSON.stringify(AUTHENTICATE)) as Json
    const [first = '', second] = path.split('.')
    if (second === undefined) delete copy[first]
    else delete (copy[first] as Json)[second]
    return copy
  }
  const required = [
    ...[
      'authentication_category',
      'authentication_type',
      'cardholder_info',
      'cardholder_info.name',
      'cardholder_info.email',
    ],
    ...['mid', 'acquirer_bin', 'name', 'country_code', 'category_code'].map(
      (name) => `merchant_info.${name}`,
    ),
    ...['amount', 'currency', 'exponent', 'date'].map((name) => `purchase_info.${name}`),
  ]
  const wrong: [object, string][] = [
    ...required.map((path): [object, string] => [without(path), path]),
    [without('merchant_info'), 'merchant_info'],
    [without('purchase_info'), 'purchase_info'],
    [{ ...AUTHENTICATE, authentication_type: 'other-payment' }, 'authentication_type'],
    [{ ...AUTHENTICATE, authentication_type: 'unknown' }, 'authentication_type'],
    [{ ...AUTHENTICATE, challenge_preference: 'please' }, 'challenge_preference'],
    [{ ...AUTHENTICATE, request_decoupled_challenge: true }, 'decoupled_challenge_max_time'],
    [{ ...AUTHENTICATE, decoupled_challenge_max_time: 10_081 }, 'decoupled_challenge_max_time'],
    [{ ...AUTHENTICATE, card_brand: 'JCB' }, 'card_brand'],
    [
      { ...AUTHENTICATE, purchase_info: { ...AUTHENTICATE.purchase_info, date: '2024' } },
      'purchase_info.date',
    ],
    [{ ...AUTHENTICATE, authentication_type: 'recurring-transaction' }, 'purchase_info.recurring_expiration'],
    [{ ...AUTHENTICATE, authentication_type: 'recurring-transaction' }, 'purchase_info.recurring_frequency'],
    [{ ...AUTHENTICATE, authentication_type: 'installment-transaction' }, 'purchase_info.installment_count'],
    [{ ...AUTHENTICATE, requestor_info: { amex_requestor_type: 'X' } }, 'requestor_info.amex_requestor_type'],
    [
      {
        ...AUTHENTICATE,
        cardholder_info: { ...AUTHENTICATE.cardholder_info, account_info: { account_age: 'old' } },
      },
      'cardholder_info.account_info.account_age',
    ],
    [
      { ...AUTHENTICATE, cardholder_info: { ...AUTHENTICATE.cardholder_info, name: 'x'.repeat(501) } },
      'cardholder_info.name',
    ],
  ]
  for (const [body, path] of wrong) {
    const answer = await authenticate(id, body)
    t.equal(answer.status, 400, path)
    t.ok(path in (answer.body.errors as object), `${path}: ${JSON.stringify(answer.body.errors)}`)
  }
  const recurring = {
    ...{ ...AUTHENTICATE, authentication_type: 'recurring-transaction' },
    purchase_info: {
      ...AUTHENTICATE.purchase_info,
      recurring_expiration: '20240901',
      recurring_frequency: '2',
    },
  }
  t.equal((await authenticate(await create('FY'), recurring)).status, 200)
  const extras = {
    ...AUTHENTICATE,
    sessionId: id,
    requestor_info: { id: 'x' },
    broadcast_info: [1],
    more: {},
  }
  t.equal((await authenticate(id, extras)).status, 200, 'unknown attributes are ignored')
  for (const [brand, status] of [
    ['Cartes Bancaires', 200],
    ['visa', 200],
    ['JCB', 400],
  ] as const)
    t.equal(
      (await authenticate(await create('CYB'), { ...AUTHENTICATE, card_brand: brand })).status,
      status,
      brand,
    )
  const merchant = await send('POST /3ds/sessions', { token_id: tokens.FY, type: 'merchant' })
  const { decoupled_challenge_max_time: _, ...noTime } = MERCHANT
  t.equal((await authenticate(merchant.body.id as string, noTime)).status, 400)
  t.equal((await authenticate(merchant.body.id as string, MERCHANT)).status, 200)
})

t.test('a 3-D Secure session is authenticated only once, even by concurrent requests', async (t) => {
  const { create, authenticate, send, get } = await open(t)
  const id = await create('FN')
  const all = await Promise.all(Array.from({ length: 5 }, () => authenticate(id)))
  t.strictSame(all.map(({ status }) => status).sort(), [200, 409, 409, 409, 409])
  t.match(await get(id), {
    authentication: {
      authentication_status: 'failed',
      authentication_status_reason: 'card-authentication-failed',
      authentication_status_reason_code: '01',
      directory_status_code: 'N',
      liability_shifted: false,
    },
    expiration_date: undefined,
  })
  const other = await create('CY')
  const headers = { 'svc-idempotency-key': 'once' }
  const line = `POST /3ds/sessions/${other}/authenticate`
  const first = await send(line, AUTHENTICATE, undefined, headers)
  const again = await send(line, AUTHENTICATE, undefined, headers)
  t.equal(first.status, 200)
  t.strictSame(again.body, first.body)
  t.equal(again.headers.get('svc-idempotent-replayed'), 'true')
  t.equal((await authenticate(other)).status, 409)
})

t.test('the result of a challenge exists only after the challenge has ended', async (t) => {
  const world = await open(t)
  const { result, create, authenticate, get, ask } = world
  const fresh = await create('CY')
  t.equal((await result(fresh)).status, 409, 'not authenticated')
  const frictionless = await create('FY')
  await authenticate(frictionless)
  t.equal((await result(frictionless)).status, 409, 'no challenge')
  const { id } = await challenged(world)
  t.equal((await result(id)).status, 409, 'not over')
  await ask('3ds decide', { id })
  await t.rejects(ask('3ds decide', { id, outcome: 'failed' }), { code: 'conflict' }, 'decided already')
  t.match(await get(id), {
    authentication: { authentication_status: 'challenge', directory_status_code: 'C' },
  })
  const first = await result(id)
  t.equal(first.status, 200)
  t.strictSame((await result(id)).body, first.body)
  t.match(first.body, {
    authentication_status: 'successful',
    directory_status_code: 'C',
    eci: '05',
    authentication_value: 'LVJhdmVsaW4gVGVzdCBWYWx1ZS0=',
    challenge_attempts: '01',
    message_extensions: [],
    acs_challenge_url: 'http://vault.test:4010/3ds/acs/browser/creq',
  })
  t.strictSame((await get(id)).authentication, first.body)
  await t.rejects(ask('3ds decide', { id, outcome: 'failed' }), { code: 'conflict' }, 'a replayed decision')
})

t.test(
  'a 3-D Secure session has the dates of its creation and expiry, and expires by the clock of the vault',
  async (t) => {
    const world = await open(t)
    const { create, get, clock, send, ask, authenticate, app } = world
    const id = await create('CY', { metadata: { order: '1' } })
    const kept = await create('CY')
    await authenticate(kept, { ...AUTHENTICATE, metadata: { order: '2' } })
    const session = await get(id)
    t.match(session, {
      created_date: '2030-01-15T12:00:00.000+00:00',
      expiration_date: '2030-01-15T13:00:00.000+00:00',
      metadata: { order: '1' },
      modified_date: undefined,
      authentication: undefined,
      method: { method_completion_indicator: 'N' },
      version: { available_versions: ['2.1.0', '2.2.0'] },
    })
    t.equal(session.token_id, session.pan_token_id)
    t.match(await get(kept), { metadata: { order: '2' }, modified_date: '2030-01-15T12:00:00.000+00:00' })
    const expires_at = new Date(START + 20 * MINUTE_MS).toISOString()
    const data = { number: CARDS.CY }
    const short = await ask('token create', { type: 'card', data, expires_at, deduplicate_token: false })
    const body = { token_id: short.id, device: 'browser', device_info: BROWSER }
    const brief = (await send('POST /3ds/sessions', body)).body.id as string
    t.equal((await get(brief)).expiration_date, short.expires_at)
    clock.now = START + HOUR_MS - 1
    t.equal((await send(`GET /3ds/sessions/${brief}`)).status, 404)
    t.equal((await send(`GET /3ds/sessions/${id}`)).status, 200)
    clock.now = START + HOUR_MS
    for (const line of [`GET /3ds/sessions/${id}`, `GET /3ds/sessions/${id}/challenge-result`])
      t.equal((await send(line)).status, 404, line)
    t.equal((await authenticate(id)).status, 404)
    await t.rejects(completeMethodStep(app, id, 'trace'), { code: 'not_found' })
    clock.now = START + 365 * 24 * HOUR_MS
    await app.sweep()
    t.match(await get(kept), { authentication: { authentication_status: 'challenge' } })
    t.equal((await ask('3ds list')).pagination.total_items, 1)
  },
)

t.test('a decoupled challenge ends when its time on the clock of the vault has passed', async (t) => {
  const world = await open(t)
  const { send, tokens, authenticate, clock, app, result, eventsOf } = world
  const create = async (more: object = { type: 'merchant' }) =>
    (await send('POST /3ds/sessions', { token_id: tokens.CY, ...more })).body.id as string
  const swept = await create()
  const asked = await create({ device: 'browser', device_info: BROWSER })
  for (const id of [swept, asked]) {
    const { body } = await authenticate(
      id,
      id === asked
        ? { ...AUTHENTICATE, request_decoupled_challenge: true, decoupled_challenge_max_time: 5 }
        : MERCHANT,
    )
    t.match(body, { authentication_status: 'decoupled_challenge', acs_decoupled_authentication: 'Y' })
    t.notOk('acs_challenge_url' in body)
    t.equal((await result(id)).status, 409)
  }
  const refused = await create()
  const { body } = await authenticate(refused, { ...MERCHANT, request_decoupled_challenge: false })
  t.match(body, { authentication_status: 'failed', authentication_status_reason_code: '23' })
  clock.now += MINUTE_MS
  t.match((await result(asked)).body, { authentication_status: 'successful', directory_status_code: 'D' })
  await app.sweep()
  t.match((await result(swept)).body, { authentication_status: 'successful' })
  const ended = (await eventsOf()).filter(
    ({ type }) => type === '3ds.session.decoupled-challenge-notification',
  )
  t.strictSame(
    ended.map(({ data }) => Object.keys(data.session).sort()),
    [
      ['id', 'tenant_id', 'type'],
      ['id', 'tenant_id', 'type'],
    ],
  )
  t.strictSame(
    ended.map(({ data }) => data.session.id),
    [asked, swept],
  )
})

t.test('a challenge that nobody answers ends after ten minutes', async (t) => {
  const world = await open(t)
  const { app, clock, result } = world
  const { id } = await challenged(world)
  const { id: opened, acsTransactionId } = await challenged(world)
  await beginChallenge(app, { id: opened, acsTransactionId, traceId: 'trace' })
  clock.now += 10 * MINUTE_MS
  const answer = { code: '1234' }
  const late = await answerChallenge(app, { id: opened, acsTransactionId, answer, traceId: 'trace' })
  t.match(late.authentication.challenge.ended, { reason: 'timeout-at-acs' }, 'the answer came too late')
  const failed = { authentication_status: 'failed', authentication_status_reason_code: '14' }
  t.match((await result(id)).body, { ...failed, challenge_cancel_reason_code: '05' })
  t.match((await result(opened)).body, { ...failed, challenge_cancel_reason_code: '04' })
})

t.test(
  'each decision about a challenge gives its outcome, and a setting completes challenges without a decision',
  async (t) => {
    const world = await open(t)
    const { ask, app, result, create, authenticate, send, tokens } = world
    for (const [outcome, expected] of [
      ['successful', { authentication_status: 'successful' }],
      ['attempted', { authentication_status: 'attempted', eci: '06' }],
      ['failed', { authentication_status: 'failed', authentication_status_reason_code: '01' }],
      ['unavailable', { authentication_status: 'unavailable' }],
      ['rejected', { authentication_status: 'rejected' }],
      ['cancelled', { authentication_status: 'failed', challenge_cancel_reason: 'cardholder-canceled' }],
      ['timed-out', { authentication_status: 'failed', authentication_status_reason: 'timeout-at-acs' }],
    ] as const) {
      const { id } = await challenged(world)
      await ask('3ds decide', { id, outcome })
      t.match((await result(id)).body, expected, outcome)
    }
    await t.rejects(ask('3ds decide', { id: await create('CY') }), { code: 'conflict' })
    await setSetting(app, 'threeds.challenges', 'complete')
    const id = await create('CN')
    t.match((await authenticate(id)).body, { authentication_status: 'challenge' })
    t.match((await result(id)).body, {
      authentication_status: 'failed',
      authentication_status_reason_code: '01',
    })
    const merchant = (await send('POST /3ds/sessions', { token_id: tokens.CY, type: 'merchant' })).body
      .id as string
    t.match((await authenticate(merchant, MERCHANT)).body, { authentication_status: 'decoupled_challenge' })
    t.match((await result(merchant)).body, { authentication_status: 'successful' })
  },
)

t.test(
  'with the setting threeds.other_cards, a card that is not a published test card is accepted',
  async (t) => {
    const { app, ask, send, authenticate } = await open(t)
    const { id: token_id } = await ask('token create', { type: 'card', data: { number: '4012888888881881' } })
    const body = { token_id, device: 'browser', device_info: BROWSER }
    t.equal((await send('POST /3ds/sessions', body)).status, 400)
    await setSetting(app, 'threeds.other_cards', 'frictionless')
    const { body: made } = await send('POST /3ds/sessions', body)
    t.match((await authenticate(made.id as string)).body, { authentication_status: 'successful', eci: '05' })
  },
)

t.test(
  'a server application can create a redirect session, and only the redirect page authenticates this session',
  async (t) => {
    const { send, tokens, authenticate, get } = await open(t)
    const callback_urls = { success: 'https://shop.example/ok', failure: 'http://shop.example/no' }
    const body = {
      token_id: tokens.CY,
      device: 'browser',
      authentication_request: AUTHENTICATE,
      callback_urls,
    }
    const made = await send('POST /3ds/sessions', body)
    t.equal(made.body.redirect_url, `http://vault.test:4010/3ds/redirect/${made.body.id}?apiKey=`)
    t.equal((await authenticate(made.body.id as string)).status, 409)
    const session = await get(made.body.id as string)
    for (const name of ['authentication_request', 'callback_urls', 'redirect']) t.notOk(name in session, name)
    const { purchase_info: _, ...lacking } = AUTHENTICATE
    const table: [object, string][] = [
      [{ ...body, callback_urls: undefined }, 'callback_urls'],
      [{ ...body, authentication_request: undefined }, 'authentication_request'],
      [{ ...body, device: 'app' }, 'callback_urls'],
      [{ ...body, type: 'merchant' }, 'callback_urls'],
      [{ ...body, authentication_request: lacking }, 'authentication_request.purchase_info'],
      [
        { ...body, callback_urls: { ...callback_urls, success: 'javascript:alert(1)' } },
        'callback_urls.success',
      ],
      [{ ...body, callback_urls: { success: callback_urls.success } }, 'callback_urls.failure'],
    ]
    for (const [wrong, path] of table) {
      const { status, body: problem } = await send('POST /3ds/sessions', wrong)
      t.equal(status, 400, path)
      t.ok(path in (problem.errors as object), JSON.stringify(problem.errors))
    }
  },
)

t.test('the pages of the test bank complete the method step and answer the challenge', async (t) => {
  const world = await open(t)
  const { app, get, result, ask } = world
  const { id, acsTransactionId } = await challenged(world)
  const traceId = 'trace'
  for (const _ of [1, 2]) await completeMethodStep(app, id, traceId)
  t.match(await get(id), { method: { method_completion_indicator: 'Y' }, modified_date: String })
  const given = { id, acsTransactionId, traceId }
  for (const wrong of [
    { ...given, acsTransactionId: 'x' },
    { ...given, id: 'x' },
  ])
    await t.rejects(beginChallenge(app, wrong), { code: 'not_found' })
  const right = { ...given, answer: { code: '1234' } }
  await t.rejects(answerChallenge(app, right), { code: 'conflict' }, 'an answer without the page')
  await t.rejects(readEndedChallenge(app, given), { code: 'conflict' })
  await beginChallenge(app, given)
  const wrong = await answerChallenge(app, { ...given, answer: { code: '9999' } })
  t.equal(wrong.authentication?.challenge?.ended, undefined)
  await answerChallenge(app, right)
  await answerChallenge(app, { ...given, answer: 'cancel' })
  await beginChallenge(app, given)
  t.match(await readEndedChallenge(app, given), { authentication: { challenge: { attempts: 2 } } })
  t.match((await result(id)).body, { authentication_status: 'successful', challenge_attempts: '02' })
  const log = await ask('log list', { entity_type: 'threeds_session', size: 50 })
  const updates = log.data.filter(({ operation }) => operation === 'update')
  t.strictSame(updates.map(({ actor_type, message }) => [actor_type, message]).reverse(), [
    ['application', '3DS session authenticated'],
    ['system', 'Method step of 3DS session completed'],
    ['system', 'Challenge of 3DS session answered'],
    ['system', 'Challenge of 3DS session ended'],
  ])
})

t.test(
  'events and log records report each step of a 3-D Secure session, and never contain the card number',
  async (t) => {
    const world = await open(t)
    const { app, ask, result, eventsOf, tokens, get } = world
    const { id } = await challenged(world)
    await completeMethodStep(app, id, 'trace')
    await ask('3ds decide', { id })
    await result(id)
    await result(id)
    const session = await get(id)
    const common = { id, type: 'customer', device: 'browser', token_id: tokens.CY, card_brand: 'Visa' }
    const made = { created_at: session.created_date, created_by: session.created_by }
    const short = { id, type: 'customer', tenant_id: session.tenant_id }
    const expires_at = '2030-01-15T13:00:00.000+00:00'
    const told = await eventsOf()
    t.strictSame(
      told.map(({ type, data: { actor: _, ...data } }) => [type, data]),
      [
        [
          '3ds.session.created',
          { session: { ...common, ...made, tenant_id: session.tenant_id, expires_at } },
        ],
        [
          '3ds.session.authenticated',
          { session: { ...common, ...made, expires_at, authentication_status: 'challenge' } },
        ],
        ['3ds.session.method-completed', { session: short }],
        ['3ds.session.challenge-completed', { session: { ...short, authentication_status: 'successful' } }],
        ...[1, 2].map(() => [
          '3ds.session.challenge-result-retrieved',
          { session: { ...common, ...made, tenant_id: session.tenant_id } },
        ]),
      ],
    )
    const actors = ['application', 'application', 'system', 'system', 'application', 'application']
    t.strictSame(
      told.map(({ data }) => data.actor.type),
      actors,
    )
    const { data: log } = await ask('log list', { size: 100 })
    const mine = log.filter(({ entity_id }) => entity_id === id || entity_id === tokens.CY).reverse()
    t.strictSame(
      mine.map(({ entity_type, operation }) => `${entity_type} ${operation}`),
      [
        ...[
          'card create',
          'threeds_session create',
          'card use',
          'threeds_session update',
          'threeds_session update',
        ],
        ...['threeds_session update', 'threeds_session read', 'threeds_session read', 'threeds_session read'],
      ],
    )
    const everything = JSON.stringify([told, log, session, await ask('3ds list')])
    t.notMatch(everything, CARDS.CY)
  },
)

t.test(
  'a card number with a wrong checksum is accepted only if it is a published test number, and sca_required is shown',
  async (t) => {
    const { ask } = await open(t)
    const create = (number: string, operation = 'token create') =>
      ask(operation, { type: 'card', data: { number } })
    for (const operation of ['token create', 'intent create'])
      for (const number of ['4200000000000002', '4200000000000017', '6011601160116011'])
        t.match(await create(number, operation), { card: { authentication: 'sca_required' } })
    t.notOk(
      'authentication' in ((await create('4100000000000003')) as { card: object }).card,
      'not documented',
    )
    t.notOk(
      'authentication' in ((await create('4242424242424242')) as { card: object }).card,
      'not documented any more',
    )
    for (const number of ['4200000000000001', '4200000000000019', '6011601160116012'])
      await t.rejects(create(number), { code: 'validation' }, number)
    await t.rejects(ask('token create', { type: 'card_number', data: '4200000000000002' }), {
      code: 'validation',
    })
  },
)

t.test('a request to decide a challenge is refused if the server has no control plane', async (t) => {
  const { ask } = await open(t)
  await t.rejects(ask('control 3ds decide', { id: 'x' }), { code: 'not_found' })
})
