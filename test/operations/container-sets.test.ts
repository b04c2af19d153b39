/** The sets of containers that tokens have: how many sets an application may add, and when they are removed. */
import t from 'tap'
import { containerSetId } from '../../src/domain/access/container.js'
import type { Permission } from '../../src/domain/access/permissions.js'
import { openTestVault, START, type TestVault } from '../support/test-vault.js'

const HOUR_MS = 60 * 60 * 1000
/** In a shared store, a container set is removed only after nothing has used it for this time in ms. */
const LEASE_MS = 2 * 60_000

const GRANTED = '/granted/'
const readingRule = {
  priority: 1,
  container: GRANTED,
  transform: 'mask' as const,
  permissions: ['token:read', 'token:search'] as Permission[],
}

const setsOf = async ({ app }: TestVault) => {
  const { records } = await app.store.read((reader) =>
    reader.find('containers', 1, { page: 1, size: 10_000 }),
  )
  return records.map(({ containers }) => containers.join(' ')).sort()
}

/** Sweeps twice, because a shared store removes unused container sets only in a sweep after the lease. */
async function sweepAll({ app, clock }: TestVault): Promise<void> {
  await app.sweep()
  clock.now += LEASE_MS
  await app.sweep()
}

const create = (vault: TestVault, id: string, containers: string[], more: object = {}) =>
  vault.ask('token create', { id, type: 'token', data: id, containers, ...more })

/** Adds container sets of `application` without performing operations, to save time. */
const fill = ({ app }: TestVault, application: string, count: number) =>
  app.store.write(async (writer) => {
    for (let number = 0; number < count; number++) {
      const containers = [`/filled/${number}/`]
      const set = { id: containerSetId(containers), containers, created_by: application }
      await writer.insert('containers', 1, set, { fresh: true })
    }
  })

t.test('containers in any order and with any repetition are stored as one set', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const sets = [['/b/', '/a/'], ['/a/', '/b/', '/a/'], ['/a/'], ['/a/', '/b/']]
  for (const [at, containers] of sets.entries()) await create(vault, `token-${at}`, containers)
  const payload = sets.map((containers) => ({ type: 'token', data: 'x', containers }))
  await vault.ask('token tokenize', { payload })
  t.strictSame(await setsOf(vault), ['/a/', '/a/ /b/'])
})

t.test('a container set is removed after its last token is deleted, moved or expired', async (t) => {
  const vault = await openTestVault()
  const { app, ask, clock } = vault
  t.teardown(() => app.close())
  const expires_at = new Date(START + HOUR_MS).toISOString()
  await create(vault, 'kept', ['/kept/'])
  await create(vault, 'deleted', ['/deleted/'])
  await create(vault, 'moved', ['/moved/'])
  await create(vault, 'both-1', ['/both/'])
  await create(vault, 'both-2', ['/both/'])
  await create(vault, 'expired', ['/expired/'], { expires_at })
  await create(vault, 'replaced', ['/replaced/'], { expires_at })
  await ask('token delete', { id: 'deleted' })
  await ask('token delete', { id: 'both-1' })
  await ask('token update', { id: 'moved', containers: ['/target/'] })
  await ask('token update', { id: 'kept', containers: ['/kept/'], metadata: { a: 'b' } })
  const stored = ['/both/', '/deleted/', '/expired/', '/kept/', '/moved/', '/replaced/', '/target/']
  t.strictSame(await setsOf(vault), stored)
  await sweepAll(vault)
  const used = ['/both/', '/expired/', '/kept/', '/replaced/', '/target/']
  t.strictSame(await setsOf(vault), used, 'sets without a token are removed')
  clock.now += HOUR_MS
  await create(vault, 'replaced', ['/anew/'])
  await sweepAll(vault)
  t.strictSame(await setsOf(vault), ['/anew/', '/both/', '/kept/', '/target/'])
})

t.test(
  'container sets from earlier versions are kept while a token has them, and vault compact removes unused sets',
  async (t) => {
    const vault = await openTestVault()
    const { app, ask, askAs, clock, createApplication } = vault
    t.teardown(() => app.close())
    await create(vault, 'used', [`${GRANTED}used/`])
    await app.store.write(async (writer) => {
      // Simulates sets that an earlier version has stored: they name no application, and no tokens have them.
      for (const containers of [['/old/1/'], ['/old/2/', '/old/3/']])
        await writer.insert('containers', 1, { id: containerSetId(containers), containers })
    })
    await app.sweep()
    t.equal((await setsOf(vault)).length, 3, 'a sweep examines only sets that are listed as possibly unused')
    for (let times = 0; times < 2; times++) {
      await app.examineContainers()
      clock.now += LEASE_MS
    }
    t.strictSame(await setsOf(vault), [`${GRANTED}used/`])
    const { key } = await createApplication('private', { rules: [readingRule] })
    t.match(await askAs(key, 'token list'), { data: [{ id: 'used' }], pagination: { total_items: 1 } })
    await ask('token delete', { id: 'used' })
  },
)

t.test('no container set is removed shortly after a jump of the clock', async (t) => {
  const vault = await openTestVault()
  const { app, ask, clock } = vault
  t.teardown(() => app.close())
  await create(vault, 'short', ['/a/'], { expires_at: new Date(START + HOUR_MS).toISOString() })
  await create(vault, 'other', ['/a/'])
  clock.now += 48 * HOUR_MS
  await ask('token delete', { id: 'other' })
  await sweepAll(vault)
  t.strictSame(
    await setsOf(vault),
    ['/a/'],
    'the sets are kept, because a token that seems expired may become valid again',
  )
  clock.now += 2 * HOUR_MS
  await create(vault, 'later', ['/b/'])
  await sweepAll(vault)
  t.strictSame(await setsOf(vault), ['/b/'], 'the sets are removed once the jump of the clock is settled')
})

