/** When the code of a card expires, reads hide the code at once, and the sweep erases it later. */
import t from 'tap'
import { openTestVault, START, setSetting, type TestVault } from '../support/test-vault.js'

const HOUR_MS = 60 * 60 * 1000
const NUMBER = '4242424242424242'
const withCode = (cvc: string) => ({ type: 'card', data: { number: NUMBER, cvc } })

/** Returns the card's code as the owner reads it at the time `ms`. The function does not sweep. */
async function codeAt({ ask, clock }: TestVault, id: string, ms: number): Promise<string | undefined> {
  const { now } = clock
  clock.now = ms
  const { data } = await ask('token get', { id })
  clock.now = now
  return (data as { cvc?: string }).cvc
}

const listTimers = async ({ app }: TestVault) => {
  const { number } = await app.tenant()
  const query = { page: 1, size: 100 }
  return app.store.read(async (reader) => (await reader.find('code_timer', number, query)).records)
}

t.test('a read hides an expired card code, and the sweep erases only the code', async (t) => {
  const vault = await openTestVault()
  const { app, ask, clock } = vault
  const search_indexes = ['{{ data.number | last4 }}']
  const expires_at = new Date(START + 3 * HOUR_MS).toISOString()
  const made = await ask('token create', { id: 'card', ...withCode('123'), search_indexes, expires_at })
  await ask('token create', { id: 'other', ...withCode('456'), metadata: { a: 'b' } })
  await ask('token update', { id: 'other', metadata: { a: 'c' } })
  const changed = await ask('token get', { id: 'other' })
  clock.now += HOUR_MS
  t.equal(await codeAt(vault, 'card', clock.now), undefined)
  t.equal(await codeAt(vault, 'card', clock.now - 1), '123', 'the code is not erased yet')
  const logged = async () => (await ask('log list', { size: 1 })).pagination.total_items
  const before = await logged()
  t.equal(await app.sweep(), 2)
  t.equal(await logged(), before, 'the sweep logs no record for the erased code')
  t.equal(await codeAt(vault, 'card', clock.now - 1), undefined, 'erased')
  t.equal(await codeAt(vault, 'other', clock.now - 1), undefined)
  const { data: _, ...card } = await ask('token get', { id: 'card' })
  const { data: __, _extras: ___, ...rest } = made
  t.strictSame(card, rest, 'the card does not count as modified')
  const other = await ask('token get', { id: 'other' })
  t.strictSame(other, { ...changed, data: { number: NUMBER } }, 'the other card is not modified again')
  for (const [query, ids] of [
    ['data:4242', ['card']],
    [`fingerprint:${made.fingerprint}`, ['other', 'card']],
    ['modified_at:[* TO *]', ['other']],
    ['metadata.a:c AND container:/pci/*', ['other']],
  ] as const)
    t.same(
      (await ask('token search', { query })).data.map(({ id }) => id),
      ids,
      query,
    )
  t.equal(await app.sweep(), 0)
  clock.now += 2 * HOUR_MS
  await t.rejects(
    ask('token get', { id: 'card' }),
    { code: 'not_found' },
    'the expiry of the card itself has not changed',
  )
  t.equal(await app.sweep(), 1)
})

t.test('a refused row of an import leaves no timer for its card code', async (t) => {
  const vault = await openTestVault()
  const { app, ask, clock } = vault
  await ask('token create', { id: 'taken', type: 'token', data: 'a' })
  const { results } = await ask('token import', {
    rows: [{ id: 'taken', ...withCode('123') }, withCode('456')],
  })
  t.same(
    results.map(({ status }) => status),
    ['refused', 'created'],
  )
  t.same(
    (await listTimers(vault)).map(({ holder_id }) => holder_id),
    [results[1]!.id],
  )
  clock.now += HOUR_MS
  t.equal(await app.sweep(), 1, 'only the code of the created token is erased')
})

