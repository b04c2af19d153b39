/** Keys of clients, and tokens and token intents whose data a client has encrypted. */
import t, { type Test } from 'tap'
import { NOT_DECRYPTED } from '../../src/domain/encryption/jwe.js'
import { openTestVault as openLibraryVault } from '../../src/index.js'
import { encryptLikePhones, encryptText, encryptWithJose, type PublicKey, seal } from '../support/encrypt.js'
import { createHandler } from '../support/service.js'
import { openTestVault, permissionsOf, REVEALS_ALL, START } from '../support/test-vault.js'

const NUMBER = '4242424242424242'
const CARD = { number: NUMBER, expiration_month: 12, expiration_year: 2040, cvc: '123' }
const MASK = { number: '{{ data.number | reveal_last: 4 }}' }
const DAY_MS = 24 * 60 * 60 * 1000

type Shown = { id: string; data?: unknown; mask?: unknown; fingerprint: string; _extras?: object }

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const key = (await vault.ask('key create')) as PublicKey & { id: string; expires_at: string }
  const { key: reader } = await vault.createApplication('private', { rules: [REVEALS_ALL] })
  const create = (input: object) => vault.ask('token create', { type: 'card', ...input }) as Promise<Shown>
  const dataOf = async (id: string) => ((await vault.askAs(reader, 'token get', { id })) as Shown).data
  return { ...vault, key, reader, create, dataOf }
}

const notDecrypted = { code: 'validation', status: 400, errors: { encrypted: [NOT_DECRYPTED] } }

async function refuses(t: Test, asked: Promise<unknown>, wanted: object, about?: string): Promise<void> {
  const error = await asked.then(
    () => undefined,
    (error: unknown) => error,
  )
  t.match(error ?? {}, wanted, about ?? 'is refused')
}

t.test('a client key can be created, is shown without its private half, and can be deleted', async (t) => {
  const { ask, key, clock, app } = await open(t)
  t.same(Object.keys(key).sort(), ['expires_at', 'id', 'key_id', 'public_key_pem'])
  t.equal(key.id, key.key_id)
  t.equal(key.expires_at, '2031-01-15T12:00:00.000+00:00', 'one year')
  const { id, expires_at } = key
  t.strictSame(await ask('key get', { id }), { id, key_id: id, expires_at })
  clock.now += 1
  const later = await ask('key create', { expires_at: '2030-02-01T00:00:00Z' })
  t.equal(later.expires_at, '2030-02-01T00:00:00.000+00:00')
  t.same(
    (await ask('key list')).map((each) => each.id),
    [later.id, id],
  )
  await ask('key delete', { id })
  await refuses(t, ask('key get', { id }), { code: 'not_found' })
  await refuses(t, ask('key delete', { id }), { code: 'not_found' })
  const { data } = await ask('log list', { entity_type: 'key' })
  t.same(data.map(({ operation, message, entity_id }) => [operation, message, entity_id]).reverse(), [
    ['create', 'Key created', id],
    ['read', 'Key retrieved', id],
    ['create', 'Key created', later.id],
    ['delete', 'Key deleted', id],
  ])
  const record = await app.store.read((reader) => reader.get('client_key', 1, later.id))
  t.match(record?.private_key, /^[\w-]{43}$/)
  const texts = [await ask('key get', { id: later.id }), await ask('key list'), await ask('log list'), later]
  t.notOk(JSON.stringify(texts).includes(record!.private_key), 'no answer has the private half')
})

