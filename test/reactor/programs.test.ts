import * as crypto from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { isLuhnValid } from '../../src/domain/token/luhn.js'
import type { ClientCall, ReactorRun } from '../../src/framework/ports/reactors.js'
import { confineThisNode } from '../../src/reactor/confinement.js'
import { createReactorPool } from '../../src/reactor/start.js'
import { type Received, startStub } from '../http/stub.js'

const fixtures = new URL('../../../fixtures/formulas/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, fixtures), 'utf8')

interface Seen extends Omit<Received, 'url'> {
  url: URL
}
type Answer = { status?: number; headers?: Record<string, string>; body?: string; json?: unknown }

const json = (value: unknown, status = 200): Answer => ({ status, json: value })
const seen: Seen[] = []
const hmac = (key: crypto.BinaryLike, text: string) => crypto.createHmac('sha256', key).update(text).digest()
const md5 = (text: string) => crypto.createHash('md5').update(text).digest('hex')
const encodings = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const
const rsa = crypto.generateKeyPairSync('rsa', { modulusLength: 2048, ...encodings })
const ec = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256', ...encodings })
let failures = 2

/** Fake services that the example programs call. Each fake service checks its requests as the real service does. */
const SERVICES: Record<string, (request: Seen) => Answer | undefined> = {
  '/v1/charges': ({ headers, body }) => {
    if (headers.authorization !== `Basic ${Buffer.from('sk_test:').toString('base64')}`)
      return json({ error: { message: 'who are you' } }, 401)
    const form = new URLSearchParams(body)
    const number = form.get('card[number]')!
    if (number.endsWith('0002')) return json({ error: { message: 'declined' } }, 402)
    return json(
      { id: `ch_${form.get('amount')}_${form.get('card[exp_month]')}`, card: { last4: number.slice(-4) } },
      201,
    )
  },
  '/documents': ({ method, headers, body, url }) => {
    const date = headers['x-date'] as string
    const day = date.slice(0, 8)
    const sha = (text: string) => crypto.createHash('sha256').update(text).digest('hex')
    const lines = [
      method,
      url.pathname,
      'a=1&b=2',
      `host:${headers.host}`,
      `x-date:${date}`,
      '',
      'host;x-date',
    ]
    const canonical = [...lines, sha(body)].join('\n')
    const steps: crypto.BinaryLike[] = ['V4shh', day, 'region', 'service', 'request']
    const key = steps.reduce((key, part) => hmac(key, part as string))
    const signature = hmac(key, ['V4-HMAC-SHA256', date, day, sha(canonical)].join('\n')).toString('hex')
    const isSigned = headers.authorization === `V4-HMAC-SHA256 Credential=AK, Signature=${signature}`
    return { status: isSigned ? 201 : 403, body: 'stored' }
  },
  '/transfers': ({ headers, body }) => {
    const digest = `SHA-256=${crypto.createHash('sha256').update(body).digest('base64')}`
    const signature = Buffer.from(headers.signature as string, 'base64')
    const isGood = crypto.verify('sha256', Buffer.from(body), rsa.publicKey, signature)
    if (!isGood || headers.digest !== digest) return json({ signature: 'bad' }, 401)
    return JSON.parse(body).cents > 1000 ? json({ cents: 'too much' }, 422) : json({ id: 'tr_1' })
  },
  '/oauth/token': ({ body }) => {
    const form = new URLSearchParams(body)
    if (form.get('client_secret') !== 'cs' || form.getAll('scope').length !== 2) return json({}, 400)
    return json({ access_token: `t${seen.filter(({ url }) => url.pathname === '/oauth/token').length}` })
  },
  '/accounts/a%2Fb': ({ headers }) =>
    headers.authorization === 'Bearer t2' ? json({ balance: 7 }) : json({}, 401),
  '/bin/424242': () => (failures-- > 0 ? { status: 503 } : json({ bank: 'First' })),
  '/bin/400000': () => ({ status: 500 }),
  '/graphql': ({ body }) =>
    json({ errors: [{ message: JSON.parse(body).query.includes('mutation Save') ? 'ssn' : '' }] }),
  '/digest': ({ headers }) => {
    const fields = Object.fromEntries(
      [...(headers.authorization ?? '').matchAll(/(\w+)="?([^",]*)"?/g)].map(([, k, v]) => [k, v]),
    )
    const parts = [md5('ada:r:pw'), 'n1', fields.nc, fields.cnonce, 'auth', md5('GET:/digest')]
    const expected = md5(parts.join(':'))
    return fields.response === expected
      ? { status: 200 }
      : { status: 401, headers: { 'www-authenticate': 'Digest realm="r", nonce="n1", qop="auth"' } }
  },
  '/slow': () => undefined,
  '/fast': () => json({ score: 9 }),
  '/hook': ({ headers, body }) => {
    const signature = hmac('sign', `${headers['webhook-timestamp']}.${body}`).toString('hex')
    return headers['webhook-signature'] === signature ? json({ got: JSON.parse(body) }) : { status: 400 }
  },
}

const stub = await startStub()
stub.answer = (received, response) => {
  const asked = { ...received, url: new URL(received.url, 'http://x') }
  seen.push(asked)
  const answer = SERVICES[asked.url.pathname]?.(asked)
  if (answer === undefined) return
  const { status = 200, headers = {}, body = '' } = answer
  const type = answer.json === undefined ? {} : { 'content-type': 'application/json; charset=utf-8' }
  response.writeHead(status, { ...type, ...headers })
  response.end(answer.json === undefined ? body : JSON.stringify(answer.json))
}
const URL_ = `http://localhost:${stub.port}`

const pool = createReactorPool({
  confinement: await confineThisNode(),
  allowNet: [`localhost:${stub.port}`],
  settings: { prefix: 'bt' },
})
t.teardown(async () => {
  await pool.close()
  stub.close()
})

interface Given {
  args?: Record<string, unknown>
  configuration?: Record<string, unknown>
  client?: ClientCall
}

function run(name: string, { args = {}, configuration = {}, client }: Given): Promise<ReactorRun> {
  const given = {
    code: read(name),
    args,
    configuration: { URL: URL_, ...configuration },
    client: client ?? null,
  }
  return pool.run({ tenant: 1, reactor: name, ...given })
}

async function rawOf(name: string, given: Given): Promise<unknown> {
  const { outcome } = await run(name, given)
  return outcome.kind === 'result' ? outcome.raw : { failed: [outcome.error.message, outcome.error.errors] }
}

const program = (name: string) => `programs/${name}.js`
const CARD = { number: '4242424242424242', expiration_month: 7, expiration_year: 2031 }
const charge = { amount: 12.5, currency: 'eur', card: CARD }
const stripe = { SECRET_KEY: 'sk_test', API_URL: URL_ }
const rsaKeys = { PRIVATE_KEY: rsa.privateKey }
const oauth = { CLIENT_ID: 'c', CLIENT_SECRET: 'cs' }
const jefe = { HMAC_KEY: 'Jefe' }
const RFC_4231 = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'
const hook = (path: string, base = URL_) => ({ WEBHOOK_URL: `${base}${path}`, SIGNING_KEY: 'sign' })
const totpSecret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

const declined = { ...charge, card: { ...CARD, number: '4000000000000002' } }
const aws = { ACCESS_KEY: 'AK', SECRET_KEY: 'shh' }
const alias = { ALIAS_KEY: 'a key of sixteen' }
const text = 'what do ya want for nothing?'
const inBase64 = Buffer.from(RFC_4231, 'hex').toString('base64')

/**
 * The name of a program, its arguments, its configuration, and either the expected `raw` or the
 * expected error.
 */
type Row = [name: string, args: Record<string, unknown>, configuration: Record<string, unknown>, end: object]
const good = (raw: unknown) => ({ raw })
const bad = (status: number, errors: object = {}, more = {}) => ({ error: { status, errors, ...more } })
const refused = { message: 'The bank refused the transfer' }

const ROWS: Row[] = [
  ['charge-card', charge, stripe, good({ id: 'ch_12.5_7', last4: '4242' })],
  ['charge-card', declined, stripe, bad(402, { card: ['declined'] })],
  ['signed-request', { account_number: '1' }, aws, good({ status: 201, answer: 'stored' })],
  ['rsa-signature', { transfer: { cents: 5 } }, rsaKeys, good({ id: 'tr_1' })],
  ['rsa-signature', { transfer: { cents: 5000 } }, rsaKeys, bad(400, { cents: ['too much'] }, refused)],
  // The service refuses the first access token, so the program requests another.
  ['oauth-client', { account: 'a/b' }, oauth, good({ attempt: 1, balance: 7 })],
  ['oauth-client', { account: 'a/b' }, { ...oauth, CLIENT_SECRET: 'x' }, bad(401, { error: ['client'] })],
  ['bin-lookup', { number: CARD.number }, {}, good({ bank: 'First', retries: 2 })],
  ['bin-lookup', declined.card, {}, bad(503, { error: ['the BIN service does not answer'] })],
  ['bin-lookup', { number: '4242424242424241' }, {}, bad(402, { number: [/Luhn/] })],
  ['graphql-query', { person: { ssn: '', name: 'A' } }, {}, bad(422, { error: ['ssn'] })],
  ['digest-login', { password: 'pw' }, { USER: 'ada' }, good({ first: 401, second: 200 })],
  // The codes are the last six digits of the rows for SHA-1 in RFC 6238, appendix B.
  ['totp', { secret: totpSecret, at: 59 }, {}, good({ code: '287082' })],
  ['timeout-fallback', { zip: '1' }, {}, good({ tried: ['AbortError'], score: 9, zip: '1' })],
  ['compiled-from-typescript', { name: 'Ada' }, {}, good({ outcome: 'Declined' })],
  ['../matching-hmac', { value: text }, jefe, good({ hmac: RFC_4231 })],
  ['../matching-hmac', { value: text, encoding: 'base64' }, jefe, good({ hmac: inBase64 })],
  ['../matching-hmac', { value: 'x', encoding: 'latin1' }, jefe, bad(400, { encoding: [/hex/] })],
  ['../json-webhook', { a: 1 }, hook('/hook'), good({ status: 200, answer: { got: { a: 1 } } })],
  ['../json-webhook', {}, hook('/', 'http://localhost:1'), bad(503, { webhook: [/--allow-net/] })],
  ['../card-alias', { number: '42' }, alias, bad(400)],
  ['../card-alias', { number: CARD.number }, { ALIAS_KEY: 'short' }, bad(400, { ALIAS_KEY: [/16/] })],
]

t.test(
  'typical published programs work with their services, and report failures of the services as documented',
  async (t) => {
    for (const [name, args, configuration, end] of ROWS) {
      const { outcome } = await run(program(name), { args, configuration })
      t.match(outcome, end, `${name} ${JSON.stringify(args).slice(0, 60)}`)
    }
  },
)

t.test(
  'reactor code can list tokens page by page, and create a child token that refers to its parent',
  async (t) => {
    const all = ['FR', 'DE', 'FR', undefined, 'FR'].map((country) =>
      country ? { metadata: { country } } : {},
    )
    const client: ClientCall = async (_name, [query]) => {
      const { page, size } = query as { page: number; size: number }
      return { data: all.slice((page - 1) * size, page * size), pagination: { total_pages: 3 } }
    }
    t.same(await rawOf(program('page-through-tokens'), { args: { type: 'token' }, client }), {
      counts: { FR: 3, DE: 1, none: 1 },
      pages: 3,
    })
    const { CofferError } = await import('../../src/errors.js')
    const calls: unknown[] = []
    const share: ClientCall = async (name, args) => {
      calls.push([name, ...args])
      if (name === 'tokens.createAssociation' && calls.length > 4) throw new CofferError('forbidden', 'No.')
      return name === 'tokens.retrieve' ? { id: 'p', fingerprint: 'f' } : { id: 'c' }
    }
    const given = { args: { token_id: 'p' }, client: share }
    t.same(await rawOf(program('share-token'), given), { child: 'c' })
    t.same(calls[1], [
      'tokens.createChild',
      'p',
      { type: 'token', data: { reference: 'f' }, searchIndexes: ['{{ data.reference }}'] },
    ])
    t.same(await rawOf(program('share-token'), given), { refused: 'Forbidden' })
  },
)

t.test('reactor code can create JSON Web Tokens', async (t) => {
  const { token } = (await rawOf(program('create-jwt'), {
    args: { subject: 'ada', claims: { x: 1 } },
    configuration: { ISSUER: 'i', SECRET: 's' },
  })) as { token: string }
  const [header, payload, signature] = token.split('.') as [string, string, string]
  t.equal(signature, hmac('s', `${header}.${payload}`).toString('base64url'))
  t.match(JSON.parse(Buffer.from(payload, 'base64url').toString()), { iss: 'i', sub: 'ada', x: 1 })
  const es = (await rawOf(program('create-jwt-es256'), {
    args: { subject: 'bob' },
    configuration: { PRIVATE_KEY: ec.privateKey },
  })) as { token: string }
  const [, signed = '', sign = ''] = /^(.*)\.(.*)$/.exec(es.token) ?? []
  const key = { key: ec.publicKey, dsaEncoding: 'ieee-p1363' } as const
  t.ok(crypto.verify('sha256', Buffer.from(signed), key, Buffer.from(sign, 'base64url')))
})

t.test('a payload that a program encrypts can be decrypted by its recipient', async (t) => {
  const { payload } = (await rawOf(program('encrypt-payload'), {
    args: { ssn: '1' },
    configuration: { PASSPHRASE: 'p' },
  })) as { payload: string }
  const bytes = Buffer.from(payload, 'base64')
  const derived = crypto.scryptSync('p', bytes.subarray(0, 16), 32, { N: 1024 })
  const opened = crypto.createDecipheriv('aes-256-gcm', derived, bytes.subarray(16, 28))
  opened.setAAD(Buffer.from('v1')).setAuthTag(bytes.subarray(28, 44))
  t.equal(opened.update(bytes.subarray(44), undefined, 'utf8') + opened.final('utf8'), '{"ssn":"1"}')
  const sealed = (await rawOf(program('encrypt-for-partner'), {
    args: { pan: '4242' },
    configuration: { PARTNER_KEY: rsa.publicKey },
  })) as Record<'data' | 'iv' | 'key', string>
  const reader = { key: rsa.privateKey, oaepHash: 'sha256' }
  const key = crypto.privateDecrypt(reader, Buffer.from(sealed.key, 'base64'))
  const cipher = crypto.createDecipheriv('aes-256-cbc', key, Buffer.from(sealed.iv, 'base64'))
  t.equal(cipher.update(sealed.data, 'base64', 'utf8') + cipher.final('utf8'), '4242')
})

t.test('a card alias keeps the format of the number, and one number always has the same alias', async (t) => {
  const alias = async (number: string, ALIAS_KEY = 'a key of sixteen') =>
    ((await rawOf('card-alias.js', { args: { number }, configuration: { ALIAS_KEY } })) as { alias: string })
      .alias
  for (const number of ['4242424242424242', '378282246310005', '123456789015', '6304000000000000000']) {
    const first = await alias(number)
    t.match(first, new RegExp(`^${number.slice(0, 6)}\\d{${number.length - 10}}${number.slice(-4)}$`))
    t.ok(isLuhnValid(first), 'the alias passes the Luhn check')
    t.not(first, number)
    t.equal(await alias(number), first)
    if (number.length > 12) t.not(await alias(number, 'another key, of more'), first)
  }
})
