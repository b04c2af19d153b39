/** Compares access rules with an independent reference implementation, and checks which data each transform shows. */
import fc from 'fast-check'
import t from 'tap'
import type { Rule, RuleCondition } from '../../src/domain/access/access.js'
import type { Permission, Transform } from '../../src/domain/access/permissions.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { openTestVault, permissionsOf, setSetting, type TestVault } from '../support/test-vault.js'
import type { Input } from './documented.js'

interface Granted {
  rules: Rule[]
  permissions: Permission[]
}

interface Shown {
  id: string
  data?: unknown
}

interface Page {
  data: Shown[]
  pagination: { total_items: number }
}

/** The strictest transform comes first. */
const TRANSFORMS = ['redact', 'mask', 'reveal'] as const

const segments = fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 3 })
const container = segments.map((names) => `/${names.map((name) => `${name}/`).join('')}`)
const containers = fc.uniqueArray(container, { minLength: 1, maxLength: 3 })
const ALL = permissionsOf('private')
/** Most drawn permissions concern tokens. Otherwise, almost every random call about tokens would be refused. */
const anyPermission = fc.oneof(
  fc.constantFrom(...ALL.filter((permission) => permission.startsWith('token:'))),
  fc.constantFrom(...ALL),
)
const granted = fc.uniqueArray(anyPermission, { minLength: 1, maxLength: 4 })
const transform = fc.constantFrom<Transform>(...TRANSFORMS)
const plain = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Permission[]>([]) },
  { weight: 1, arbitrary: granted },
)
const operator = fc.constantFrom<RuleCondition['operator']>('equals', 'starts_with')
const values = fc.constantFrom('card-', 'card-1', 'Card-1', 'note-1', 'c', '')
const paths = fc.oneof(container, fc.constantFrom('/', '/a', '/ab/'))
const condition = fc.oneof(
  fc.record({ attribute: fc.constant<'id'>('id'), operator, value: values }),
  fc.record({ attribute: fc.constant<'container'>('container'), operator, value: paths }),
)
const ofContainer = fc.record({
  priority: fc.integer({ min: 1, max: 9 }),
  container,
  transform,
  permissions: granted,
})
const conditional = fc.record({
  priority: fc.integer({ min: 10, max: 19 }),
  conditions: fc.array(condition, { minLength: 1, maxLength: 2 }),
  transform,
  permissions: granted,
})
const several = <T extends { priority: number }>(rule: fc.Arbitrary<T>, maxLength: number) =>
  fc.uniqueArray(rule, { selector: ({ priority }) => priority, maxLength })
const ofApplication: fc.Arbitrary<Granted> = fc.record({
  rules: several(ofContainer, 5) as fc.Arbitrary<Rule[]>,
  permissions: plain,
})
const ofSession: fc.Arbitrary<Granted> = fc
  .tuple(several(ofContainer, 5), several(conditional, 4), plain)
  .map(([some, more, permissions]) => ({ rules: [...some, ...more] as Rule[], permissions }))
const tokens = fc.array(fc.tuple(fc.constantFrom('card', 'note'), containers), { minLength: 1, maxLength: 8 })

/** The reference implementation of the decision on access. The reference decides for one container after another. */
function decide(
  grants: Granted,
  permission: Permission,
  paths: readonly string[],
  id?: string,
): Transform | undefined {
  const meets = ({ attribute, operator, value }: RuleCondition, path: string) => {
    const text = attribute === 'id' ? id : path
    return operator === 'equals' ? text === value : text?.slice(0, value.length) === value
  }
  const above = (path: string) => path.split('/').map((_, at, all) => `${all.slice(0, at).join('/')}/`)
  const decided = paths.map((path): Transform | undefined => {
    const fitting = grants.rules.filter(
      (rule) =>
        (rule.conditions?.every((each) => meets(each, path)) ??
          [path, ...above(path)].includes(rule.container!)) &&
        rule.permissions.includes(permission),
    )
    fitting.sort((one, other) => one.priority - other.priority)
    if (fitting[0] !== undefined) return fitting[0].transform
    if (!grants.permissions.includes(permission)) return undefined
    return /:(use|invoke)$/.test(permission) ? 'reveal' : 'mask'
  })
  return strictest(decided)
}

/** Returns the strictest transform if every decision grants access. */
function strictest(decided: readonly (Transform | undefined)[]): Transform | undefined {
  return decided.includes(undefined) ? undefined : TRANSFORMS.find((each) => decided.includes(each))
}

/** Returns the properties that a reader gets for the data `secret` with the mask `masked`. */
const shownUnder = (transform: Transform) =>
  transform === 'redact' ? {} : { data: transform === 'reveal' ? 'secret' : 'masked' }

const HOLDERS = {
  application: async ({ createApplication }: TestVault, own: Granted) => {
    const { key } = await createApplication('private', own)
    return { key, deciding: [own] }
  },
  session: createSession,
  'session that may go beyond its authorizer': async (
    vault: TestVault,
    own: Granted,
    authorizer: Granted,
  ) => {
    await setSetting(vault.app, 'sessions.beyond_authorizer', 'true')
    return { ...(await createSession(vault, own, authorizer)), deciding: [own] }
  },
}

async function createSession({ createApplication, askAs }: TestVault, own: Granted, authorizer: Granted) {
  const page = await createApplication('public', { permissions: ['token:create'] })
  const backend = await createApplication('private', authorizer)
  const { session_key, nonce } = await askAs(page.key, 'session create')
  await askAs(backend.key, 'session authorize', { nonce, ...own })
  return { key: session_key!, deciding: [own, authorizer] }
}

