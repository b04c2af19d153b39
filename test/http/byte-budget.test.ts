/** The limit on the bytes that all requests together hold in memory. */
import t from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { createAnswerer } from '../../src/http/answerer.js'
import { ByteBudget, ByteLease } from '../../src/http/byte-budget.js'
import type { HttpRequest } from '../../src/http/exchange.js'
import { completeService } from '../../src/http/service.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, REVEALS_ALL } from '../support/test-vault.js'

const MIB = 1024 * 1024

function createLease(load: ByteBudget, holder: string): ByteLease {
  const lease = new ByteLease(load)
  lease.holder = holder
  return lease
}

const isRefused = (work: () => void): boolean => {
  try {
    work()
    return false
  } catch {
    return true
  }
}

t.test(
  'the bytes of requests are limited in total and for each application, and small requests have an additional reserve',
  async (t) => {
    const load = new ByteBudget()
    const [a, b] = [createLease(load, 'a'), createLease(load, 'b')]
    a.reserve(60 * MIB)
    t.throws(
      () => createLease(load, 'a').reserve(10 * MIB),
      { code: 'unavailable', status: 503 },
      'two thirds',
    )
    b.reserve(36 * MIB)
    t.throws(() => createLease(load, 'c').reserve(MIB), { code: 'unavailable' }, 'the whole budget is used')
    const small = Array.from({ length: 96 * 16 + 1 }, () => createLease(load, 'c'))
    const refused = small.filter((lease) => isRefused(() => lease.reserve(64 * 1024)))
    t.equal(refused.length, 1, 'the reserve for small requests is as large as the budget')
    for (const lease of small) lease.end()
    b.reserve(10 * MIB)
    createLease(load, 'c').reserve(26 * MIB)
    t.throws(() => b.reserve(11 * MIB), { code: 'unavailable' }, 'released bytes were reserved again')
    b.end()
    createLease(load, 'd').reserve(10 * MIB)
  },
)

t.test(
  'a request that runs alone can exceed the limit, and bytes that a request already holds in memory are always accepted',
  async (t) => {
    const load = new ByteBudget()
    const alone = createLease(load, 'a')
    alone.take(MIB)
    alone.reserve(300 * MIB)
    t.throws(() => createLease(load, 'b').reserve(MIB), { code: 'unavailable' })
    alone.end()
    const settled = createLease(load, 'b')
    settled.settle(200 * MIB)
    t.throws(() => createLease(load, 'c').take(MIB), { code: 'unavailable' })
    const wide = new ByteBudget(256 * MIB)
    createLease(wide, 'a').take(256 * MIB)
    createLease(wide, 'b').take(256 * MIB)
  },
)

t.test('if there is no room for a request, it gets 503, writes nothing and logs nothing', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { key } = await vault.createApplication('private', { rules: [REVEALS_ALL] })
  await vault.ask('token create', { id: 'large', type: 'token', data: 'x'.repeat(200_000) })
  const answerer = createAnswerer(completeService({ host: vault.app, registry, authenticate, version: '0' }))
  const countOf = async (name: string) =>
    ((await vault.ask(name, { size: 1 })) as { pagination: { total_items: number } }).pagination.total_items
  const load = new ByteBudget()
  const ask = (method: string, target: string, body?: object) => {
    const lease = new ByteLease(load)
    const bytes = Buffer.from(JSON.stringify(body ?? {}))
    const readBody: HttpRequest['readBody'] = async () => {
      lease.take(bytes.length)
      return bytes
    }
    return answerer({ method, target, headers: { 'svc-api-key': key }, lease, readBody })
  }
  const logs = await countOf('log list')
  const full = createLease(load, 'somebody')
  full.settle(128 * MIB)
  const large = { type: 'token', data: 'y'.repeat(200_000), mask: '{{ data }}' }
  for (const [method, target, body] of [
    ['GET', '/tokens/large'],
    ['HEAD', '/tokens/large'],
    ['GET', '/tokens'],
    ['POST', '/tokens/search', {}],
    ['POST', '/tokens', large],
  ] as const) {
    const answer = await ask(method, target, body)
    t.equal(answer.status, 503, `${method} ${target}`)
    t.equal(answer.headers['retry-after'], '1')
  }
  t.equal(await countOf('log list'), logs, 'no read was logged')
  t.equal((await ask('GET', '/tokens?type=card')).status, 200, 'a small response is still sent')
  full.end()
  t.equal((await ask('HEAD', '/tokens/large')).status, 200)
  t.equal(await countOf('log list'), logs + 1)
})