t.test('the expiry of a client key is at most one year ahead, by the clock of the vault', async (t) => {
  const { ask, clock, create, key } = await open(t)
  for (const expires_at of ['2032-01-15', '2031-01-15T12:00:00.001Z', '2030-01-15T12:00:00Z', 'soon', ''])
    await refuses(t, ask('key create', { expires_at }), {
      code: 'validation',
      errors: { expires_at: [String] },
    })
  const short = await ask('key create', { expires_at: '2030-01-16T12:00:00Z' })
  const jwe = encryptLikePhones(CARD, short)
  clock.now += DAY_MS - 1
  t.match(await create({ encrypted: jwe }), { _extras: { decrypted_payload: true } })
  clock.now += 1
  await refuses(t, ask('key get', { id: short.id }), { code: 'not_found' })
  await refuses(t, create({ encrypted: jwe }), notDecrypted)
  await refuses(
    t,
    create({ encrypted: encryptLikePhones(CARD, short, { header: { kid: undefined } }) }),
    notDecrypted,
  )
  t.same(
    (await ask('key list')).map(({ id }) => id),
    [key.id],
  )
})

t.test('a tenant can have at most 100 client keys that have not expired', async (t) => {
  const { ask, clock } = await open(t)
  const create = () => ask('key create', { expires_at: new Date(clock.now + DAY_MS).toISOString() })
  for (let count = 1; count < 99; count++) await create()
  const together = await Promise.allSettled([create(), create(), create()])
  t.equal(
    together.filter(({ status }) => status === 'fulfilled').length,
    1,
    'only one of three concurrent requests creates the last key',
  )
  await refuses(t, create(), { code: 'unprocessable', status: 422, message: /at most 100 keys/ })
  t.equal((await ask('key list')).length, 100)
  clock.now += DAY_MS
  await create()
})

t.test(
  'POST /keys needs no body, and accepts the content type that the newest client for Node sends',
  async (t) => {
    const { app, createApplication } = await open(t)
    const handle = createHandler(app)
    const { key } = await createApplication('management', { permissions: permissionsOf('management') })
    const post = async (body?: string, type?: string) => {
      const headers = { 'svc-api-key': key, ...(type && { 'content-type': type }) }
      const response = await handle(
        new Request('http://localhost/keys', { method: 'POST', headers, ...(body && { body }) }),
      )
      return [response.status, ((await response.json()) as { key_id?: string }).key_id === undefined]
    }
    t.same(await post(), [201, false])
    t.same(await post('{}', 'application/json-patch+json'), [201, false])
    t.same(await post('{}', 'application/json'), [201, false])
    t.same(await post('{"expires_at":null}', 'application/json'), [201, false])
    t.same(await post('{}', 'text/plain'), [415, true])
    t.same(await post('[]', 'application/json'), [400, true])
    const headers = { 'svc-api-key': key, 'content-type': 'application/json' }
    for (const method of ['PUT', 'PATCH'])
      t.equal(
        (await handle(new Request('http://localhost/keys', { method, headers, body: '{}' }))).status,
        405,
      )
    t.equal(
      (await handle(new Request('http://localhost/keys/webhooks.v1.key'))).status,
      200,
      'the key of webhooks',
    )
  },
)

t.test(
  'a token from encrypted data equals a token from plain data, but the response to its creation contains no data',
  async (t) => {
    const { create, key, dataOf, ask } = await open(t)
    const plain = await create({ data: CARD, mask: MASK })
    for (const encrypted of [encryptLikePhones(CARD, key), await encryptWithJose(CARD, key)]) {
      const token = await create({ encrypted, mask: MASK, metadata: { a: 'b' }, containers: ['/pci/high/'] })
      t.equal(token.data, undefined)
      t.match(token, {
        fingerprint: plain.fingerprint,
        mask: MASK,
        metadata: { a: 'b' },
        card: { last4: '4242' },
      })
      t.strictSame(token._extras, { deduplicated: false, decrypted_payload: true })
      t.same(await dataOf(token.id), CARD)
      t.match(await ask('token get', { id: token.id }), { data: CARD }, 'a read shows it as its rule says')
    }
    const text = await ask('token create', { type: 'token', encrypted: encryptLikePhones('hello', key) })
    t.equal(await dataOf(text.id), 'hello')
    const bare = { number: NUMBER }
    t.same(await dataOf((await create({ encrypted: encryptLikePhones(bare, key) })).id), bare, 'without cvc')
    const expired = { number: NUMBER, expiration_month: 1, expiration_year: 2001 }
    await create({ encrypted: encryptLikePhones(expired, key) })
  },
)

