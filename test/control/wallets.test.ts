/** Cards of wallets on a server: proxies, events, errors for programs of other languages, settings and resets. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startServer } from '../../src/index.js'
import { startReceiver } from '../delivery/receiver.js'
import {
  AUTHENTICATION,
  applePayload,
  CARD,
  CERTIFICATE_FILE,
  ENCRYPTED,
  plainPayload,
} from '../support/wallet-payloads.js'

const NETWORK_TOKEN = plainPayload('network_token', { ...CARD, ...AUTHENTICATION })

interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: the bodies have many forms.
  body: any
}

async function open(t: Test) {
  const server = await startServer({ allowNet: ['127.0.0.1'] })
  t.teardown(() => server.stop())
  const { url, keys } = server
  const asking =
    (key: string) =>
    async (line: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
      const [method = '', path = ''] = line.split(' ')
      const answer = await fetch(url + path, {
        method,
        headers: { 'svc-api-key': key, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = await answer.text()
      return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
    }
  return { server, send: asking(keys.private!), asking }
}

/** Starts a destination that answers each request with the body of the request. */
async function startEcho(t: Test): Promise<string> {
  const echo = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    response.setHeader('content-type', 'application/json')
    response.end(body)
  })
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
  t.teardown(() => echo.close())
  return `http://127.0.0.1:${(echo.address() as AddressInfo).port}`
}

t.test(
  'encrypted payloads, as the clients in other languages send them, get the documented error',
  async (t) => {
    const { send } = await open(t)
    const { status, body } = await send('POST /google-pay', ENCRYPTED)
    t.equal(status, 422)
    t.match(body, { title: 'Unprocessable Google Pay Token', status: 422 })
    t.match(body.detail, /Failed to process the Google Pay token/)
    t.match(body.detail, /Failed to decrypt Google payment request/)
    const apple = await send('POST /apple-pay', applePayload({ version: 'RSA_v1' }))
    t.match(apple, { status: 422, body: { title: 'Unprocessable Apple Pay Token' } })
  },
)

t.test('a proxy sends the number, the date and the cryptogram of a card', async (t) => {
  const { server, send, asking } = await open(t)
  const url = await startEcho(t)
  const { id } = (await send('POST /google-pay', NETWORK_TOKEN)).body.google_pay
  const body = {
    number: `{{ google_pay: ${id} | json: '$.data.number' }}`,
    month: `{{ google_pay: ${id} | json: '$.data' | card_exp: 'MM' }}`,
    year: `{{ google_pay: ${id} | json: '$.data.expiration_year' }}`,
    cryptogram: `{{ google_pay: ${id} | json: '$.authentication.threeds_cryptogram' }}`,
  }
  const proxied = await send('POST /proxy', body, { 'svc-proxy-url': url })
  t.strictSame(proxied, {
    status: 200,
    body: { number: '4242424242424242', month: '12', year: 2040, cryptogram: 'AAAAAA=' },
  })
  const { data } = await server.ask('log list', { entity_id: id, entity_type: 'google_pay' })
  t.match(data, [
    { operation: 'use', message: 'Google Pay used' },
    { operation: 'create', message: 'Google Pay created' },
  ])
  const { key } = await server.ask('app create', {
    name: 'a',
    type: 'private',
    permissions: ['google-pay:reveal'],
  })
  t.equal((await asking(key!)('POST /proxy', body, { 'svc-proxy-url': url })).status, 403)
  const missing = { ...body, number: '{{ google_pay: 00000000-0000-4000-8000-000000000000 }}' }
  t.equal((await send('POST /proxy', missing, { 'svc-proxy-url': url })).status, 400)
})

t.test('a token intent of Google Pay can be used in a proxy', async (t) => {
  const { send } = await open(t)
  const url = await startEcho(t)
  const { id } = (await send('POST /google-pay', plainPayload('card', CARD))).body.token_intent
  const body = { number: `{{ token_intent: ${id} | json: '$.data.number' }}` }
  t.match(await send('POST /proxy', body, { 'svc-proxy-url': url }), {
    status: 200,
    body: { number: '4242424242424242' },
  })
})

