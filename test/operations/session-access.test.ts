/** What sessions may do, against the reference of access rules. */
import fc from 'fast-check'
import t from 'tap'
import type { Rule, RuleCondition } from '../../src/domain/access.js'
import type { Permission, Transform } from '../../src/domain/permissions.js'
import { authenticate } from '../../src/framework/authenticate.js'
import { container, containers, decide, granted, plain, rules, type Shown, shownUnder } from './oracle.js'
import { openTestVault, setSetting } from './vault.js'

const operator = fc.constantFrom<RuleCondition['operator']>('equals', 'starts_with')
const condition = fc.oneof(
  fc.record({
    attribute: fc.constant<'id'>('id'),
    operator,
    value: fc.constantFrom('card-', 'card-1', 'note-1', 'c'),
  }),
  fc.record({
    attribute: fc.constant<'container'>('container'),
    operator,
    value: fc.oneof(container, fc.constantFrom('/', '/a', '/ab/')),
  }),
)
const conditional = fc.record({
  priority: fc.integer({ min: 10, max: 19 }),
  conditions: fc.array(condition, { minLength: 1, maxLength: 2 }),
  transform: fc.constantFrom<Transform>('redact', 'mask', 'reveal'),
  permissions: granted,
})
const conditionals = fc.uniqueArray(conditional, { selector: ({ priority }) => priority, maxLength: 4 })
const sessionTokens = fc.array(fc.tuple(fc.constantFrom('card', 'note'), containers), {
  minLength: 1,
  maxLength: 4,
})

t.test('a session may do what it was granted and its authorizer may, or beyond it', async (t) => {
  let denied = 0
  let allowed = 0
  const check = async (
    isBeyond: boolean,
    own: { rules: Rule[]; permissions: Permission[] },
    authorizer: { rules: Rule[]; permissions: Permission[] },
    tokens: [kind: string, containers: string[]][],
  ) => {
    const isEmpty = [own, authorizer].some((each) => each.rules.length + each.permissions.length === 0)
    if (isEmpty) return
    const { app, ask, askAs, statusOf, createApplication } = await openTestVault()
    await setSetting(app, 'sessions.beyond_authorizer', String(isBeyond))
    const page = await createApplication('public', { permissions: ['token:create'] })
    const backend = await createApplication('private', authorizer)
    const { session_key: key, nonce } = (await askAs(page.key, 'session create')) as Record<string, string>
    await askAs(backend.key, 'session authorize', { nonce, ...own })
    const caller = () => authenticate(app, key!)
    const deciding = isBeyond ? [own] : [own, authorizer]
    const decideAll = (permission: Permission, paths: readonly string[], id?: string) => {
      const all = deciding.map((each) => decide(each, permission, paths, id))
      const found = (['redact', 'mask', 'reveal'] as const).find((each) => all.includes(each))
      return all.includes(undefined) ? undefined : found
    }
    const holds = (permission: Permission) =>
      deciding.every((each) => [...each.rules, each].some((one) => one.permissions.includes(permission)))
    const readable: string[] = []
    for (const [index, [kind, containers]] of tokens.entries()) {
      const id = `${kind}-${index}`
      const input = { type: 'token', data: 'secret', mask: 'masked', containers }
      await ask('token create', { id, ...input })
      const read = decideAll('token:read', containers, id)
      t.equal(await statusOf(caller, 'token get', { id }), read === undefined ? 403 : 200)
      if (read === undefined) denied++
      else {
        allowed++
        readable.unshift(id)
        const { data } = (await askAs(key!, 'token get', { id })) as Shown
        t.strictSame(data === undefined ? {} : { data }, shownUnder(read))
      }
      const create = decideAll('token:create', containers)
      t.equal(await statusOf(caller, 'token create', input), create === undefined ? 403 : 201)
      const update = decideAll('token:update', containers, id)
      const patch = { id, metadata: { a: 'b' } }
      t.equal(await statusOf(caller, 'token update', patch), update === undefined ? 403 : 200)
    }
    const listed = { id: tokens.map(([kind], index) => `${kind}-${index}`), size: 100 }
    t.equal(await statusOf(caller, 'token list', listed), holds('token:read') ? 200 : 403)
    if (holds('token:read')) {
      const list = (await askAs(key!, 'token list', listed)) as {
        data: Shown[]
        pagination: { total_items: number }
      }
      t.strictSame([list.data.map(({ id }) => id), list.pagination.total_items], [readable, readable.length])
    }
    await app.close()
  }
  const grants = fc
    .tuple(rules, conditionals, plain)
    .map(([some, more, permissions]) => ({ rules: [...some, ...more] as Rule[], permissions }))
  const plainGrants = fc.record({ rules: rules as fc.Arbitrary<Rule[]>, permissions: plain })
  await fc.assert(fc.asyncProperty(fc.boolean(), grants, plainGrants, sessionTokens, check), { numRuns: 100 })
  t.ok(denied > 5 && allowed > 5, `${denied} denied, ${allowed} allowed`)
})
