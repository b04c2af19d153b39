/** Data that a client encrypts for one call through a proxy, and for transforms that make tokens. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { NOT_DECRYPTED } from '../../src/domain/encryption/jwe.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { registry } from '../../src/operations/all.js'
import { encryptLikePhones, type PublicKey } from '../support/encrypt.js'
import { serveHttp } from '../support/service.js'
import { openTestVault, REVEALS_ALL } from '../support/test-vault.js'

const NUMBER = '4242424242424242'
const CARD = { number: NUMBER, expiration_month: 12, expiration_year: 2040, cvc: '123' }
const BANK = { routing_number: '021000021', account_number: '00001234567' }

interface Sent {
  url: string
  headers: IncomingHttpHeaders
  body: string
}

async function open(t: Test) {
  const vault = await openTestVault()
  const sent: Sent[] = []
  const lines: string[] = []
  const whileCalled = { work: async (): Promise<unknown> => undefined }
  const destination = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    await whileCalled.work()
    sent.push({ url: request.url!, headers: request.headers, body })
    response.setHeader('content-type', 'application/json').end(body || '{}')
  }).listen(0, '127.0.0.1')
  await once(destination, 'listening')
  const target = `http://127.0.0.1:${(destination.address() as AddressInfo).port}`
  const record = (entry: object) => void lines.push(JSON.stringify(entry))
  const service = { host: vault.app, registry, authenticate, version: '0', record }
  const running = await serveHttp(service, { port: 0 })
  vault.app.configureReactors({ allowNet: ['127.0.0.1'] })
  t.teardown(async () => {
    destination.close()
    await running.stop()
    await vault.app.close()
  })
  const clientKey = (await vault.ask('key create')) as PublicKey & { id: string }
  const { key } = await vault.createApplication('private', { permissions: ['proxy:invoke'] })
  const { key: reader } = await vault.createApplication('private', { rules: [REVEALS_ALL] })
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
  const card = () => ({ type: 'card', encrypted: encryptLikePhones(CARD, clientKey) })
  const bank = () => ({ type: 'bank', encrypted: encryptLikePhones(BANK, clientKey) })
  const call = async (headers: Record<string, string>, body?: unknown, path = '') => {
    const response = await fetch(`http://127.0.0.1:${running.port}/proxy${path}`, {
      method: 'POST',
      headers: { 'svc-api-key': key, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, text, json: JSON.parse(text || 'null') }
  }
  const createProxy = async (input: object) =>
    (await vault.ask('proxy create', { name: 'p', destination_url: target, ...input })) as {
      key: string
      id: string
    }
  return {
    ...vault,
    whileCalled,
    sent,
    lines,
    target,
    clientKey,
    reader,
    encode,
    card,
    bank,
    call,
    createProxy,
  }
}

t.test(
  'the destination of a proxy gets the decrypted data, and does not get the header with the encrypted data',
  async (t) => {
    const { sent, target, encode, card, bank, call, createProxy, ask } = await open(t)
    const named = encode({ creditCard: card(), account: bank() })
    const body = {
      number: "{{ encrypted | json: '$.creditCard.data.number' }}",
      month: "{{ encrypted | json: '$.creditCard.data' | card_exp: 'MM/YY' }}",
      text: "to {{ encrypted | json: '$.account.data.routing_number' }}",
      type: "{{ encrypted | json: '$.account.type' }}",
      data: "{{ encrypted | json: '$.creditCard.data' }}",
      missing: "{{ encrypted | json: '$.other.data' }}",
    }
    const expected = {
      number: NUMBER,
      month: '12/40',
      text: 'to 021000021',
      type: 'bank',
      data: CARD,
      missing: null,
    }
    const { key: proxy } = await createProxy({})
    for (const names of [{ 'svc-proxy-url': target }, { 'svc-proxy-key': proxy }]) {
      const headers = { ...names, 'x-card': "{{ encrypted | json: '$.creditCard.data.number' }}" }
      const path = `/a?n=${encodeURIComponent("{{ encrypted | json: '$.creditCard.data.number' }}")}`
      const answer = await call({ ...headers, 'svc-encrypted': named }, body, path)
      t.equal(answer.status, 200)
      const { headers: got, ...last } = sent.at(-1)!
      t.same(JSON.parse(last.body), expected)
      t.equal(got['x-card'], NUMBER)
      t.equal(last.url, `/a?n=${NUMBER}`)
      t.same(
        Object.keys(got).filter((name) => name.includes('encrypted') || name.startsWith('svc-')),
        [],
      )
      t.notMatch(JSON.stringify(got), named)
    }
    const one = { 'svc-proxy-url': target, 'svc-encrypted': encode(card()) }
    await call(one, { a: "{{ encrypted | json: '$.data.number' }}" })
    t.same(JSON.parse(sent.at(-1)!.body), { a: NUMBER })
    t.equal((await ask('token list')).pagination.total_items, 0, 'nothing is stored')
  },
)

t.test(
  'if the encrypted data in the header cannot be used, the call is refused before anything is sent',
  async (t) => {
    const { sent, target, encode, card, call, clientKey, ask } = await open(t)
    const good = card()
    const deleted = (await ask('key create')) as PublicKey & { id: string }
    const ofDeleted = encryptLikePhones(CARD, deleted)
    await ask('key delete', { id: deleted.id })
    const tag = `${good.encrypted.slice(0, -22)}${'A'.repeat(22)}`
    const shapes = {
      'no base64': '{"type":"card"}',
      'no JSON': Buffer.from('card').toString('base64'),
      'an array': encode([good]),
      'no member': encode({}),
      'a member without type': encode({ a: { encrypted: good.encrypted } }),
      'a member without encrypted': encode({ a: { type: 'card' } }),
      'one member of two without encrypted': encode({ a: good, b: { type: 'card', data: CARD } }),
      'data in plaintext': encode({ type: 'card', data: CARD }),
      'too many members': encode(
        Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`m${at}`, { type: 't', encrypted: 'x' }])),
      ),
      'a name twice': Buffer.from(
        '{"a":{"type":"card","encrypted":"x"},"a":{"type":"card","encrypted":"x"}}',
      ).toString('base64'),
      'no UTF-8': Buffer.from([0xff, 0xfe]).toString('base64'),
    }
    const body = { a: 'no expression' }
    for (const [name, header] of Object.entries(shapes)) {
      const { status, json } = await call({ 'svc-proxy-url': target, 'svc-encrypted': header }, body)
      t.match(
        [status, json.proxy_error],
        [400, { status: 400, detail: /SVC-ENCRYPTED must be base64 of JSON/ }],
        name,
      )
    }
    const causes: Record<string, string> = {
      'a changed tag': tag,
      'an unknown key': encryptLikePhones(CARD, { ...clientKey, key_id: 'unknown' }),
      'a deleted key': ofDeleted,
      'alg dir': encryptLikePhones(CARD, clientKey, { header: { alg: 'dir' } }),
      'no JWE': 'x',
    }
    for (const [name, encrypted] of Object.entries(causes)) {
      const header = encode({ good, wrong: { type: 'card', encrypted } })
      const { status, json } = await call({ 'svc-proxy-url': target, 'svc-encrypted': header }, body)
      t.match([status, json.proxy_error.errors], [400, { 'wrong.encrypted': [NOT_DECRYPTED] }], name)
      t.same(Object.keys(json.proxy_error.errors), ['wrong.encrypted'])
    }
    const misfit = encode({
      a: { type: 'bank', encrypted: good.encrypted },
      b: { type: 'x', encrypted: good.encrypted },
    })
    const { json } = await call({ 'svc-proxy-url': target, 'svc-encrypted': misfit }, body)
    t.match(json.proxy_error.errors, { 'a.data.number': [String], 'b.type': [/must be one of/] })
    t.notMatch(JSON.stringify(json), NUMBER)
    const wide = await call({ 'svc-proxy-url': target, 'svc-encrypted': 'A'.repeat(20_000) }, body)
    t.equal(wide.status, 431, 'the server limits its headers')
    t.same(sent, [])
  },
)

t.test('without the header for encrypted data, an expression that uses encrypted is refused', async (t) => {
  const { sent, target, call, createProxy, ask } = await open(t)
  const { key: proxy } = await createProxy({})
  for (const names of [{ 'svc-proxy-url': target }, { 'svc-proxy-key': proxy }]) {
    const { status, json } = await call(names, { a: { b: "{{ encrypted | json: '$.data' }}" } })
    t.match(
      [status, json.proxy_error.errors],
      [400, { 'body.a.b': ['needs the header SVC-ENCRYPTED, which the call lacks'] }],
    )
  }
  t.same(sent, [])
  for (const payload of ['{{ encrypted }}', "{{ encrypted | json: '$.data' }}", '{{ encrypted: x }}'])
    await t.rejects(
      ask('token detokenize', { payload }),
      { code: 'validation' },
      'only proxies have the header',
    )
  const { status } = await call({ 'svc-proxy-url': target }, { a: '{{ encrypted: x }}' })
  t.equal(status, 400)
})

t.test('request transforms and response transforms can use the decrypted data', async (t) => {
  const { sent, encode, card, call, createProxy } = await open(t)
  const { key } = await createProxy({
    request_transforms: [
      {
        type: 'append_header',
        options: { value: "{{ encrypted | json: '$.data.number' }}", location: 'x-number' },
      },
      {
        type: 'append_json',
        options: { value: "{{ encrypted | json: '$.data.expiration_year' }}", location: '$.year' },
      },
    ],
    response_transforms: [
      {
        type: 'append_json',
        options: { value: "{{ encrypted | json: '$.data.number' | slice: -4, 4 }}", location: '$.last4' },
      },
    ],
    disable_detokenization: true,
  })
  const { json } = await call({ 'svc-proxy-key': key, 'svc-encrypted': encode(card()) }, {})
  t.equal(sent[0]!.headers['x-number'], NUMBER)
  t.same(json, { year: 2040, last4: '4242' })
  const refused = await call({ 'svc-proxy-key': key }, {})
  t.match([refused.status, refused.json.proxy_error.detail], [400, /needs the header SVC-ENCRYPTED/])
  t.equal(sent.length, 1)
})

t.test(
  'the transform tokenize accepts a JWE in its definition or in the request, and the decrypted data of the header',
  async (t) => {
    const { sent, encode, card, call, createProxy, ask, askAs, reader } = await open(t)
    const append = {
      type: 'append_json',
      options: { value: "{{ transform_identifier: 'card' }}", location: '$.token' },
    }
    const tokenize = (token: object) => ({
      request_transforms: [{ type: 'tokenize', options: { identifier: 'card', token } }, append],
    })
    const { encrypted } = card()
    const ways: [token: object, body: object, header: Record<string, string>][] = [
      [{ type: 'card', encrypted }, {}, {}],
      [{ type: 'card', encrypted: '{{ req.jwe }}' }, { jwe: encrypted }, {}],
      [{ type: 'card', data: "{{ encrypted | json: '$.data' }}" }, {}, { 'svc-encrypted': encode(card()) }],
    ]
    const permissions = ['token:create', 'proxy:invoke'] as const
    const { key: apiKey } = await (async () =>
      ask('app create', { name: 'a', type: 'private', permissions: [...permissions] }))()
    for (const [token, body, header] of ways) {
      const { key } = await createProxy(tokenize(token))
      const { status } = await call({ 'svc-api-key': apiKey!, 'svc-proxy-key': key, ...header }, body)
      t.equal(status, 200)
      const made = JSON.parse(sent.at(-1)!.body).token
      t.match(await askAs(reader, 'token get', { id: made.id }), { data: CARD })
      if ('encrypted' in token) t.notMatch(made, { data: Object })
    }
    const { key } = await createProxy(tokenize({ type: 'card', encrypted: '{{ req.jwe }}' }))
    const refused = await call({ 'svc-api-key': apiKey!, 'svc-proxy-key': key }, { jwe: 'x' })
    t.match([refused.status, refused.json.proxy_error.errors], [400, { encrypted: [NOT_DECRYPTED] }])
    const wrong = { name: 'w', destination_url: 'https://example.com' }
    const create = (token: object) => ask('proxy create', { ...wrong, ...tokenize(token) })
    await t.rejects(create({ type: 'card' }), /options.token.data: is required/)
    await t.rejects(
      create({ type: 'card', data: CARD, encrypted }),
      /options.token.encrypted: must not be given together with data/,
    )
  },
)

t.test(
  'if a client key is deleted during a proxy call, the call succeeds, and later calls are refused',
  async (t) => {
    const { whileCalled, sent, encode, card, call, createProxy, ask, clientKey } = await open(t)
    const { key } = await createProxy({
      response_transforms: [
        {
          type: 'append_json',
          options: { value: "{{ encrypted | json: '$.data.number' }}", location: '$.number' },
        },
      ],
    })
    const headers = { 'svc-proxy-key': key, 'svc-encrypted': encode(card()) }
    whileCalled.work = () => ask('key delete', { id: clientKey.id })
    const { json } = await call(headers, {})
    t.equal(json.number, NUMBER)
    t.equal((await call(headers, {})).status, 400)
    t.equal(sent.length, 1)
  },
)

t.test('logs, stored records and a dry run do not show the data that a client encrypted', async (t) => {
  const { app, lines, target, encode, card, call, ask, sent } = await open(t)
  const headers = { 'svc-encrypted': encode(card()) }
  await call({ 'svc-proxy-url': target, ...headers }, { a: "{{ encrypted | json: '$.data.number' }}" })
  t.match(sent[0]!.body, NUMBER)
  const body = { a: "{{ encrypted | json: '$.data.number' }}" }
  const shown = await ask('proxy call', { target, method: 'POST', headers, body, dry_run: true })
  t.match(shown, { body: { a: 'XXXXXXXXXXXX4242' } })
  const log = await ask('log list')
  t.notMatch(JSON.stringify([shown, log, lines]), NUMBER)
  const answer = await app.ask({
    operation: 'proxy call',
    input: { target, method: 'POST', headers, body },
    as: { reveal: false },
    noReveal: true,
  })
  t.equal(sent.length, 2)
  t.match(sent[1]!.body, NUMBER)
  t.notMatch(JSON.stringify(answer), NUMBER, 'no-reveal mode redacts the data that the destination returns')
})
