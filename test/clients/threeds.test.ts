/**
 * The requests of clients that cannot be installed or cannot run here: web-threeds 2.x, and the software kits for
 * Android, iOS and React Native. The test writes these requests as the source code of the clients sends them.
 */
import t from 'tap'
import { call, type Json, openShop } from '../http/threeds-shop.js'
import { AUTHENTICATE } from '../operations/documented.js'

const SHOP = 'https://shop.test'
/**
 * The properties that the kits for Android and iOS require in a response. The value of each of these properties is a
 * text.
 */
const NATIVE = [
  'id',
  'cardBrand',
  'method_url',
  'method_notification_url',
  'directory_server_id',
  'recommended_version',
]

/** Web-threeds 2.x sends the sizes of the screen as texts, and always sends `metadata`. */
const webSession = (card: object, metadata: object = {}) => ({
  ...card,
  device: 'browser',
  device_info: {
    browser_javascript_enabled: true,
    browser_java_enabled: false,
    browser_language: 'en-GB',
    browser_color_depth: '24',
    browser_screen_height: '1080',
    browser_screen_width: '1920',
    browser_tz: '-120',
    browser_user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0.0.0',
  },
  web_challenge_mode: 'iframe',
  metadata,
})

t.test('the requests of web-threeds 2.x are answered, also from a page of another origin', async (t) => {
  const { backend } = await openShop(t)
  const url = `${backend.url}/3ds/sessions`
  const asked = await call(url, {
    method: 'OPTIONS',
    headers: {
      origin: SHOP,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'bt-api-key,bt-trace-id,content-type',
    },
  })
  t.equal(asked.status, 204)
  for (const name of ['bt-api-key', 'bt-trace-id', 'content-type'])
    t.match(asked.headers.get('access-control-allow-headers')?.toLowerCase(), name)
  const traceId = '4f1c0b6e-5a51-4a4e-9c5e-6a4e7a3f0a11'
  const send = (body: object) =>
    call(url, {
      method: 'POST',
      headers: {
        origin: SHOP,
        'BT-API-KEY': backend.keys.public,
        'Content-Type': 'application/json',
        'BT-TRACE-ID': traceId,
      },
      body: JSON.stringify(body),
    })
  const token_id = await backend.token('CY')
  const plain = await send(webSession({ token_id }))
  t.equal(plain.status, 201)
  t.equal(plain.headers.get('bt-trace-id'), traceId)
  t.match(plain.headers.get('access-control-expose-headers')?.toLowerCase(), 'bt-trace-id')
  t.ok(plain.headers.get('access-control-allow-origin'))
  t.match(plain.json, { id: String, cardBrand: 'Visa', method_url: String, method_notification_url: String })
  t.notOk('metadata' in plain.json, 'an empty map counts as none')
  const described = await send(webSession({ pan: token_id }, { order_id: '7' }))
  t.match(described.json, { metadata: { order_id: '7' } })
  const { json: intent } = await backend.send('POST /token-intents', {
    type: 'card',
    data: { number: '4150580996517927' },
  })
  const shared = await send(webSession({ token_intent_id: intent.id }))
  t.match(shared.json, { additional_card_brands: ['Visa', 'Cartes Bancaires'] })
  // Web-threeds distinguishes the next two errors by their bodies.
  const unsupported = await send(webSession({ token_id: await backend.token('X') }))
  t.equal(unsupported.status, 400)
  t.ok('The card was not supported by any card schemes' in unsupported.json.errors)
  const failed = await send(webSession({ token_id: await backend.token('EI') }))
  t.equal(failed.status, 424)
  t.match(failed.json, { title: String, error: { service_status: '500', message: String, detail: String } })
})

/** The values that the kits send with `PUT`. The kits get these values from the vendor's program for challenges. */
const nativeDevice = (data: string) => ({
  device_info: {
    sdk_transaction_id: 'b2385523-a66c-4907-ac3c-91848e8c0067',
    sdk_application_id: 'df898f15-b3b4-4a1e-a1d9-2a1a3b0e5b5f',
    sdk_encryption_data: data,
    sdk_ephemeral_public_key: '{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}',
    sdk_max_timeout: '05',
    sdk_reference_number: '3DS_LOA_SDK_RAVE_020200_00001',
    sdk_render_options: { sdk_interface: '01', sdk_ui_type: ['01', '02', '03', '04'] },
  },
})

t.test('the requests of the kits for Android and iOS, and of their backend, are answered', async (t) => {
  const { server, backend } = await openShop(t)
  const token_id = await backend.token('CY')
  const { json: intent } = await backend.send('POST /token-intents', {
    type: 'card',
    data: { number: '4000020000000000' },
  })
  const cards = {
    'Android with a token': { token_id },
    'Android with an intent': { token_intent_id: intent.id },
    'iOS, first versions': { pan: token_id },
  }
  for (const [name, card] of Object.entries(cards)) {
    const made = await backend.sendPublic('POST /3ds/sessions', { ...card, device: 'app' })
    t.ok([200, 201].includes(made.status), name)
    const { id } = made.json
    // The encrypted data of a device can have 64,000 characters.
    const put = await backend.sendPublic(`PUT /3ds/sessions/${id}`, nativeDevice('e'.repeat(64_000)))
    t.equal(put.status, 200, name)
    for (const answer of [made, put])
      t.strictSame(
        NATIVE.filter((each) => typeof answer.json[each] !== 'string'),
        [],
        `${name}: the kit requires each of these texts`,
      )
    // The backends of the kits pass on the id of the session. Coffer ignores this id.
    const first = await backend.authenticate(id, { ...AUTHENTICATE, sessionId: id })
    t.match(first, {
      authentication_status: 'challenge',
      acs_transaction_id: String,
      acs_reference_number: String,
      sdk_transaction_id: nativeDevice('').device_info.sdk_transaction_id,
      acs_rendering_type: { acsInterface: '01', acsUiTemplate: '01' },
    })
    await server.control.threeds.decide({ id })
    t.match((await backend.result(id)).json, { authentication_status: 'successful' }, name)
  }
  const { json } = await backend.sendPublic('POST /3ds/sessions', { token_id, device: 'app' })
  const long = await backend.sendPublic(`PUT /3ds/sessions/${json.id}`, nativeDevice('e'.repeat(64_001)))
  t.strictSame([long.status, Object.keys(long.json.errors)], [400, ['device_info.sdk_encryption_data']])
})

t.test(
  'the requests of the kit for React Native, which shows pages in a web view, are answered',
  async (t) => {
    const { backend } = await openShop(t)
    const token_id = await backend.token('CY')
    const body: Json = webSession({ token_id })
    delete body.metadata
    delete body.web_challenge_mode
    const { status, json } = await backend.sendPublic('POST /3ds/sessions', body)
    t.equal(status, 201)
    t.equal((await backend.get(json.id)).web_challenge_mode, 'iframe')
  },
)
