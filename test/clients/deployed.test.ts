/** Typical reactor programs that teams deploy, with the packages that these programs declare. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startServer } from '../../src/index.js'

const PACKAGES = ['@basis-theory/node-sdk', 'axios', 'jose', 'uuid']
const modules = fileURLToPath(new URL('../../../node_modules', import.meta.url))
const versionOf = (name: string) =>
  (JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')) as { version: string }).version
const versions = Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)]))

const KEYPAD = `const { BasisTheoryClient } = require('@basis-theory/node-sdk')
module.exports = async (event) => {
  const { req, applicationOptions: { apiKey, baseUrl } } = event
  const body = typeof req.body === 'string' ? JSON.parse(req.body) : req.body
  if (!/^\\d{12,19}$/.test(body.digits))
    return { res: { statusCode: 200, headers: { 'content-type': 'text/event-stream' }, body: 'data: again\\n\\n' } }
  const client = new BasisTheoryClient({ apiKey, environment: baseUrl })
  const { id } = await client.tokens.create({
    type: 'card',
    data: { number: body.digits, expiration_month: 12, expiration_year: 2040 },
  })
  return { req: { headers: req.headers, body: { call: body.call, token: id } } }
}`

const CHARGE = `module.exports = async ({ req: { body, headers } }) => {
  const text = JSON.stringify({ amount: body.amount, pan: body.card.number })
  const signature = require('crypto').createHmac('sha256', 'key').update(text).digest('hex')
  return { req: { body: text, headers: { ...headers, 'x-signature': signature } } }
}`

const REDUCE = `module.exports = async ({ res: { body, headers } }) => ({
  res: { body: { approved: body.status === 'approved' }, headers },
})`

interface Received {
  headers: Record<string, unknown>
  body: string
}

/**
 * Starts a fake payment gateway. The gateway records the requests that it receives, and its responses contain more data
 * than the caller may see.
 */
async function startGateway(t: Test) {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() })
    response.setHeader('content-type', 'application/json')
    response.end('{"status":"approved","pan":"4242424242424242"}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { received, host: `127.0.0.1:${(server.address() as AddressInfo).port}` }
}

async function open(t: Test) {
  const project = mkdtempSync(join(tmpdir(), 'coffer-deployed-'))
  t.teardown(() => rmSync(project, { recursive: true }))
  writeFileSync(join(project, 'package.json'), JSON.stringify({ dependencies: versions }))
  symlinkSync(modules, join(project, 'node_modules'))
  const gateway = await startGateway(t)
  const server = await startServer({ prefix: 'bt', dependencies: [project], allowNet: [gateway.host] })
  t.teardown(() => server[Symbol.asyncDispose]())
  const send = async (method: string, path: string, body?: unknown, more: Record<string, string> = {}) => {
    const headers = { 'bt-api-key': server.keys.management!, 'content-type': 'application/json', ...more }
    const given = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await fetch(server.url + path, { method, headers, ...given })
    const text = await answer.text()
    return { status: answer.status, type: answer.headers.get('content-type'), text, body: parse(text) }
  }
  const asPrivate = { 'bt-api-key': server.keys.private! }
  /** Runs code with the packages `names` and with `permissions`, and returns the body of the response. */
  const run = async (code: string, names: string[], permissions: string[] = [], args: object = {}) => {
    const dependencies = Object.fromEntries(names.map((name) => [name, versions[name]!]))
    const runtime = { image: 'node24', dependencies, permissions }
    const made = await send('POST', '/reactors', { name: 'r', code, runtime })
    t.match(made, { status: 201, body: { state: 'active' } })
    return (await send('POST', `/reactors/${made.body.id}/react`, { args }, asPrivate)).body
  }
  return { gateway, server, send, asPrivate, run }
}

/** The properties of API answers that these tests read. */
interface Answer {
  id: string
  key: string
  key_id: string
  public_key_pem: string
  runtime: Record<string, unknown>
  token: { id: string }
}

function parse(text: string): Answer {
  try {
    return JSON.parse(text)
  } catch {
    return {} as Answer
  }
}

t.test(
  'digits that a caller typed on a phone become a token, and a charge sends the card to the gateway',
  async (t) => {
    const { gateway, send, asPrivate } = await open(t)
    const name = '@basis-theory/node-sdk'
    const runtime = { image: 'node24', timeout: 10, resources: 'standard', warm_concurrency: 0 }
    const codeOf = (code: string, more: object = {}) => ({
      type: 'code',
      code,
      options: { runtime: { ...runtime, ...more } },
    })
    const make = async (transforms: object) => {
      const destination_url = `http://${gateway.host}/v1`
      const made = await send('POST', '/proxies', {
        name: 'p',
        destination_url,
        require_auth: true,
        ...transforms,
      })
      t.match(made, { status: 201, body: { state: 'active' } })
      return { ...asPrivate, 'bt-proxy-key': made.body.key as string }
    }
    const keypad = await make({
      request_transforms: [
        codeOf(KEYPAD, { dependencies: { [name]: versions[name] }, permissions: ['token:create'] }),
      ],
    })
    const early = await send('POST', '/proxy', { call: 'c1', digits: '4242' }, keypad)
    t.match(early, { status: 200, type: /^text\/event-stream/, text: 'data: again\n\n' })
    t.equal(gateway.received.length, 0, 'the destination is not called')
    const turn = await send('POST', '/proxy', { call: 'c1', digits: '4242424242424242' }, keypad)
    t.equal(turn.status, 200)
    const { call, token } = JSON.parse(gateway.received[0]!.body)
    t.equal(call, 'c1')

    const charge = await make({
      request_transforms: [codeOf(CHARGE)],
      response_transforms: [codeOf(REDUCE)],
    })
    const paid = await send('POST', '/proxy', { amount: 5, card: `{{ ${token} }}` }, charge)
    t.match(paid, { status: 200, text: '{"approved":true}' })
    const { body, headers } = gateway.received[1]!
    t.equal(body, '{"amount":5,"pan":"4242424242424242"}', 'byte for byte, because the text is signed')
    t.match(headers['x-signature'], /^[0-9a-f]{64}$/)
  },
)