t.test(
  'the timer of an old card code erases no newer code, and a code that is removed or kept forever has no timer',
  async (t) => {
    const vault = await openTestVault()
    const { app, ask, clock } = vault
    for (const id of ['again', 'gone', 'deleted']) await ask('token create', { id, ...withCode('123') })
    for (const wrong of ['0h', '90m', '1d', 'forever'])
      await t.rejects(setSetting(app, 'cards.cvc_retention', wrong), /whole hours from 1h to 9999h, or never/)
    await setSetting(app, 'cards.cvc_retention', 'never')
    await ask('token create', { id: 'kept', ...withCode('111') })
    await setSetting(app, 'cards.cvc_retention', '3h')
    await ask('token create', { id: 'long', ...withCode('222') })
    t.equal((await listTimers(vault)).length, 4)
    clock.now += HOUR_MS / 2
    await ask('token update', { id: 'again', data: { cvc: '321' } })
    await ask('token update', { id: 'gone', data: { cvc: null } })
    await ask('token delete', { id: 'deleted' })
    await ask('token update', { id: 'kept', metadata: { a: 'b' } })
    t.equal((await listTimers(vault)).length, 2, 'timers of replaced codes are removed')
    clock.now += 2.5 * HOUR_MS
    await app.sweep()
    for (const [id, code] of [
      ['again', '321'],
      ['gone', undefined],
      ['kept', '111'],
      ['long', undefined],
    ] as const)
      t.equal(await codeAt(vault, id, clock.now), code, id)
    clock.now += HOUR_MS / 2
    t.equal(await app.sweep(), 1)
    t.equal(await codeAt(vault, 'again', clock.now - 1), undefined)
    clock.now += 9 * HOUR_MS
    await app.sweep()
    t.equal(await codeAt(vault, 'kept', clock.now), '111')
    await ask('token update', { id: 'kept', data: { cvc: '112' } })
    clock.now += 3 * HOUR_MS
    t.equal(
      await codeAt(vault, 'kept', clock.now),
      undefined,
      'the expiry of a code depends on the setting at the time when the code is stored',
    )
  },
)

t.test('a card code that an earlier version stored is kept until its card is next written', async (t) => {
  const vault = await openTestVault()
  const { app, ask, clock } = vault
  await ask('token create', { id: 'old', ...withCode('123') })
  await app.store.write(async (store) => {
    const { code: _, ...record } = (await store.get('token', 1, 'old'))!
    await store.replace('token', 1, record)
  })
  clock.now += 10 * HOUR_MS
  t.equal(await codeAt(vault, 'old', clock.now), '123')
  await ask('token update', { id: 'old', metadata: { a: 'b' } })
  t.equal(await codeAt(vault, 'old', clock.now + HOUR_MS - 1), '123')
  t.equal(await codeAt(vault, 'old', clock.now + HOUR_MS), undefined)
})

t.test('the expiry of a card code sends an event and does not count as an update of the token', async (t) => {
  const { app, ask, clock } = await openTestVault()
  const url = 'https://example.com/events'
  const events = ['token.created', 'token.updated', 'token.property.expired']
  await ask('webhook create', { name: 'w', url, events })
  await ask('token create', { id: 'card', ...withCode('123') })
  await ask('intent create', withCode('123'))
  const listed = async () => (await ask('webhook deliveries')).data
  t.same(
    (await listed()).map(({ type }) => type),
    ['token.created'],
  )
  clock.now += HOUR_MS
  t.equal(await app.sweep(), 2)
  t.equal(await app.sweep(), 0)
  const [newest, ...others] = await listed()
  t.equal(others.length, 1, 'no event concerns the token intent')
  const { event } = newest!.payload as { event: { type: string; data: object } }
  t.equal(event.type, 'token.property.expired')
  t.strictSame(event.data, { token: { id: 'card', property_name: 'cvc' }, actor: { type: 'system' } })
})

t.test('the card code of a token intent is erased, or is deleted together with the intent', async (t) => {
  const vault = await openTestVault()
  const { app, ask, clock } = vault
  const create = async () => (await ask('intent create', withCode('123'))).id
  const [ended, deleted, converted] = [await create(), await create(), await create()]
  t.equal((await listTimers(vault)).length, 3)
  await ask('intent delete', { id: deleted })
  await ask('token create', { token_intent_id: converted })
  t.equal((await listTimers(vault)).length, 1)
  const data = async () =>
    ask('token detokenize', { payload: `{{ token_intent: ${ended} | json: '$.data' }}` })
  t.strictSame(await data(), { number: NUMBER, cvc: '123' })
  const made = await ask('intent get', { id: ended })
  clock.now += HOUR_MS
  t.strictSame(await data(), { number: NUMBER })
  t.equal(await app.sweep(), 1)
  clock.now -= 1
  t.strictSame(await data(), { number: NUMBER }, 'erased')
  t.strictSame(await ask('intent get', { id: ended }), made)
  clock.now += 23 * HOUR_MS + 1
  t.equal(await app.sweep(), 1, 'the expiry of the intent has not changed')
  await t.rejects(ask('intent get', { id: ended }), { code: 'not_found' })
})

t.test(
  'if a card is updated or deleted after its code has expired, the sweep does not undo this change',
  async (t) => {
    const vault = await openTestVault()
    const { app, ask, clock } = vault
    for (const id of ['again', 'changed', 'deleted']) await ask('token create', { id, ...withCode('123') })
    clock.now += HOUR_MS
    await ask('token update', { id: 'again', data: { cvc: '321' } })
    await ask('token update', { id: 'changed', metadata: { a: 'b' } })
    await ask('token delete', { id: 'deleted' })
    t.equal(await app.sweep(), 3)
    t.equal(await codeAt(vault, 'again', clock.now + HOUR_MS - 1), '321')
    t.equal(await codeAt(vault, 'changed', clock.now - 1), undefined)
    clock.now += HOUR_MS
    t.equal(await app.sweep(), 1)
    t.equal(await codeAt(vault, 'again', clock.now - 1), undefined)
  },
)