t.test(
  'decrypted data is validated as the token type requires, and an error contains no part of the data',
  async (t) => {
    const { create, key, ask } = await open(t)
    const wrong = encryptLikePhones({ number: '4242424242424241' }, key)
    await refuses(t, create({ encrypted: wrong }), {
      code: 'validation',
      errors: { 'data.number': [/Luhn/] },
    })
    await create({ encrypted: wrong }).catch((error) => t.notMatch(JSON.stringify(error), /4242/))
    await refuses(t, create({ encrypted: encryptLikePhones('x', key) }), { code: 'validation' })
    await refuses(t, ask('token create', { type: 'token', encrypted: encryptLikePhones(null, key) }), {
      errors: { data: [/must not be null/] },
    })
    const jwe = encryptLikePhones(CARD, key)
    await refuses(t, create({ encrypted: jwe, data: CARD }), {
      errors: { encrypted: [/together with data/] },
    })
    await refuses(t, create({ encrypted: jwe, token_intent_id: 'x' }), {
      errors: { token_intent_id: [/together with data/] },
    })
    await refuses(t, ask('token create', { encrypted: jwe }), { errors: { type: ['is required'] } })
    await refuses(t, create({ encrypted: jwe, metadata: { a: 1 } as never }), {
      errors: { 'metadata.a': [String] },
    })
    const { id } = await create({ data: CARD })
    await refuses(t, ask('token update', { id, encrypted: jwe }), {
      errors: { encrypted: [/not supported/] },
    })
  },
)

t.test('every reason why data cannot be decrypted gives the same status and the same message', async (t) => {
  const { ask, create, key, createTenant } = await open(t)
  await createTenant('other')
  const foreign = (await ask('key create', {}, 'other')) as PublicKey
  const deleted = (await ask('key create')) as PublicKey & { id: string }
  const ofDeleted = encryptLikePhones(CARD, deleted)
  await ask('key delete', { id: deleted.id })
  const good = encryptLikePhones(CARD, key)
  const nobody = '00000000-0000-4000-8000-000000000000'
  const members = { alg: 'ECDH-ES', kid: key.key_id, enc: 'A256GCM' }
  const zero = { kty: 'OKP', crv: 'X25519', x: Buffer.alloc(32).toString('base64url') }
  // The public half of the key that the server uses as a decoy. If a JWE names a key that
  // does not exist, the server decrypts with the decoy.
  const decoy = { key_id: nobody, public_key_pem: 'pOCSkrZRwni5dyxWn1+puxPZBrRqtoyd+dwrRAn4ogk=' }
  const causes: Record<string, unknown> = {
    'a changed tag': `${good.slice(0, -22)}${good.at(-22) === 'A' ? 'B' : 'A'}${good.slice(-21)}`,
    'a changed ciphertext': good.replace(
      /\.([\w-])([\w-]+\.[\w-]+)$/,
      (_, first, rest) => `.${first === 'A' ? 'B' : 'A'}${rest}`,
    ),
    'an unknown key': encryptLikePhones(CARD, { ...key, key_id: nobody }),
    'the key of another tenant': encryptLikePhones(CARD, foreign),
    'a deleted key': ofDeleted,
    'no key that fits': encryptLikePhones(CARD, foreign, { header: { kid: undefined } }),
    'a key that everybody knows': encryptLikePhones(CARD, decoy),
    'alg dir': encryptLikePhones(CARD, key, { header: { alg: 'dir' } }),
    zip: encryptLikePhones(CARD, key, { header: { zip: 'DEF' } }),
    'a secret of zeros': seal(
      JSON.stringify(CARD),
      Buffer.alloc(32),
      JSON.stringify({ ...members, epk: zero }),
    ),
    'no JSON inside': encryptText('{"number":', key),
    'no UTF-8 inside': encryptText(Buffer.from([0x22, 0xff, 0x22]), key),
    'an object with a name twice inside': encryptText('{"number":"1","number":"4242424242424242"}', key),
    'no JWE': 'x',
    'no text': 1,
    'an object': { a: 1 },
  }
  const { id: before } = (await ask('log list')).data[0]!
  for (const [name, encrypted] of Object.entries(causes)) {
    const isText = typeof encrypted === 'string'
    await refuses(t, create({ encrypted }), isText ? notDecrypted : { code: 'validation', status: 400 }, name)
    const inList = ask('token tokenize', { payload: { a: [1, { type: 'card', encrypted }] } })
    await refuses(t, inList, { status: 400, errors: { 'a[1].encrypted': [NOT_DECRYPTED] } }, name)
    if (isText) await refuses(t, ask('intent create', { type: 'card', encrypted }), notDecrypted, name)
  }
  t.equal((await ask('log list')).data[0]!.id, before, 'nothing was created or logged')
  t.equal((await ask('token list')).pagination.total_items, 0)
})