t.test('axios reaches only hosts that allowNet lists', async (t) => {
  const { gateway, run } = await open(t)
  const code = `const axios = require('axios')
    const post = (url) => axios.post(url, { a: 1 }).then(({ status }) => status, () => 'rejected')
    module.exports = async ({ req: { args } }) => ({
      res: { body: [await post('http://' + args.host + '/a'), await post('http://127.0.0.2:9/a')] },
    })`
  t.same(await run(code, ['axios'], [], { host: gateway.host }), [200, 'rejected'])
  t.equal(gateway.received[0]!.body, '{"a":1}')
})

t.test('jose encrypts for a key of this server, and the token is created', async (t) => {
  const { send, run, asPrivate } = await open(t)
  const { body: key } = await send('POST', '/keys')
  const code = `const { CompactEncrypt, importSPKI } = require('jose')
    module.exports = async ({ req: { args }, applicationOptions: { apiKey, baseUrl } }) => {
      const raw = Buffer.from(args.pem.replace(/-----[^-]+-----|\\s/g, ''), 'base64').subarray(-32)
      const jwk = { kty: 'OKP', crv: 'X25519', x: raw.toString('base64url') }
      const encrypted = await new CompactEncrypt(Buffer.from(JSON.stringify('secret')))
        .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: args.kid })
        .encrypt(await require('jose').importJWK(jwk, 'ECDH-ES'))
      const headers = { 'bt-api-key': apiKey, 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify({ type: 'token', encrypted }) }
      const answer = await fetch(baseUrl + '/tokens', init)
      return { res: { body: { status: answer.status, token: await answer.json() } } }
    }`
  const made = await run(code, ['jose'], ['token:create'], { pem: key.public_key_pem, kid: key.key_id })
  t.match(made, { status: 201, token: { type: 'token' } })
  t.notOk('data' in made.token)
  t.ok((await send('GET', `/tokens/${made.token.id}`, undefined, asPrivate)).status === 200)
})

t.test('in reactor code, the package uuid and the module crypto return correct values', async (t) => {
  const { run } = await open(t)
  const code = `const { v4, v5 } = require('uuid')
    const hmac = require('crypto').createHmac('sha256', 'key').update('The quick brown fox jumps over the lazy dog')
    module.exports = async () => ({ res: { body: [v4(), v5('www.example.com', v5.DNS), hmac.digest('hex')] } })`
  const [random, named, digest] = (await run(code, ['uuid'])) as unknown as string[]
  t.match(random, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.equal(named, '2ed6657d-e927-568b-95e1-2665a8aea6a2')
  t.equal(digest, 'f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8')
})

t.test(
  'the response to a request by Terraform contains every property of the request with the same value',
  async (t) => {
    const { send } = await open(t)
    const runtime = {
      async: false,
      image: 'node24',
      dependencies: {},
      resolutions: {},
      warm_concurrency: 0,
      timeout: 0,
      resources: '',
    }
    const code = 'module.exports = async () => ({ res: { body: 1 } })'
    const made = await send('POST', '/reactors', { name: 'tf', code, runtime, configuration: {} })
    t.equal(made.status, 201)
    const read = await send('GET', `/reactors/${made.body.id}`)
    // Terraform's provider treats a property with one of these values like a missing property.
    const unset = [false, 0, '', {}].map((value) => JSON.stringify(value))
    for (const [name, value] of Object.entries(runtime)) {
      const shown = read.body.runtime[name]
      t.ok(JSON.stringify(shown) === JSON.stringify(value) || unset.includes(JSON.stringify(value)), name)
      t.ok(shown === undefined || JSON.stringify(shown) === JSON.stringify(value), `${name}: ${shown}`)
    }
    const again = await send('PUT', `/reactors/${made.body.id}`, {
      name: 'tf',
      code,
      runtime,
      configuration: {},
    })
    t.same(again.body.runtime, read.body.runtime)
  },
)

t.test(
  'if a scan of dependencies fails, the response has the three properties that clients print',
  async (t) => {
    const { server, send } = await open(t)
    const vulnerabilities = [
      { name: 'axios', version: '1.0.0', severity: 'HIGH', id: 'X-1', dependency_path: ['axios'] },
    ]
    const error_message = 'Please update the dependencies listed to resolve security vulnerabilities.'
    const rule = {
      operation: 'reactor create',
      kind: 'provision',
      error_code: 'vulnerabilities_detected',
      error_message,
      error_details: { vulnerabilities },
    }
    await server.control.faults.set({ rules: [rule] } as never)
    const made = await send('POST', '/reactors', { name: 'r', code: 'module.exports = () => 1' })
    const { body } = await send('GET', `/reactors/${made.body.id}`)
    t.match(body, {
      state: 'failed',
      requested: {
        error_code: 'vulnerabilities_detected',
        error_message,
        error_details: { vulnerabilities },
      },
    })
  },
)
