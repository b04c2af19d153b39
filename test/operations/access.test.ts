/**
 * Access rules through `perform`, against a reference written from the specification's sentences; and the promise that
 * matters most: nobody is told a character of data that their transform does not grant.
 */
import fc from 'fast-check'
import t from 'tap'
import type { Permission, Transform } from '../../src/domain/permissions.js'
import { authenticate } from '../../src/framework/authenticate.js'
import { CallerCache } from '../../src/framework/cached-caller.js'
import { containers, decide, plain, rules, type Shown, shownUnder } from './oracle.js'
import { openTestVault, permissionsOf } from './vault.js'

t.test('rules decide as the specification says, whatever they are', async (t) => {
  const { app, ask, askAs, statusOf, createApplication } = await openTestVault()
  let denied = 0
  let allowed = 0
  const property = fc.asyncProperty(
    rules,
    plain,
    fc.array(containers, { minLength: 1, maxLength: 4 }),
    async (rules, permissions, sets) => {
      if (rules.length === 0 && permissions.length === 0) return
      const grants = { rules, permissions }
      const { key } = await createApplication('private', grants)
      const caller = () => authenticate(app, key)
      const holds = (permission: Permission) =>
        [...rules, grants].some((each) => each.permissions.includes(permission))
      const readable: string[] = []
      for (const containers of sets) {
        const input = { type: 'token', data: 'secret', mask: 'masked', containers }
        const { id } = (await ask('token create', input)) as Shown
        const read = decide(grants, 'token:read', containers)
        t.equal(await statusOf(caller, 'token get', { id }), read === undefined ? 403 : 200)
        if (read === undefined) denied++
        else {
          allowed++
          const { data } = (await askAs(key, 'token get', { id })) as Shown
          t.strictSame(data === undefined ? {} : { data }, shownUnder(read))
          readable.unshift(id)
        }
        const update = decide(grants, 'token:update', containers)
        t.equal(
          await statusOf(caller, 'token update', { id, metadata: { a: 'b' } }),
          update === undefined ? 403 : 200,
        )
        const create = decide(grants, 'token:create', containers)
        t.equal(await statusOf(caller, 'token create', input), create === undefined ? 403 : 201)
        const isGone = decide(grants, 'token:delete', containers) !== undefined
        t.equal(await statusOf(caller, 'token delete', { id }), isGone ? 204 : 403)
        if (isGone && read !== undefined) readable.shift()
      }
      if (!holds('token:read')) return
      const list = (await askAs(key, 'token list', { id: readable, size: 100 })) as {
        data: Shown[]
        pagination: { total_items: number }
      }
      t.strictSame([list.data.map(({ id }) => id), list.pagination.total_items], [readable, readable.length])
    },
  )
  await fc.assert(property, { numRuns: 120 })
  t.ok(denied > 20 && allowed > 20, `${denied} denied, ${allowed} allowed`)
})

t.test('a list and a search show and count exactly what may be read', async (t) => {
  const property = fc.asyncProperty(
    rules,
    plain,
    fc.array(containers, { minLength: 1, maxLength: 12 }),
    async (rules, permissions, sets) => {
      const grants = { rules, permissions }
      if (rules.length === 0 && permissions.length === 0) return
      const { app, ask, askAs, createApplication } = await openTestVault()
      const { key } = await createApplication('private', grants)
      const expected = { list: [] as string[], search: [] as string[] }
      for (const [index, containers] of sets.entries()) {
        await ask('token create', { id: `token-${index}`, type: 'token', data: index, containers })
        const mayRead = decide(grants, 'token:read', containers) !== undefined
        if (mayRead) expected.list.unshift(`token-${index}`)
        const maySearch = decide(grants, 'token:search', containers) !== undefined
        if (mayRead && maySearch) expected.search.unshift(`token-${index}`)
      }
      const { holds } = await authenticate(app, key)
      for (const verb of ['list', 'search'] as const) {
        if (!holds(verb === 'list' ? 'token:read' : 'token:search')) continue
        const page = (await askAs(key, `token ${verb}`, { size: 3 })) as {
          data: Shown[]
          pagination: { total_items: number }
        }
        t.strictSame(
          page.data.map(({ id }) => id),
          expected[verb].slice(0, 3),
        )
        t.equal(page.pagination.total_items, expected[verb].length)
      }
      await app.close()
    },
  )
  await fc.assert(property, { numRuns: 60 })
})

/** Letters that nothing else in the vault is written with, so that one of them anywhere is a leak. */
const SECRET = 'жщшюядфгцэ'
const GRANTED: Record<Transform, string> = { redact: '', mask: SECRET.slice(-2), reveal: SECRET }

