/** Tests each published test card over HTTP, from the token to the final result. */
import t from 'tap'
import { call, createBackend, openShop } from '../../http/threeds-shop.js'
import { THREEDS_CARDS } from '../../support/published-cards.js'
import { AUTHENTICATE, BROWSER } from '../documented.js'

/** Attributes that a response must not have, unless the test card expects the attribute. */
const OPTIONAL = [
  'authentication_status_reason',
  'authentication_status_reason_code',
  'authentication_value',
  'eci',
]

t.test('each test card becomes a token, and its session ends as the fixture says', async (t) => {
  const { server, backend } = await openShop(t)
  const compare = (shown: Record<string, unknown>, expected: Record<string, string>, name: string) => {
    for (const [attribute, value] of Object.entries(expected))
      t.equal(shown[attribute], value, `${name}: ${attribute}`)
    for (const attribute of OPTIONAL)
      t.equal(attribute in shown, attribute in expected, `${name}: ${attribute}`)
  }
  for (const { number, brands, scenario, documented, authenticate, final } of THREEDS_CARDS) {
    const name = `${number} (${scenario})`
    const token = await backend.send('POST /tokens', { type: 'card', data: { number } })
    t.equal(token.status, 201, name)
    t.equal(token.json.card?.authentication, documented ? 'sca_required' : undefined, name)
    const body = { token_id: token.json.id, device: 'browser', device_info: BROWSER }
    const made = await backend.sendPublic('POST /3ds/sessions', body)
    if (scenario === 'X' || scenario === 'EI') {
      t.equal(made.status, scenario === 'X' ? 400 : 424, name)
      continue
    }
    t.equal(made.status, 201, name)
    t.equal(made.json.cardBrand, brands[0] ?? '', name)
    t.strictSame(made.json.additional_card_brands, brands.length > 1 ? brands : undefined, name)
    const { id } = made.json
    const first = await backend.send(`POST /3ds/sessions/${id}/authenticate`, AUTHENTICATE)
    if (scenario === 'ED') {
      t.equal(first.status, 424, name)
      continue
    }
    compare(first.json, authenticate!, name)
    t.equal((await backend.result(id)).status, 409, name)
    if (final === undefined) continue
    await server.control.threeds.decide({ id })
    compare((await backend.result(id)).json, final, `${name} at the end`)
  }
})

t.test(
  'a merchant session without a challenge ends at once, and a challenge of a merchant session ends after a minute',
  async (t) => {
    const { server, backend } = await openShop(t)
    const request = {
      ...AUTHENTICATE,
      authentication_type: 'mail-order',
      decoupled_challenge_max_time: 10_080,
    }
    const create = async (scenario: 'FY' | 'CY') =>
      (await backend.session(scenario, { type: 'merchant', device: undefined, device_info: undefined })).id
    t.match(await backend.authenticate(await create('FY'), request), { authentication_status: 'successful' })
    const asked = await create('CY')
    t.match(await backend.authenticate(asked, request), { directory_status_code: 'D' })
    await server.control.clock.advance({ by: '60s' })
    t.match((await backend.result(asked)).json, { authentication_status: 'successful', eci: '05' })
    const recurring = {
      ...AUTHENTICATE,
      authentication_type: 'installment-transaction',
      purchase_info: { ...AUTHENTICATE.purchase_info, installment_count: '12' },
    }
    const { id } = await backend.session('FY')
    t.match(await backend.authenticate(id, recurring), { authentication_status: 'successful' })
  },
)

t.test('a 3-D Secure session exists only in the vault or fork that created it', async (t) => {
  const { server, backend } = await openShop(t)
  const before = await backend.challenged()
  const [one, two] = [await server.control.fork(), await server.control.fork()]
  const [first, second] = [one, two].map(({ keys }) => createBackend(server.url, keys as typeof backend.keys))
  t.equal((await first!.result(before.id)).status, 404, 'a fork begins without the sessions of its vault')
  t.equal((await backend.result(before.id)).status, 409, 'the session of the vault goes on')
  const own = await first!.challenged()
  for (const other of [second!, backend]) t.equal((await other.result(own.id)).status, 404)
  await one.control.snapshots.create({ name: 'pending' })
  await one.control.threeds.decide({ id: own.id })
  await one.control.snapshots.restore({ name: 'pending' })
  t.equal((await first!.result(own.id)).status, 409, 'pending again')
  await one.control.reset()
  t.equal((await first!.result(own.id)).status, 404)
  await server.control.threeds.decide({ id: before.id })
  t.match((await backend.result(before.id)).json, { authentication_status: 'successful' })
})

t.test(
  'the permissions and events of the server, and its OpenAPI document, include 3-D Secure',
  async (t) => {
    const { server, backend } = await openShop(t)
    const management = { headers: { 'bt-api-key': server.keys.management ?? '' } }
    const get = async (path: string) => (await call(backend.url + path, management)).json
    const paths = Object.keys((await get('/openapi.json')).paths).filter((path) => path.startsWith('/3ds'))
    t.strictSame(paths.sort(), [
      '/3ds/sessions',
      '/3ds/sessions/{id}',
      '/3ds/sessions/{id}/authenticate',
      '/3ds/sessions/{id}/challenge-result',
    ])
    const permissions = (await get('/permissions')) as { type: string; application_types: string[] }[]
    const types = (name: string) =>
      permissions.find(({ type }) => type === `3ds:session:${name}`)?.application_types
    t.strictSame(['create', 'read', 'authenticate'].map(types), [
      ['public', 'private'],
      ['private'],
      ['private'],
    ])
    const events = ((await get('/webhooks/event-types')) as string[]).filter((name) =>
      name.startsWith('3ds.'),
    )
    t.equal(events.length, 6)
    const entities = JSON.stringify(await get('/logs/entity-types'))
    t.match(entities, /threeds_session/)
    t.match(entities, /ThreeDsSession/)
    t.equal((await call(`${backend.url}/3ds/other`, management)).status, 404)
  },
)
