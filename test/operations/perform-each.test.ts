/** One operation for several inputs in one unit of work. */
import fc from 'fast-check'
import t from 'tap'
import type { CofferError, SentError } from '../../src/errors.js'
import type { EachOutcome } from '../../src/framework/perform-each.js'
import { openTestVault } from './vault.js'

const PLACES = ['open', 'shut'] as const
const TOKENS = 3
const each = fc.record({ place: fc.constantFrom(...PLACES, 'none', 'not an id'), at: fc.nat(TOKENS - 1) })

async function open() {
  const vault = await openTestVault()
  const { key } = await vault.createApplication('private', {
    rules: [
      {
        description: 'open',
        priority: 1,
        container: '/open/',
        permissions: ['token:delete'],
        transform: 'redact',
      },
    ],
  })
  const fill = async (world: string) => {
    for (const place of PLACES)
      for (let at = 0; at < TOKENS; at++) {
        const id = `${world}-${place}-${at}`
        await vault.ask('token create', { id, type: 'token', data: id, containers: [`/${place}/`] })
      }
  }
  const left = async (world: string) => {
    const { data } = (await vault.ask('token list', { size: 100 })) as { data: { id: string }[] }
    return data.map(({ id }) => id.replace(world, '')).filter((id) => id.startsWith('-'))
  }
  const logged = async (world: string) => {
    const { data } = (await vault.ask('log list', { operation: 'delete', size: 100 })) as {
      data: { entity_id: string }[]
    }
    return data.map(({ entity_id: id }) => id.replace(world, '')).filter((id) => id.startsWith('-'))
  }
  const askEach = async (name: string, inputs: object[], as: object = { key }) =>
    (await vault.app.ask({ operation: name, input: {}, each: inputs as never, as: as as never }))
      .result as unknown as EachOutcome
  return { vault, key, fill, left, logged, askEach }
}

t.test('the outcome is that of one after another, up to the first that is refused', async (t) => {
  const { vault, key, fill, left, logged, askEach } = await open()
  t.teardown(() => vault.app.close())
  let run = 0
  const property = fc.asyncProperty(fc.array(each, { maxLength: 7 }), async (chosen) => {
    const [one, all] = [`one${++run}`, `all${run}`]
    const inputs = (world: string) => chosen.map(({ place, at }) => ({ id: `${world}-${place}-${at}` }))
    await fill(one)
    await fill(all)
    let done = 0
    let refused: CofferError | undefined
    for (const input of inputs(one)) {
      refused = await vault.askAs(key, 'token delete', input).then(
        () => undefined,
        (error) => error as CofferError,
      )
      if (refused !== undefined) break
      done++
    }
    const outcome = await askEach('token delete', inputs(all))
    const about = (error?: CofferError | SentError) => error && [error.code, error.message, error.errors]
    t.same([outcome.done, about(outcome.error)], [done, about(refused)])
    t.same(await left(all), await left(one))
    t.same(await logged(all), await logged(one))
    for (const id of await left(all)) await vault.ask('token delete', { id: `${all}${id}` })
    for (const id of await left(one)) await vault.ask('token delete', { id: `${one}${id}` })
  })
  await fc.assert(property, { numRuns: 25 })
})

t.test('it is one unit of work, and no more than one for each that is refused', async (t) => {
  const { vault, fill, askEach } = await open()
  t.teardown(() => vault.app.close())
  await fill('x')
  const ids = (...names: string[]) => names.map((name) => ({ id: `x-open-${name}` }))
  let units = 0
  const { store } = vault.app
  const write = store.write.bind(store)
  store.write = (work, durability) => {
    units++
    return write(work, durability)
  }
  t.same(await askEach('token delete', ids('0', '1')), { done: 2 })
  t.equal(units, 1)
  t.match(await askEach('token delete', ids('2', 'gone')), { done: 1, error: { code: 'not_found' } })
  t.equal(units, 3, 'the second without the one that is refused')
  t.match(await askEach('token delete', [{}, ...ids('2')]), { done: 0, error: { code: 'validation' } })
  t.equal(units, 3)
  t.same(await askEach('token delete', []), { done: 0 })
})

t.test('whoever may not do one may not do several', async (t) => {
  const { vault, askEach } = await open()
  t.teardown(() => vault.app.close())
  const { key } = await vault.createApplication('private', { permissions: ['token:read'] })
  await t.rejects(askEach('token delete', [{ id: 'x' }], { key }), { code: 'forbidden' })
  await t.rejects(askEach('tenant delete', [{ id: 'x' }]), { code: 'forbidden' })
  await t.rejects(askEach('config unset', [{ name: 'logs.keep' }], { reveal: false }), { code: 'internal' })
  await t.rejects(askEach('token get', [{ id: 'x' }], { reveal: false }), { code: 'internal' })
})