t.test(
  'for a JWE with an unknown key, the vault decrypts as often as for a JWE with a known key',
  async (t) => {
    const { app, create, key } = await open(t)
    const encryption = await app.clientEncryption()
    let opened = 0
    const { open: original } = encryption
    encryption.open = (...args) => {
      opened++
      return original(...args)
    }
    t.teardown(() => {
      encryption.open = original
    })
    const jwe = encryptLikePhones(CARD, key)
    for (const encrypted of [
      encryptLikePhones(CARD, { ...key, key_id: 'unknown' }),
      `${jwe.slice(0, -22)}${'A'.repeat(22)}`,
    ]) {
      opened = 0
      await refuses(t, create({ encrypted }), notDecrypted)
      t.equal(opened, 1)
    }
  },
)

t.test('if a JWE does not name its key, the server tries the keys of the tenant, newest first', async (t) => {
  const { ask, clock, create, dataOf, key } = await open(t)
  for (let count = 0; count < 3; count++) {
    clock.now++
    await ask('key create')
  }
  const token = await create({ encrypted: encryptLikePhones(CARD, key, { header: { kid: undefined } }) })
  t.same(await dataOf(token.id), CARD)
})

t.test(
  'a request with many JWEs that do not name their keys is refused if the tenant has many keys',
  async (t) => {
    const { ask, key, createTenant } = await open(t)
    await createTenant('other')
    const foreign = (await ask('key create', {}, 'other')) as PublicKey
    for (let count = 1; count < 100; count++) await ask('key create')
    const encrypted = encryptLikePhones(CARD, foreign, { header: { kid: undefined } })
    await refuses(
      t,
      ask('token create', { type: 'card', encrypted }),
      notDecrypted,
      'one is tried with all keys',
    )
    const mine = encryptLikePhones(CARD, key, { header: { kid: undefined } })
    const payload = Array.from({ length: 10 }, () => ({ type: 'card', encrypted: mine }))
    await refuses(t, ask('token tokenize', { payload }), {
      code: 'too_much_work',
      status: 400,
      message: /Name the key/,
    })
  },
)