t.test('one sweep can erase the card codes of many cards', async (t) => {
  const vault = await openTestVault()
  const payload = Array.from({ length: 450 }, () => withCode('123'))
  await vault.ask('token tokenize', { payload })
  vault.clock.now += HOUR_MS
  t.equal(await vault.app.sweep(), 450)
  vault.clock.now -= 1
  for (const page of [1, 5])
    for (const { data } of (await vault.ask('token list', { page, size: 90 })).data)
      t.strictSame(data, { number: NUMBER })
})

t.test('the result of react-async contains cards without their card codes', async (t) => {
  const { app, ask } = await openTestVault()
  t.teardown(() => app.close())
  const token = { id: 'made', ...withCode('123'), mask: { code: '{{ data.cvc }}' } }
  const code = `module.exports = async ({ args }) => ({ tokenize: { card: ${JSON.stringify(token)} }, raw: args })`
  await ask('token create', { id: 'before', ...withCode('456') })
  const { id } = await ask('reactor create', { name: 'r', code })
  const { asyncReactorRequestId: request_id } = await ask('reactor react-async', {
    id,
    args: { cards: ['{{ token: before }}'], note: 'cvc' },
  })
  await app.background.idle()
  const { raw, tokens } = await ask('reactor result', { id, request_id })
  t.match(raw, { cards: [{ id: 'before', type: 'card', data: { number: NUMBER } }], note: 'cvc' })
  t.match(tokens, { card: { id: 'made', data: { code: null } } })
  t.notMatch(JSON.stringify({ raw, tokens }), /"(?:123|456)"/)
})

t.test('a reactor result with a card code outside of a card is kept until the code expires', async (t) => {
  const { app, ask, clock } = await openTestVault()
  t.teardown(() => app.close())
  const code = 'module.exports = async ({ args }) => ({ raw: args })'
  const { id } = await ask('reactor create', { name: 'r', code })
  await ask('token create', { id: 'card', ...withCode('123') })
  const intent = await ask('intent create', withCode('456'))
  const start = async (args: object) => {
    const { asyncReactorRequestId } = await ask('reactor react-async', { id, args })
    return { id, request_id: asyncReactorRequestId }
  }
  const react = async (args: object) => {
    const started = await start(args)
    await app.background.idle()
    return started
  }
  const ofToken = await react({ text: "code: {{ token: card | json: '$.data.cvc' }}" })
  const ofIntent = await react({ code: `{{ token_intent: ${intent.id} | json: '$.data.cvc' }}` })
  const ofNumber = await react({ number: "{{ token: card | json: '$.data.number' }}" })
  clock.now += HOUR_MS - 1
  t.match(await ask('reactor result', ofToken), { raw: { text: 'code: 123' } })
  t.match(await ask('reactor result', ofIntent), { raw: { code: '456' } })
  clock.now += 1
  for (const each of [ofToken, ofIntent]) await t.rejects(ask('reactor result', each), { code: 'not_found' })
  t.match(await ask('reactor result', ofNumber), { raw: { number: NUMBER } })
  await ask('token update', { id: 'card', data: { cvc: '789' } })
  const late = await start({ code: "{{ token: card | json: '$.data.cvc' }}" })
  clock.now += HOUR_MS
  await app.background.idle()
  await t.rejects(ask('reactor result', late), { code: 'not_found' }, 'the code expired before the run')
})

t.test(
  'a stored answer for an idempotency key expires together with the card code in the answer',
  async (t) => {
    const { app, clock, ask } = await openTestVault()
    t.teardown(() => app.close())
    const code = 'module.exports = async ({ args }) => ({ raw: args })'
    const { id } = await ask('reactor create', { name: 'r', code })
    await ask('token create', { id: 'card', ...withCode('123') })
    const react = async (key: string, path: string) => {
      const input = { id, args: { value: `{{ token: card | json: '${path}' }}` } }
      const as = { reveal: true }
      return app.ask({ operation: 'reactor react', input, as, idempotencyKey: key })
    }
    for (const [key, path] of [
      ['code', '$.data.cvc'],
      ['number', '$.data.number'],
    ] as const)
      t.notOk((await react(key, path)).isReplayed)
    clock.now += HOUR_MS - 1
    t.ok((await react('code', '$.data.cvc')).isReplayed)
    clock.now += 1
    t.notOk((await react('code', '$.data.number')).isReplayed)
    t.ok((await react('number', '$.data.number')).isReplayed)
  },
)
