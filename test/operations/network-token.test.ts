/** Network tokens: what is stored, who sees numbers, and what hostile requests get. */
import t, { type Test } from 'tap'
import { createHandler } from '../support/service.js'
import { openTestVault } from '../support/test-vault.js'

const CARD = { number: '4111111111111111', expiration_month: 10, expiration_year: 2031 }

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const create = (input: object = { data: CARD }, tenant?: string) =>
    vault.ask('network-token create', { ...input }, tenant)
  const numberOf = async (id: string) => (await vault.ask('network-token get', { id })).data?.number ?? ''
  return { ...vault, create, numberOf }
}

t.test('the number of a network token is the same each time, and differs in another tenant', async (t) => {
  const { ask, create, numberOf, createTenant } = await open(t)
  const made = await create()
  const number = await numberOf(made.id)
  t.match(number, /^4111\d{12}$/)
  t.not(number, CARD.number)
  t.equal(made.data?.number, `XXXXXXXXXXXX${number.slice(-4)}`)
  await ask('network-token delete', { id: made.id })
  const again = await create()
  t.equal(await numberOf(again.id), number)
  t.equal(again.par, made.par)
  await createTenant('other')
  const other = await create(undefined, 'other')
  t.not(other.par, made.par)
  t.not((await ask('network-token get', { id: other.id }, 'other')).data?.number, number)
  await t.rejects(ask('network-token get', { id: other.id }), { code: 'not_found' })
})

t.test('concurrent requests for one card make one network token', async (t) => {
  const { create, app } = await open(t)
  const made = await Promise.all(Array.from({ length: 20 }, () => create()))
  t.equal(new Set(made.map(({ id }) => id)).size, 1)
  t.equal(made.filter(({ _extras }) => _extras?.deduplicated === false).length, 1)
  const { number: tenant } = await app.tenant()
  t.equal(
    (await app.store.read((reader) => reader.find('network_token', tenant, { page: 1, size: 1 }))).total,
    1,
  )
})

t.test('no record of a network token and no log record contains the number of the card', async (t) => {
  const { app, ask, create, numberOf } = await open(t)
  const { id: token_id } = await ask('token create', { type: 'card', data: { ...CARD, cvc: '987' } })
  const { id } = await create({ token_id })
  await ask('network-token cryptogram', { id })
  const { number: tenant } = await app.tenant()
  const record = await app.store.read((reader) => reader.get('network_token', tenant, id))
  t.notMatch(JSON.stringify(record), /4111111111111111|987/)
  const number = await numberOf(id)
  const log = JSON.stringify(await ask('log list', { size: 100 }))
  t.notOk(log.includes(number) || log.includes(CARD.number))
})

t.test(
  'a token shows the network token of its card, until the card number in the token changes',
  async (t) => {
    const { ask, create } = await open(t)
    const store = async (more: object = {}) =>
      (await ask('token create', { type: 'card', data: CARD, ...more })).id
    const idsOf = async (id: string) => (await ask('token get', { id }))._extras?.network_token_ids
    const [first, second] = [
      await store({ search_indexes: ['{{ data.number | last4 }}'], expires_at: '2031-01-01T00:00:00Z' }),
      await store(),
    ]
    const before = await ask('token get', { id: first })
    const made = await create({ token_id: first })
    t.match(await create({ token_id: second }), {
      id: made.id,
      token_id: first,
      _extras: { deduplicated: true },
    })
    t.strictSame(await idsOf(first), [made.id])
    t.strictSame(await idsOf(second), [made.id])
    t.strictSame(
      { ...(await ask('token get', { id: first })), _extras: undefined },
      { ...before, _extras: undefined },
    )
    t.equal((await ask('token search', { query: 'data:1111' })).data[0]?.id, first, 'the search indexes stay')
    await ask('token update', { id: first, metadata: { a: 'b' } })
    t.strictSame(await idsOf(first), [made.id], 'a change of other attributes')
    await ask('token update', { id: first, data: { number: '4242424242424242' } })
    t.equal(await idsOf(first), undefined)
    await ask('network-token delete', { id: made.id })
    t.equal(await idsOf(second), undefined)
  },
)

t.test('after the cvc of a token is erased, the token still has its network token', async (t) => {
  const { ask, create, clock, app } = await open(t)
  const { id: token_id } = await ask('token create', { type: 'card', data: { ...CARD, cvc: '987' } })
  const { id } = await create({ token_id })
  clock.now += 2 * 60 * 60 * 1000
  await app.sweep()
  const token = await ask('token get', { id: token_id })
  t.strictSame(token._extras?.network_token_ids, [id])
  t.strictSame(token.data, CARD)
})

