/** The account updater in real time, and how updates in real time and updates in batches change tokens. */
import t, { type Test } from 'tap'
import { MAX_FILE_BYTES } from '../../src/domain/updater/request-file.js'
import { processJob } from '../../src/operations/updater/process-job.js'
import { UPDATER_CARDS as published } from '../support/published-cards.js'
import { createHandler } from '../support/service.js'
import { openTestVault, setSetting } from '../support/test-vault.js'

type Data = { number: string; expiration_month: number; expiration_year: number; cvc?: string }

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { ask } = vault
  const store = async (
    number: string,
    more: object = {},
    date: object = { expiration_month: 12, expiration_year: 2023 },
  ) => (await ask('token create', { type: 'card', data: { number, ...date }, ...more })).id
  const update = (token_id: string, more: object = {}) => ask('updater real-time', { token_id, ...more })
  const dataOf = async (id: string) => (await ask('token get', { id })).data as Data
  return { ...vault, store, update, dataOf }
}

t.test(
  'if a card has a new number or date, the updater creates a new token and does not change the old token',
  async (t) => {
    const { store, update, dataOf, ask } = await open(t)
    const cases = [
      { number: '4111111111111111', code: 'UPD_PAN', data: ['4166676667666746', 12, 2023] },
      { number: '4012888888881881', code: 'UPD_PAN', data: ['4212345678910006', 12, 2026] },
      { number: '4539097887163333', code: 'UPD_EXP_DATE', data: ['4539097887163333', 12, 2026] },
    ] as const
    for (const { number, code, data } of cases) {
      const id = await store(number)
      const before = await ask('token get', { id })
      const { new_token, result_code } = await update(id)
      t.equal(result_code, code)
      t.ok(new_token)
      t.not(new_token?.id, id)
      t.match(new_token, { type: 'card', data: { number: `XXXXXXXXXXXX${data[0].slice(-4)}` } }, 'masked')
      const [expected, expiration_month, expiration_year] = data
      t.strictSame(await dataOf(new_token!.id), { number: expected, expiration_month, expiration_year })
      t.strictSame(await ask('token get', { id }), before)
      t.equal((await update(new_token!.id)).result_code, code === 'UPD_EXP_DATE' ? code : 'NO_UPDATE')
    }
  },
)

t.test('for each published card, the updater in real time returns the documented code', async (t) => {
  const { store, update } = await open(t)
  for (const { number, result_code } of published) {
    const isAsked = /^[45]/.test(number)
    t.equal(
      (await update(await store(number))).result_code,
      isAsked ? result_code : 'WRN_UNSUPPORTED_NETWORK',
      number,
    )
  }
})

t.test(
  'a request to the updater may contain the expiration date, and without a date the result is ERR_INVALID_EXP_DATE',
  async (t) => {
    const { store, update, dataOf } = await open(t)
    const id = await store('4111111111111111', {}, {})
    t.strictSame(await update(id), { result_code: 'ERR_INVALID_EXP_DATE' })
    t.strictSame(await update(id, { expiration_month: 3 }), { result_code: 'ERR_INVALID_EXP_DATE' })
    const { new_token, result_code } = await update(id, { expiration_month: 3, expiration_year: 2031 })
    t.equal(result_code, 'UPD_PAN')
    t.match(await dataOf(new_token!.id), {
      number: '4166676667666746',
      expiration_month: 3,
      expiration_year: 2031,
    })
    const dated = await update(await store('4012888888881881'), {
      expiration_month: 1,
      expiration_year: 2020,
    })
    t.match(
      await dataOf(dated.new_token!.id),
      { expiration_month: 12, expiration_year: 2026 },
      'the new date wins',
    )
  },
)

t.test(
  'if the token of an update does not exist or has another type, the result is ERR_INVALID_TOKEN',
  async (t) => {
    const { update, ask } = await open(t)
    t.strictSame(await update('unknown-token'), { result_code: 'ERR_INVALID_TOKEN' })
    const { id } = await ask('token create', { type: 'token', data: '4111111111111111' })
    t.strictSame(await update(id), { result_code: 'ERR_INVALID_TOKEN' })
  },
)

t.test('the new token of an update has the attributes of the old token, but no card code', async (t) => {
  const { ask, update, dataOf } = await open(t)
  const { id } = await ask('token create', {
    type: 'card',
    data: { number: '4111111111111111', expiration_month: 12, expiration_year: 2023, cvc: '123' },
    containers: ['/pci/high/', '/shop/'],
    metadata: { customer: '42' },
    mask: { number: '{{ data.number | reveal_last: 2 }}' },
    search_indexes: ['{{ data.number | last4 }}'],
    fingerprint_expression: '{{ data.number }}|{{ data.expiration_year }}',
  })
  const { new_token } = await update(id)
  t.match(new_token, {
    containers: ['/pci/high/', '/shop/'],
    metadata: { customer: '42' },
    data: { number: 'XXXXXXXXXXXXXX46' },
    search_indexes: ['{{ data.number | last4 }}'],
    fingerprint_expression: '{{ data.number }}|{{ data.expiration_year }}',
  })
  t.equal((await dataOf(new_token!.id)).cvc, undefined)
  t.equal((await ask('token search', { query: 'data:6746' })).data[0]?.id, new_token!.id)
  t.equal((await dataOf(id)).cvc, '123')
  const plain = await ask('token create', {
    type: 'card',
    data: { number: '5555555555554444', expiration_month: 12, expiration_year: 2023 },
    mask: null,
  })
  t.equal((await update(plain.id)).new_token?.mask, undefined, 'no mask stays no mask')
  const coded = await ask('token create', {
    type: 'card',
    data: { number: '5555555555554444', expiration_month: 12, expiration_year: 2023, cvc: '123' },
    mask: '{{ data.cvc }}',
  })
  t.match(await update(coded.id), { new_token: { mask: '{{ data.cvc }}', data: null } })
})