t.test('tokenize accepts encrypted data in an object, in an array, and at any depth', async (t) => {
  const { ask, key, dataOf } = await open(t)
  const card = { type: 'card', encrypted: encryptLikePhones(CARD, key) }
  const [token, ...rest] = (await ask('token tokenize', { payload: [card] })) as Shown[]
  t.equal(rest.length, 0)
  t.equal(token!.data, undefined)
  t.same(await dataOf(token!.id), CARD)
  const one = (await ask('token tokenize', { payload: card })) as Shown
  t.match(one, { type: 'card', _extras: { decrypted_payload: true } })
  const mixed = { a: { b: [card, { type: 'card', data: CARD }, 'text'] } }
  const { a } = (await ask('token tokenize', { payload: mixed })) as { a: { b: [Shown, Shown, string] } }
  t.equal(a.b[0].data, undefined)
  t.ok(a.b[1].data, 'data in plaintext is shown masked, as before')
  t.equal(await dataOf(a.b[2]), 'text')
  t.equal((await ask('token list', {})).pagination.total_items, 5)
  // If one token of the payload is refused, no token is created.
  const payload = [card, { type: 'card', encrypted: 'x' }]
  await refuses(t, ask('token tokenize', { payload }), { errors: { '[1].encrypted': [NOT_DECRYPTED] } })
  t.equal((await ask('token list', {})).pagination.total_items, 5)
})

t.test('encrypted data is accepted in children, imports and token intents', async (t) => {
  const { ask, key, dataOf, create } = await open(t)
  const encrypted = encryptLikePhones(CARD, key)
  const parent = await create({ data: CARD })
  const child = (await ask('token create-child', { parent_id: parent.id, type: 'card', encrypted })) as Shown
  t.equal(child.data, undefined)
  t.same(await dataOf(child.id), CARD)
  const { results } = await ask('token import', {
    rows: [
      { type: 'card', encrypted },
      { type: 'card', encrypted: 'x' },
    ],
  })
  t.match(results, [{ status: 'created' }, { status: 'refused', errors: { encrypted: [NOT_DECRYPTED] } }])
  const intent = await ask('intent create', { type: 'card', encrypted })
  t.match(intent, { type: 'card', card: { last4: '4242' }, fingerprint: parent.fingerprint })
  t.notMatch(JSON.stringify(intent), NUMBER)
  const converted = await ask('token create', { token_intent_id: intent.id })
  const { cvc: _, ...kept } = CARD
  t.same(await dataOf(converted.id), kept, 'the token has no cvc, like every token from an intent')
  await refuses(t, ask('intent create', { type: 'card', data: CARD, encrypted }), {
    errors: { encrypted: [/together with data/] },
  })
  await refuses(t, ask('intent create', { type: 'card' }), { errors: { data: ['is required'] } })
})

t.test('reactor code can create tokens from encrypted data, but never gets the decrypted data', async (t) => {
  const { ask, key, dataOf } = await open(t)
  const application = await ask('app create', { name: 'a', type: 'private', permissions: ['token:create'] })
  const code = `module.exports = async ({ args, svc }) => {
    const made = await svc.tokens.create({ type: 'card', encrypted: args.jwe })
    const refused = await svc.tokens.create({ type: 'card', encrypted: 'x' }).catch((error) => error.status)
    return { raw: { made, refused }, tokenize: { type: 'card', encrypted: args.jwe } }
  }`
  const { id } = await ask('reactor create', { name: 'r', code, application: { id: application.id } })
  const jwe = encryptLikePhones(CARD, key)
  const { raw, tokens } = (await ask('reactor react', { id, args: { jwe } })) as {
    raw: { made: Shown; refused: number }
    tokens: Shown
  }
  t.equal(raw.made.data, undefined)
  t.equal(raw.refused, 400)
  t.equal(tokens.data, undefined)
  for (const each of [raw.made, tokens]) t.same(await dataOf(each.id), CARD)
})

t.test('the response to a creation that finds a duplicate contains no data', async (t) => {
  const { create, key, reader, askAs } = await open(t)
  const original = await create({ data: CARD })
  const wanted = { encrypted: encryptLikePhones(CARD, key), deduplicate_token: true }
  const found = await create(wanted)
  t.match(found, { id: original.id, _extras: { deduplicated: true, decrypted_payload: true } })
  t.equal(found.data, undefined)
  const seen = (await askAs(reader, 'token create', { type: 'card', ...wanted })) as Shown
  t.equal(seen.id, original.id)
  t.equal(seen.data, undefined, 'a caller that may reveal the data gets no data either')
})