for (const [holder, create] of Object.entries(HOLDERS))
  t.test(`${holder}: rules decide as the reference does, for random rules and containers`, async (t) => {
    const counts = { denied: 0, allowed: 0 }
    const property = async (own: Granted, authorizer: Granted, tokens: [kind: string, string[]][]) => {
      const held = holder === 'application' ? [own] : [own, authorizer]
      if (held.some((each) => each.rules.length + each.permissions.length === 0)) return
      const vault = await openTestVault()
      const { app, ask, askAs, statusOf } = vault
      const { key, deciding } = await create(vault, own, authorizer)
      const caller = () => authenticate(app, key)
      const decideAll = (permission: Permission, paths: readonly string[], id?: string) =>
        strictest(deciding.map((each) => decide(each, permission, paths, id)))
      const holds = (permission: Permission) =>
        deciding.every((each) => [...each.rules, each].some((one) => one.permissions.includes(permission)))
      const check = async (
        permission: Permission,
        status: number,
        name: string,
        input: Input,
        id?: string,
      ) => {
        const { containers, ...about } = input
        const decision = decideAll(permission, containers as string[], id)
        counts[decision === undefined ? 'denied' : 'allowed']++
        const asked = id === undefined ? input : { id, ...about }
        t.equal(await statusOf(caller, name, asked), decision === undefined ? 403 : status)
        return decision
      }
      const readable: string[] = []
      const found: string[] = []
      for (const [index, [kind, containers]] of tokens.entries()) {
        const id = `${kind}-${index}`
        const input = { type: 'token', data: 'secret', mask: 'masked', containers }
        await ask('token create', { id, ...input })
        const read = await check('token:read', 200, 'token get', { containers }, id)
        if (read !== undefined) {
          readable.unshift(id)
          const { data } = await askAs(key, 'token get', { id })
          t.strictSame(data === undefined ? {} : { data }, shownUnder(read))
          if (decideAll('token:search', containers, id) !== undefined) found.unshift(id)
        }
        await check('token:update', 200, 'token update', { metadata: { a: 'b' }, containers }, id)
      }
      const ids = tokens.map(([kind], index) => `${kind}-${index}`)
      for (const [permission, name, filter, expected] of [
        ['token:read', 'token list', {}, readable],
        ['token:read', 'token list', { id: ids }, readable],
        ['token:search', 'token search', {}, found],
      ] as const) {
        const isHeld = holds(permission)
        t.equal(await statusOf(caller, name, { ...filter }), isHeld ? 200 : 403)
        if (!isHeld) continue
        const { data, pagination } = (await askAs(key, name, { ...filter, size: 3 })) as Page
        const first = expected.slice(0, 3)
        t.strictSame([data.map(({ id }) => id), pagination.total_items], [first, expected.length])
      }
      for (const [index, [kind, containers]] of tokens.entries()) {
        const id = `${kind}-${index}`
        await check('token:create', 201, 'token create', { type: 'token', data: 'secret', containers })
        await check('token:delete', 204, 'token delete', { containers }, id)
      }
      await app.close()
    }
    const own = holder === 'application' ? ofApplication : ofSession
    await fc.assert(fc.asyncProperty(own, ofApplication, tokens, property), { numRuns: 80 })
    t.ok(counts.denied > 100 && counts.allowed > 10, JSON.stringify(counts))
  })

/** These letters occur nowhere else in the vault, so each of them in a response is leaked data. */
const SECRET = 'жщшюядфгцэ'
const GRANTED: Record<Transform, string> = { redact: '', mask: SECRET.slice(-2), reveal: SECRET }

t.test('no response contains more of the data than the transform of the rule grants', async (t) => {
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
    const { id } = await ask('token create', token)
    const { id: other } = await ask('token create', token)
    await ask('token link', { parent_id: id, child_id: other })
    const reads: [string, Input][] = [
      ['token get', { id }],
      ['token list', { id: [id, other] }],
      ['token search', { query: `data:${SECRET}` }],
      ['token children', { parent_id: id }],
    ]
    const patches: Input[] = [
      { metadata: { customer: '43' } },
      { mask: '{{ data | no_such_filter }}' },
      { mask: '{{ data | to_number }}' },
      { search_indexes: ['{{ data | json: "$[" }}'] },
      { fingerprint_expression: '{{ data | to_boolean }}' },
      { deduplicate_token: true },
    ]
    const writes: [string, Input][] = [
      ['token create', token],
      ['token create', { ...token, deduplicate_token: true }],
      ['token create-child', { parent_id: id, ...token }],
      ...patches.map((patch): [string, Input] => ['token update', { id, ...patch }]),
      ['token tokenize', { payload: { deep: [token] } }],
      ['token delete', { id }],
    ]
    for (const [name, input] of [...reads, ...writes]) {
      const isRead = reads.some(([read, asked]) => read === name && asked === input)
      const most = isRead ? GRANTED[transform] : transform === 'redact' ? '' : GRANTED.mask
      const text = await textOf(caller, name, input)
      const leaked = [...SECRET].filter((letter) => !most.includes(letter) && text.includes(letter))
      t.strictSame(leaked, [], `${name} with ${transform} leaks ${leaked.length} letters`)
      if (most !== '' && text.includes(most)) shown++
    }
  }
  t.ok(shown >= 14, `granted data is shown ${shown} times`)
  const logs = await textOf(() => app.owner({ reveal: true }), 'log list', { size: 1000 })
  t.notMatch(logs, /[жщшюядфгцэ]/, 'the log contains no data')
})