t.test('with deduplication, the updater changes and returns an existing token of the new card', async (t) => {
  const { ask, store, update, dataOf } = await open(t)
  const existing = await store(
    '4166676667666746',
    { metadata: { a: '1' } },
    { expiration_month: 1, expiration_year: 2030 },
  )
  const id = await store('4111111111111111', { metadata: { b: '2' } })
  const count = async () => (await ask('token list')).pagination.total_items
  const { new_token } = await update(id, { deduplicate_token: true })
  t.equal(new_token?.id, existing)
  t.equal(await count(), 2)
  t.match(await dataOf(existing), { number: '4166676667666746', expiration_month: 12, expiration_year: 2023 })
  t.strictSame((await ask('token get', { id: existing })).metadata, { a: '1', b: '2' })
  t.not((await update(id)).new_token?.id, existing, 'without the setting of the tenant, a new token is made')
  await ask('tenant update', { name: 'default', settings: { deduplicate_tokens: 'true' } })
  t.equal((await update(id)).new_token?.id, existing)
  const other = await update(id, { deduplicate_token: false })
  t.equal(await count(), 4)
  t.equal((await ask('token get', { id: other.new_token!.id })).deduplicate_token, undefined)
})

t.test('an update needs only the permission for the updater, and the log names the caller', async (t) => {
  const { ask, store, askAs, createApplication, app } = await open(t)
  const id = await store('4111111111111111', { containers: ['/pci/high/'] })
  const permissions = ['account-updater:real-time:invoke'] as const
  const { key, id: caller } = await createApplication('private', { permissions })
  const { new_token } = await askAs(key, 'updater real-time', { token_id: id })
  t.equal(new_token?.created_by, caller)
  await t.rejects(askAs(key, 'token get', { id }), { code: 'forbidden' })
  const reader = await createApplication('private', { permissions: ['token:read', 'token:create'] })
  await t.rejects(askAs(reader.key, 'updater real-time', { token_id: id }), { code: 'forbidden' })
  const { data } = await ask('log list', { entity_type: 'card' })
  t.match(data.slice(0, 2), [
    { entity_id: new_token!.id, operation: 'create', actor_id: caller },
    { entity_id: id, operation: 'use', actor_id: caller },
  ])
  const handle = createHandler(app)
  const post = async (body: object) => {
    const request = new Request('http://localhost/account-updater/real-time', {
      method: 'POST',
      headers: { 'svc-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await handle(request)).status
  }
  t.equal(await post({ token_id: id, merchant_id: 'm' }), 200)
  for (const wrong of [{}, { token_id: id, expiration_month: 13 }, { token_id: id, expiration_year: 26 }])
    t.equal(await post(wrong), 400)
})

t.test(
  'in no-reveal mode, an update does not report a duplicate, because a duplicate would confirm a guess of the number',
  async (t) => {
    const { store, app } = await open(t)
    const existing = await store('4166676667666746')
    const id = await store('4111111111111111')
    const input = { token_id: id, deduplicate_token: true }
    const { result } = await app.ask({
      operation: 'updater real-time',
      input,
      as: { reveal: false },
      noReveal: true,
    })
    t.not(result.new_token?.id, existing)
    t.equal(result.new_token?.fingerprint, undefined)
  },
)

t.test('an interrupted job continues at its next row, and each row is processed once', async (t) => {
  const { ask, store, app } = await open(t)
  const old = await store('4111111111111111')
  const { id } = await ask('updater job create')
  await setSetting(app, 'account_updater.delay', '1h')
  await ask('updater job upload', { id, file: `token\n${`${old}\n`.repeat(60)}` })
  const { number: tenant } = await app.tenant()
  const process = (steps: number) => {
    let left = steps
    return processJob({ host: app, tenant, id, leaseMs: 1, isStopped: () => left-- === 0 })
  }
  const count = async () => (await ask('token list')).pagination.total_items
  await process(0)
  t.equal(await count(), 1)
  await process(1)
  const begun = await count()
  t.ok(begun > 1 && begun < 61, `${begun} tokens`)
  t.equal((await ask('updater job get', { id })).status, 'processing')
  await Promise.all([process(100), process(100)])
  t.equal(await count(), 61, 'two processes together process each row once')
  t.match(await ask('updater job get', { id }), {
    status: 'completed',
    requests: 60,
    results: { UPD_PAN: 60 },
  })
  const { file } = await ask('updater job download', { id })
  t.equal(file.trimEnd().split('\n').length, 61)
  await process(1)
  t.equal(await count(), 61, 'a job that has ended stays as it is')
})

t.test(
  'the owner can upload the file of a job once, and can download only the result of a completed job',
  async (t) => {
    const { ask, app } = await open(t)
    const { id } = await ask('updater job create')
    await t.rejects(ask('updater job download', { id }), { code: 'conflict' })
    const large = 'a'.repeat(MAX_FILE_BYTES + 1)
    await t.rejects(ask('updater job upload', { id, file: large }), { code: 'too_large' })
    t.match(await ask('updater job upload', { id, file: '' }), { status: 'processing' })
    await t.rejects(ask('updater job upload', { id, file: 'token\na\n' }), { code: 'conflict' })
    await app.deliveries.settle()
    t.match(await ask('updater job get', { id }), { status: 'failed', errors: ['File cannot be empty'] })
    await t.rejects(ask('updater job download', { id }), { code: 'conflict' })
    for (const operation of ['updater job upload', 'updater job download', 'updater job get'])
      await t.rejects(ask(operation, { id: 'unknown', file: '' }), { code: /not_found|validation/ })
  },
)