t.test(
  'a JWE may be used again, and repeated requests with one idempotency key create one token',
  async (t) => {
    const { app, create, createApplication, key } = await open(t)
    const encrypted = encryptLikePhones(CARD, key)
    t.not((await create({ encrypted })).id, (await create({ encrypted })).id)
    const handle = createHandler(app)
    const { key: apiKey } = await createApplication('public', { permissions: ['token:create'] })
    const post = async () => {
      const headers = {
        'svc-api-key': apiKey,
        'svc-idempotency-key': 'once',
        'content-type': 'application/json',
      }
      const body = JSON.stringify({ type: 'card', encrypted })
      const response = await handle(new Request('http://localhost/tokens', { method: 'POST', headers, body }))
      return [response.status, response.headers.get('svc-idempotent-replayed'), await response.text()]
    }
    const [status, , first] = await post()
    t.equal(status, 201)
    const [, , second] = await post()
    t.equal(second, first)
    t.notMatch(first, /"data"/)
    const stored = await app.store.read((reader) => reader.find('answer', 1, { page: 1, size: 10 }))
    t.notMatch(JSON.stringify(stored), NUMBER)
  },
)

t.test('in no-reveal mode, an expression over encrypted data is refused', async (t) => {
  const { app, key } = await open(t)
  const encrypted = encryptLikePhones(CARD, key)
  const ask = (input: object) =>
    app.ask({
      operation: 'token create',
      input: { type: 'card', encrypted, ...input },
      as: { reveal: false },
      noReveal: true,
    })
  for (const input of [
    { mask: '{{ data.number }}' },
    { search_indexes: ['{{ data.number }}'] },
    { id: '{{ data.number }}' },
  ])
    await refuses(t, ask(input), { code: 'forbidden' })
  t.notMatch(JSON.stringify(await ask({})), NUMBER)
})

t.test('only the permissions for client keys give access to client keys', async (t) => {
  const { askAs, createApplication, key } = await open(t)
  const id = key.key_id
  const { key: creator } = await createApplication('management', { permissions: ['keys:create'] })
  await t.resolves(askAs(creator, 'key create'))
  for (const name of ['key list', 'key get', 'key delete'])
    await refuses(t, askAs(creator, name, { id }), { status: 403 })
  for (const type of ['public', 'private'] as const) {
    const grants = { permissions: ['keys:create' as const] }
    await refuses(t, createApplication(type, grants), { errors: { 'permissions[0]': [/may not be held/] } })
  }
  const { key: other } = await createApplication('private', { permissions: permissionsOf('private') })
  await refuses(t, askAs(other, 'key create'), { status: 403 })
})

t.test('a snapshot restores client keys, and a fork or a reset begins without them', async (t) => {
  const vault = await openLibraryVault({ clock: () => START })
  t.teardown(() => vault.stop())
  const { snapshots, reset } = vault.control
  const key = await vault.ask('key create')
  const encrypted = encryptLikePhones(CARD, key)
  const create = (coffer: Pick<typeof vault, 'ask'>) =>
    coffer.ask('token create', { type: 'card', encrypted })
  await snapshots.create({ name: 'with the key' })
  const fork = await vault.control.fork()
  const own = await fork.ask('key create')
  await vault.ask('key delete', { id: key.key_id })
  await refuses(t, create(vault), notDecrypted)
  await refuses(t, create(fork), notDecrypted, 'a fork begins without keys')
  const input = { type: 'card' as const, encrypted: encryptLikePhones(CARD, own) }
  t.match(await fork.ask('token create', input), { _extras: { decrypted_payload: true } })
  await refuses(
    t,
    vault.ask('token create', input),
    notDecrypted,
    'the key of a fork is no key of its server',
  )
  await snapshots.restore({ name: 'with the key' })
  t.match(await create(vault), { _extras: { decrypted_payload: true } })
  await reset()
  t.same(await vault.ask('key list'), [])
  await refuses(t, create(vault), notDecrypted)
})
