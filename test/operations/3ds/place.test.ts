/**
 * The tenant of a 3-D Secure session is found without a search. The entry that names the tenant of a session is removed
 * together with the session.
 */
import t, { type Test } from 'tap'
import { findSession } from '../../../src/operations/3ds/pages.js'
import type { StoreReader } from '../../../src/storage/store.js'
import { openTestVault, START } from '../../support/test-vault.js'

const HOUR_MS = 60 * 60 * 1000
const REQUEST = {
  authentication_category: 'non-payment',
  authentication_type: 'add-card',
  cardholder_info: { name: 'Ada', email: 'ada@example.com' },
} as const
const MERCHANT = { ...REQUEST, decoupled_challenge_max_time: 5 } as const

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { app, ask } = vault
  const create = async (tenant?: string) => {
    const data = { number: '4000020000000000' }
    const { id: token_id } = await ask('token create', { type: 'card', data }, tenant)
    return (await ask('3ds create', { token_id, type: 'merchant' }, tenant)).id
  }
  const countPlaces = () =>
    app.store.read(async (reader) => (await reader.find('threeds_place', 0, { page: 1, size: 1 })).total)
  return { ...vault, create, countPlaces }
}

/** Counts the reads of a unit of work. */
function counting(reader: StoreReader) {
  const counts: Record<string, number> = {}
  const counted = new Proxy(reader, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) => {
        counts[String(name)] = (counts[String(name)] ?? 0) + 1
        return value.apply(target, given)
      }
    },
  })
  return { counted, counts }
}

t.test('the number of reads for a 3-D Secure page does not depend on the number of tenants', async (t) => {
  const { app, create, createTenant } = await open(t)
  for (let at = 0; at < 30; at++) await createTenant(`tenant ${at}`)
  const session = await create(await createTenant('last'))
  for (const [id, expected] of [
    [session, { get: 2 }],
    ['b2385523-a66c-4907-ac3c-91848e8c0067', { get: 1 }],
  ] as const)
    await app.store.read(async (reader) => {
      const { counted, counts } = counting(reader)
      const found = await findSession(counted, id).catch(({ code }) => code)
      t.match(found, id === session ? { session: { id } } : 'not_found')
      t.strictSame(counts, expected)
    })
})

t.test('a 3-D Secure page finds no session that has expired or whose tenant was deleted', async (t) => {
  const { app, ask, clock, create, countPlaces, createTenant } = await open(t)
  const find = (id: string) => app.store.read((reader) => findSession(reader, id))
  const other = await createTenant('other')
  const [kept, expired, foreign] = [await create(), await create(), await create(other)]
  await ask('3ds authenticate', { id: kept, ...MERCHANT })
  await ask('3ds authenticate', { id: foreign, ...MERCHANT }, other)
  await ask('tenant delete', {}, other)
  await t.rejects(find(foreign), { code: 'not_found' })
  t.equal(await countPlaces(), 2, 'the deleted tenant leaves nothing')
  clock.now = START + HOUR_MS
  await t.rejects(find(expired), { code: 'not_found' })
  clock.now = START + 365 * 24 * HOUR_MS
  await app.sweep()
  t.equal((await find(kept)).session.id, kept, 'an authenticated session stays')
  t.equal(await countPlaces(), 1)
})