t.test('a container set is not removed if a token gets the set again', async (t) => {
  const vault = await openTestVault()
  const { app, ask, askAs, clock, createApplication } = vault
  t.teardown(() => app.close())
  const { key } = await createApplication('private', { rules: [readingRule] })
  const listed = async () => {
    const { data, pagination } = (await askAs(key, 'token list')) as {
      data: { id: string }[]
      pagination: { total_items: number }
    }
    return [data.map(({ id }) => id).sort(), pagination.total_items]
  }
  const containers = [`${GRANTED}shared/`, GRANTED]
  for (const when of ['before the sweep', 'after it', 'after the lease'] as const) {
    await create(vault, 'first', containers)
    await ask('token delete', { id: 'first' })
    if (when !== 'before the sweep') await app.sweep()
    if (when === 'after the lease') {
      clock.now += LEASE_MS
      await app.sweep()
    }
    await create(vault, 'second', containers)
    await sweepAll(vault)
    t.strictSame(await listed(), [['second'], 1], when)
    await ask('token delete', { id: 'second' })
  }
  // Tokens are created and deleted while the sets are examined.
  const names = Array.from({ length: 60 }, (_, at) => `token-${at}`)
  await Promise.all(
    names.map(async (id, at) => {
      await create(vault, id, containers)
      if (at % 3 === 0) clock.now += LEASE_MS
      const sweeping = app.sweep()
      if (at % 10 !== 0) await ask('token delete', { id })
      await sweeping
    }),
  )
  await sweepAll(vault)
  const left = names.filter((_, at) => at % 10 === 0).sort()
  t.strictSame(await listed(), [left, left.length])
  t.strictSame(await setsOf(vault), [`${GRANTED} ${GRANTED}shared/`])
})

t.test('an application may add container sets only up to its limit', async (t) => {
  for (const [type, most] of [
    ['public', 1_000],
    ['private', 10_000],
  ] as const) {
    const vault = await openTestVault()
    const { app, ask, askAs, createApplication } = vault
    const { id, key } = await createApplication(type, { permissions: ['token:create', 'token:update'] })
    await fill(vault, id, most - 1)
    const wanted = (name: string) => ({ type: 'token', data: name, containers: [`/${name}/`] })
    const last = (await askAs(key, 'token create', wanted('last'))) as { id: string }
    const refusal = async (asking: Promise<unknown>, why: string) => {
      const error = await asking.then(
        () => t.fail(`the request was not refused: ${why}`),
        (reason) => reason,
      )
      t.match(error, { code: 'validation', status: 400 }, why)
      const [message] = error.errors.containers
      t.match(message, most.toLocaleString('en'))
      t.match(message, /delete tokens/, 'the message says what to do')
    }
    await refusal(askAs(key, 'token create', wanted('more')), `${type}: create`)
    await refusal(askAs(key, 'token update', { id: last.id, containers: ['/more/'] }), `${type}: update`)
    const rows = [wanted('more'), { ...wanted('known'), containers: ['/last/'] }]
    const { results } = await askAs(key, 'token import', { rows })
    t.match(results, [{ status: 'refused', errors: { containers: [String] } }, { status: 'created' }])
    t.equal((await setsOf(vault)).includes('/more/'), false, 'a refused row leaves no set')
    const { key: other } = await createApplication(type, { permissions: ['token:create'] })
    await askAs(other, 'token create', wanted('more'))
    await askAs(key, 'token create', { ...wanted('x'), containers: ['/more/'] })
    await ask('token create', wanted('owned'))
    await refusal(askAs(key, 'token create', wanted('another')), `${type}: still`)
    await app.examineContainers()
    vault.clock.now += LEASE_MS
    await app.examineContainers()
    await askAs(key, 'token create', wanted('another'))
    await app.close()
  }
})

t.test(
  'after tokens were created, deleted or changed, a list of tokens uses the current container sets',
  async (t) => {
    const vault = await openTestVault()
    const { app, ask, askAs, createApplication } = vault
    t.teardown(() => app.close())
    const { key } = await createApplication('private', { rules: [readingRule] })
    const total = async (operation: 'token list' | 'token search') => {
      const { pagination } = (await askAs(key, operation)) as { pagination: { total_items: number } }
      return pagination.total_items
    }
    const expected = { inside: 0 }
    for (let number = 0; number < 40; number++) {
      const inside = [`${GRANTED}${number}/`]
      await create(vault, `inside-${number}`, inside)
      await create(vault, `mixed-${number}`, [...inside, `/other/${number}/`])
      expected.inside++
      if (number % 8 === 0) {
        t.equal(await total('token list'), expected.inside)
        t.equal(await total('token search'), expected.inside)
      }
    }
    await create(vault, 'alike', ['/grantedother/'])
    for (let number = 0; number < 30; number++) await ask('token delete', { id: `inside-${number}` })
    await sweepAll(vault)
    t.equal(await total('token list'), 10, 'more sets are refused than granted')
    for (let number = 0; number < 40; number++) await ask('token delete', { id: `mixed-${number}` })
    await sweepAll(vault)
    t.equal(await total('token list'), 10)
    await ask('token update', { id: 'inside-39', containers: ['/other/'] })
    t.equal(await total('token list'), 9)
  },
)