t.test('no answer holds a character of data beyond what its transform grants', async (t) => {
  const { app, ask, textOf, createApplication } = await openTestVault()
  const token = {
    type: 'token',
    data: SECRET,
    mask: '{{ data | reveal_last: 2 }}',
    search_indexes: ['{{ data }}'],
    metadata: { customer: '42' },
  }
  let shown = 0
  for (const transform of ['redact', 'mask', 'reveal'] as const) {
    const permissions = permissionsOf('private')
    const rule = { priority: 1, container: '/', transform, permissions }
    const { key } = await createApplication('private', { rules: [rule] })
    const caller = () => authenticate(app, key)
    const { id } = (await ask('token create', token)) as Shown
    const { id: other } = (await ask('token create', token)) as Shown
    await ask('token link', { parent_id: id, child_id: other })
    const reads: [string, Record<string, unknown>][] = [
      ['token get', { id }],
      ['token list', { id: [id, other] }],
      ['token search', { query: `data:${SECRET}` }],
      ['token children', { parent_id: id }],
    ]
    const writes: [string, Record<string, unknown>][] = [
      ['token create', token],
      ['token create', { ...token, deduplicate_token: true }],
      ['token create-child', { parent_id: id, ...token }],
      ['token update', { id, metadata: { customer: '43' } }],
      ['token update', { id, mask: '{{ data | no_such_filter }}' }],
      ['token update', { id, mask: '{{ data | to_number }}' }],
      ['token update', { id, search_indexes: ['{{ data | json: "$[" }}'] }],
      ['token update', { id, fingerprint_expression: '{{ data | to_boolean }}' }],
      ['token update', { id, deduplicate_token: true }],
      ['token tokenize', { payload: { deep: [token] } }],
      ['token search', { query: `data:"${'x'.repeat(10)}` }],
      ['token delete', { id }],
    ]
    for (const [name, input] of [...reads, ...writes]) {
      const isRead = reads.some(([read, asked]) => read === name && asked === input)
      const most = isRead ? GRANTED[transform] : transform === 'redact' ? '' : GRANTED.mask
      const text = await textOf(caller, name, input)
      const leaked = [...SECRET].filter((letter) => !most.includes(letter) && text.includes(letter))
      t.strictSame(leaked, [], `${name} under ${transform}: ${leaked.length} letters`)
      if (most !== '' && text.includes(most)) shown++
    }
  }
  t.ok(shown >= 14, `what is granted is shown (${shown} times)`)
  const logs = await textOf(() => app.owner({ reveal: true }), 'log list', { size: 1000 })
  t.notMatch(logs, /[жщшюядфгцэ]/, 'the log holds none of it')
})

t.test('a key that was checked lives as long as all that it stands on, and no longer', async (t) => {
  const { app, clock, ask, createApplication, createTenant } = await openTestVault()
  const refused = { code: 'unauthenticated' }
  const create = (tenant?: string) => createApplication('public', { permissions: ['token:create'] }, tenant)
  const { id, key } = await create()
  const first = await authenticate(app, key)
  const again = await authenticate(app, key)
  const isCounted = app.store.changeCounter(['api_key']) !== undefined
  t.equal(again === first, isCounted, 'what is known to be current is not looked up again')
  await t.rejects(
    authenticate(
      app,
      key.replace(/.$/, (last) => (last === '2' ? '3' : '2')),
    ),
    refused,
  )
  await ask('app update', { id, name: 'renamed', permissions: ['token:create', 'token:update'] })
  t.ok((await authenticate(app, key)).holds('token:update'), 'a change counts at once')
  const { key: other } = (await ask('app regenerate', { id })) as { key: string }
  await t.rejects(authenticate(app, key), refused, 'a key that was replaced')
  t.ok(await authenticate(app, other))
  const second = (await ask('app key create', { application_id: id })) as { id: string; key: string }
  t.same((await authenticate(app, second.key)).actor, (await authenticate(app, other)).actor)
  await ask('app key delete', { application_id: id, id: second.id })
  await t.rejects(authenticate(app, second.key), refused, 'a key that was deleted')
  t.ok(await authenticate(app, other), 'and the others stay')
  await ask('app delete', { id })
  await t.rejects(authenticate(app, other), refused, 'a deleted application')

  const expires_at = new Date(clock.now + 1000).toISOString()
  const input = { name: 'short', type: 'public', permissions: ['token:create'], expires_at }
  const { key: short } = (await ask('app create', input)) as { key: string }
  t.ok(await authenticate(app, short))
  clock.now += 1000
  await t.rejects(authenticate(app, short), refused, 'one whose time is over')

  await createTenant('second')
  const tenant = await app.tenant('second')
  const { key: theirs } = await create('second')
  t.ok(await authenticate(app, theirs))
  await app.store.write((writer) => writer.removeTenant(tenant.number))
  await t.rejects(authenticate(app, theirs), refused, 'a deleted tenant')
})

t.test('so many callers are known and no more, each by its own key', async (t) => {
  const { app } = await openTestVault()
  const callers = new CallerCache((message, length) => new Uint8Array(length).fill(message[0]!))
  const caller = await app.owner({ reveal: false })
  callers.put('a', 1, caller)
  t.equal(callers.find('a', 1), caller)
  t.equal(callers.find('a', 2), undefined, 'under another change counter')
  t.equal(callers.find('b', 1), undefined, 'by another key')
  callers.put('b', 2, caller)
  t.equal(callers.find('a', 1), undefined)
  t.equal(callers.find('a', 2), undefined, 'of what went before nothing is left')
})