t.test('webhooks get three events of Google Pay and none of Apple Pay, and no number', async (t) => {
  const receiver = await startReceiver()
  t.teardown(() => receiver.close())
  const { server, send } = await open(t)
  const events = ['google-pay.created', 'google-pay.retrieved', 'google-pay.deleted']
  await server.ask('webhook create', { name: 'w', url: receiver.url, events })
  const { id } = (await send('POST /google-pay', { ...NETWORK_TOKEN, expires_at: '2090-12-25' })).body
    .google_pay
  await send(`GET /google-pay/${id}`)
  const apple = (await send('POST /apple-pay', applePayload())).body.apple_pay
  await send(`DELETE /apple-pay/${apple.id}`)
  await send(`DELETE /google-pay/${id}`)
  await server.control.webhooks({ count: 3, timeout: '1m' })
  const seen = new Map(
    receiver.received.map(({ body: { event } }) => [event.type, event.data.google_pay as object]),
  )
  t.strictSame([...seen.keys()].sort(), events.sort())
  const made = { id, status: 'active', created_by: String, created_at: String, expires_at: String }
  t.match(seen.get('google-pay.created'), made)
  t.match(seen.get('google-pay.deleted'), made)
  t.strictSame(seen.get('google-pay.retrieved'), { id })
  t.notMatch(JSON.stringify(receiver.received), /4242424242424242|AAAAAA=/)
})

t.test('settings of the wallets take effect, and a reset undoes them', async (t) => {
  const { server, send } = await open(t)
  await server.ask('config set', { name: 'wallets.google', value: 'simulate' })
  await server.ask('config set', { name: 'wallets.apple', value: 'refuse' })
  await server.ask('config set', { name: 'wallets.unverified_domains', value: 'a.example' })
  const domain = { domain: 'a.example' }
  const register = async () => (await server.ask('apple-pay domain register', domain)).domains
  t.equal((await send('POST /google-pay', ENCRYPTED)).status, 201)
  t.equal((await send('POST /apple-pay', applePayload())).status, 422)
  await t.rejects(register(), { code: 'unprocessable' })
  await server.control.reset()
  t.equal((await send('POST /google-pay', ENCRYPTED)).status, 422)
  t.equal((await send('POST /apple-pay', applePayload())).status, 201)
  t.strictSame(await register(), [{ domain: 'a.example', status: 'verified' }])
})

t.test(
  'requests with one idempotency key store one card, and get no answer about a deleted card',
  async (t) => {
    const { send } = await open(t)
    const once = { 'svc-idempotency-key': 'k' }
    const first = await send('POST /google-pay', NETWORK_TOKEN, once)
    t.strictSame(await send('POST /google-pay', NETWORK_TOKEN, once), first)
    await send(`DELETE /google-pay/${first.body.google_pay.id}`)
    const later = await send('POST /google-pay', NETWORK_TOKEN, once)
    t.not(later.body.google_pay?.id, first.body.google_pay.id)
  },
)

t.test('neither errors nor recorded requests nor the log show a number or a certificate', async (t) => {
  const { server, send } = await open(t)
  const wrong = plainPayload('card', { ...CARD, number: '4242424242424241' })
  const refused = await send('POST /google-pay', wrong)
  t.equal(refused.status, 400)
  t.notMatch(JSON.stringify(refused), /42424242/)
  await send('POST /google-pay', NETWORK_TOKEN)
  const merchant = (await send('POST /google-pay/merchant-registration', { merchant_identifier: 'm' })).body
  const made = await send(`POST /google-pay/merchant-registration/${merchant.id}/certificates`, {
    merchant_certificate_data: CERTIFICATE_FILE,
    merchant_certificate_password: 'a password',
  })
  t.equal(made.status, 201)
  const seen = JSON.stringify([
    made,
    await server.control.requests.list(),
    (await server.ask('log list', { size: 100 })).data,
  ])
  t.notMatch(seen, /424242424242|AAAAAA=|a password|MAMCAQM=/)
})

t.test('hostile bodies are refused', async (t) => {
  const { send } = await open(t)
  const data = (text: string) => `{"google_payment_data":${text}}`
  const bodies = [
    ...[
      '',
      '[]',
      'null',
      data('null'),
      data('[]'),
      data('"x"'),
      data('{"__proto__":{"protocolVersion":"ECv2"}}'),
    ],
    data('{"protocolVersion":"ECv2","protocolVersion":"BasisTheory"}'),
    data(`{"protocolVersion":{"a":${'['.repeat(500)}${']'.repeat(500)}}}`),
    JSON.stringify(plainPayload('card', `{"number":${'4'.repeat(1_000_000)}}`)),
    JSON.stringify(plainPayload('card', '{"number":4242424242424242,"number":5555555555554444}')),
    JSON.stringify(plainPayload('card', '{"__proto__":{"number":4242424242424242}}')),
    JSON.stringify(plainPayload('card', '"'.repeat(2_000))),
  ]
  for (const body of bodies) {
    const { status } = await send('POST /google-pay', body)
    t.ok(status === 400 || status === 413, `${status}: ${body.slice(0, 60)}`)
  }
  t.equal(
    (
      await send(
        'POST /google-pay',
        JSON.stringify(plainPayload('card', `{"number":${'4'.repeat(5_000_000)}}`)),
      )
    ).status,
    413,
  )
})