t.test('hostile requests are refused, and their errors do not repeat the number', async (t) => {
  const { app, createApplication } = await open(t)
  const { key } = await createApplication('private', {
    permissions: ['network-token:create', 'network-token:read', 'token:read'],
  })
  const handle = createHandler(app)
  const send = async (line: string, body?: string) => {
    const [method = '', path = ''] = line.split(' ')
    const headers = { 'svc-api-key': key, 'content-type': 'application/json' }
    const request = new Request(`http://localhost${path}`, {
      method,
      headers,
      ...(body !== undefined && { body }),
    })
    const answer = await handle(request)
    return { status: answer.status, text: await answer.text() }
  }
  const card = JSON.stringify(CARD).slice(1, -1)
  const bodies = [
    `{"data":{${card},"__proto__":{"number":"x"}}}`,
    `{"__proto__":{"data":{${card}}}}`,
    `{"data":{${card},"constructor":1}}`,
    `{"data":[{${card}}]}`,
    `{"data":{"number":4111111111111111,"expiration_month":10,"expiration_year":2031}}`,
    `{"data":{"number":"${'4'.repeat(100_000)}","expiration_month":10,"expiration_year":2031}}`,
    `{"data":{"number":"41111111111111111","expiration_month":10,"expiration_year":2031}}`,
    `{"data":{"4111111111111111":1}}`,
    `{"data":{${card}},"expiration_year":1e999}`,
    `{"data":{${card}},"expiration_year":20311}`,
    `{"data":{${card}},"cardholder_info":{"name":"${'a'.repeat(501)}"}}`,
    `{"token_id":{"toString":1}}`,
    `{"token_id":"../../x"}`,
    '[]',
    'null',
  ]
  for (const body of bodies) {
    const { status, text } = await send('POST /network-tokens', body)
    t.equal(status, 400, `${body.slice(0, 80)}: ${text.slice(0, 200)}`)
    t.notMatch(text, /411111111111/, body.slice(0, 80))
  }
  const long = JSON.stringify({ data: { ...CARD, number: '4917610000000000003' } })
  const refused = await send('POST /network-tokens', long)
  t.match(JSON.parse(refused.text), {
    status: 422,
    type: 'urn:coffer:problem:card-refused',
    title: 'CARD_NUMBER_LENGTH_INVALID',
  })
  t.notMatch(refused.text, /49176/)
  for (const line of [
    'PUT /network-tokens/x/suspend',
    'DELETE /network-tokens/x',
    'POST /network-tokens/x/cryptogram',
  ])
    t.equal((await send(line)).status, 403, line)
  t.equal((await send('GET /network-tokens')).status, 405, 'there is no list')
  t.equal((await send('GET /network-tokens/__proto__')).status, 404)
  t.equal((await send(`GET /network-tokens/${'a'.repeat(5000)}`)).status, 404)
})

t.test('in no-reveal mode, answers show no number and confirm no guess of a number', async (t) => {
  const { app, ask, create } = await open(t)
  const { id: token_id } = await ask('token create', { type: 'card', data: CARD })
  const { id } = await create({ token_id })
  const hidden = { as: { reveal: false }, noReveal: true } as const
  const { result: shown } = await app.ask({ operation: 'network-token get', input: { id }, ...hidden })
  t.match(shown.data?.number, /^X{12}\d{4}$/)
  t.equal(shown.par, undefined)
  for (const [operation, input] of [
    ['network-token create', { token_id }],
    ['network-token cryptogram', { id }],
  ] as const)
    await t.rejects(app.ask({ operation, input, ...hidden }), { code: 'forbidden' })
  const { result: token } = await app.ask({ operation: 'token get', input: { id: token_id }, ...hidden })
  t.equal(token._extras?.network_token_ids, undefined)
})

t.test('an application of an earlier version has no rights that are forbidden to its type', async (t) => {
  const { app, create, createApplication, askAs } = await open(t)
  const { id } = await create()
  const page = await createApplication('public', { permissions: ['token:create'] })
  const { number: tenant } = await app.tenant()
  await app.store.write(async (store) => {
    const record = (await store.get('application', tenant, page.id))!
    await store.replace('application', tenant, {
      ...record,
      permissions: ['network-token:reveal', 'network-token:delete'],
    })
  })
  for (const operation of ['network-token get', 'network-token delete'])
    await t.rejects(askAs(page.key, operation, { id }), { code: 'forbidden' }, operation)
})

t.test('code of a reactor, and expressions in its arguments, can use network tokens', async (t) => {
  const { ask, createApplication, create, numberOf } = await open(t)
  const application = await createApplication('private', {
    permissions: [
      'network-token:create',
      'network-token:cryptogram',
      'network-token:suspend',
      'network-token:resume',
    ],
  })
  const made = await create()
  const code = `module.exports = async ({ args, svc }) => {
    const data = { number: '5555555555554444', expirationMonth: 10, expirationYear: 2031 }
    const { id } = await svc.networkTokens.create({ data })
    const again = await svc.networkTokens.create({ data })
    const { cryptogram, eci } = await svc.networkTokens.cryptogram(id)
    const { status } = await svc.networkTokens.suspend(id)
    const failure = await svc.networkTokens.cryptogram(id).catch((error) => error.status)
    await svc.networkTokens.resume(id)
    const refused = await svc.networkTokens.delete(id).catch((error) => error.status)
    return { raw: { args, same: again.id === id, length: cryptogram.length, eci, status, failure, refused } }
  }`
  const { id } = await ask('reactor create', { name: 'r', code, application: { id: application.id } })
  const args = {
    number: `{{ network_token: ${made.id} | json: '$.data.number' }}`,
    month: `{{ network_token: ${made.id} | json: '$.data.expiration_month' }}`,
  }
  const { raw } = (await ask('reactor react', { id, args })) as { raw: object }
  t.strictSame(raw, {
    args: { number: await numberOf(made.id), month: 12 },
    same: true,
    length: 24,
    eci: '07',
    status: 'suspended',
    failure: 400,
    refused: 403,
  })
  await ask('network-token suspend', { id: made.id })
  await t.rejects(ask('reactor react', { id, args }), { code: 'validation', message: /suspended/ })
  const { data } = await ask('log list', { entity_type: 'network_token', size: 100 })
  t.ok(data.some(({ message, entity_id }) => message === 'Network token used' && entity_id === made.id))
})
