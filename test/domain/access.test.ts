import t from 'tap'
import {
  decideContainer,
  decideTransform,
  dependsOnId,
  holdsEverywhere,
  holdsPermission,
  type Rule,
  type RuleCondition,
} from '../../src/domain/access/access.js'
import { API_KEY, checkGrants, mayHold } from '../../src/domain/access/application.js'
import { PERMISSIONS, type Permission, stricterTransform } from '../../src/domain/access/permissions.js'
import { drawKey, isKey } from '../../src/domain/text/base58.js'

const rule = (
  priority: number,
  container: string,
  transform: Rule['transform'],
  ...permissions: Permission[]
) => ({ priority, container, transform, permissions })

t.test(
  'the first rule by priority that covers the container and grants the permission decides',
  async (t) => {
    const rules = [
      rule(3, '/', 'redact', 'token:read'),
      rule(1, '/pci/', 'mask', 'token:read'),
      rule(2, '/pci/high/', 'reveal', 'token:read', 'token:delete'),
    ]
    const grants = { rules, permissions: [] }
    t.strictSame(decideContainer(grants, 'token:read', '/pci/high/'), {
      container: '/pci/high/',
      decidedBy: 1,
      transform: 'mask',
      passedOver: [],
    })
    t.strictSame(decideContainer(grants, 'token:delete', '/pci/high/'), {
      container: '/pci/high/',
      decidedBy: 2,
      transform: 'reveal',
      passedOver: [{ priority: 1, reason: 'other permissions' }],
    })
    t.strictSame(decideContainer(grants, 'token:read', '/pcix/'), {
      container: '/pcix/',
      decidedBy: 3,
      transform: 'redact',
      passedOver: [
        { priority: 1, reason: 'other container' },
        { priority: 2, reason: 'other container' },
      ],
    })
    t.strictSame(decideContainer(grants, 'token:use', '/'), {
      container: '/',
      passedOver: [
        { priority: 1, reason: 'other container' },
        { priority: 2, reason: 'other container' },
        { priority: 3, reason: 'other permissions' },
      ],
    })
  },
)

t.test('plain permissions are a last rule on everything: masked, but revealed for use', async (t) => {
  const grants = {
    rules: [rule(1, '/pci/', 'redact', 'token:read')],
    permissions: ['token:read', 'token:use'] as const,
  }
  t.equal(decideTransform(grants, 'token:read', { containers: ['/pci/high/'] }), 'redact')
  t.equal(decideTransform(grants, 'token:read', { containers: ['/general/'] }), 'mask')
  t.equal(decideTransform(grants, 'token:use', { containers: ['/general/'] }), 'reveal')
  const invoking = { rules: [], permissions: ['reactor:invoke', 'proxy:invoke'] as Permission[] }
  for (const permission of invoking.permissions)
    t.equal(decideTransform(invoking, permission, { containers: ['/general/'] }), 'reveal')
  t.equal(decideTransform(grants, 'token:delete', { containers: ['/general/'] }), undefined)
})

t.test('every container must be decided, and the strictest transform wins', async (t) => {
  const rules = [rule(1, '/a/', 'reveal', 'token:read'), rule(2, '/b/', 'mask', 'token:read')]
  const grants = { rules, permissions: [] }
  t.equal(decideTransform(grants, 'token:read', { containers: ['/a/', '/b/'] }), 'mask')
  t.equal(decideTransform(grants, 'token:read', { containers: ['/a/', '/c/'] }), undefined)
  t.equal(holdsPermission(grants, 'token:read'), true)
  t.equal(holdsPermission(grants, 'token:use'), false)
  t.equal(stricterTransform('reveal', 'redact'), 'redact')
})

const when = (priority: number, ...conditions: RuleCondition[]): Rule => ({
  priority,
  conditions,
  transform: 'reveal',
  permissions: ['token:read'],
})
const is = (attribute: RuleCondition['attribute'], value: string): RuleCondition => {
  return { attribute, operator: 'equals', value }
}
const starts = (attribute: RuleCondition['attribute'], value: string): RuleCondition => {
  return { attribute, operator: 'starts_with', value }
}

const CONDITIONS: [
  title: string,
  conditions: RuleCondition[],
  container: string,
  id: string | undefined,
  holds: boolean,
][] = [
  ['equal ids', [is('id', 'card-1')], '/a/', 'card-1', true],
  ['a longer id', [is('id', 'card-1')], '/a/', 'card-12', false],
  ['another case', [is('id', 'card-1')], '/a/', 'Card-1', false],
  ['the start of an id', [starts('id', 'card-')], '/a/', 'card-12', true],
  ['a part of an id that is not its start', [starts('id', 'card-')], '/a/', 'a-card-12', false],
  ['a token whose id is not known yet', [starts('id', 'card-')], '/a/', undefined, false],
  ['the same, whatever the value', [starts('id', '')], '/a/', undefined, false],
  ['equal containers', [is('container', '/pci/')], '/pci/', undefined, true],
  ['a container below', [is('container', '/pci/')], '/pci/high/', 'x', false],
  ['a container that starts so', [starts('container', '/pci/')], '/pci/high/', 'x', true],
  ['text, not segments', [starts('container', '/pc')], '/pci/', 'x', true],
  ['both hold', [starts('container', '/pci/'), is('id', 'x')], '/pci/high/', 'x', true],
  ['one of two holds', [starts('container', '/pci/'), is('id', 'y')], '/pci/high/', 'x', false],
]

t.test('a rule with conditions applies when all hold for the id and the container', async (t) => {
  for (const [title, conditions, container, id, holds] of CONDITIONS) {
    const grants = { rules: [when(1, ...conditions)], permissions: [] }
    const { decidedBy, passedOver } = decideContainer(grants, 'token:read', container, id)
    t.equal(decidedBy, holds ? 1 : undefined, title)
    t.equal(passedOver[0]?.reason, holds ? undefined : 'condition does not hold', title)
    t.equal(
      decideTransform(grants, 'token:read', { id, containers: [container] }),
      holds ? 'reveal' : undefined,
    )
  }
  const two = [when(2, starts('container', '/')), when(1, is('id', 'x'), is('container', '/b/'))]
  t.strictSame(decideContainer({ rules: two, permissions: [] }, 'token:read', '/a/', 'x').passedOver, [
    { priority: 1, reason: 'condition does not hold', condition: is('container', '/b/') },
  ])
  const { container: _, ...neither } = rule(1, '/', 'reveal', 'token:read')
  t.equal(
    decideTransform({ rules: [neither], permissions: [] }, 'token:read', { containers: ['/'] }),
    undefined,
  )
})

t.test('where a container does not grant a permission, another may be enough', async (t) => {
  const rules = [rule(1, '/a/', 'mask', 'token:use'), rule(2, '/', 'reveal', 'proxy:invoke')]
  const grants = { rules, permissions: [] }
  t.equal(decideTransform(grants, 'token:use', { containers: ['/b/'] }), undefined)
  t.equal(decideTransform(grants, 'token:use', { containers: ['/b/'] }, 'proxy:invoke'), 'reveal')
  t.equal(decideTransform(grants, 'token:use', { containers: ['/a/', '/b/'] }, 'proxy:invoke'), 'mask')
})

t.test('only rules without conditions cover everything', async (t) => {
  const everywhere = (...rules: Rule[]) => holdsEverywhere({ rules, permissions: [] }, 'token:read')
  t.ok(everywhere(rule(1, '/', 'redact', 'token:read')))
  t.ok(holdsEverywhere({ rules: [], permissions: ['token:read'] }, 'token:read'))
  for (const each of [
    rule(1, '/a/', 'mask', 'token:read'),
    when(1, is('container', '/')),
    when(1, starts('id', '')),
  ])
    t.notOk(everywhere(each))
  t.ok(dependsOnId({ rules: [when(1, is('container', '/')), when(2, is('id', 'x'))], permissions: [] }))
  t.notOk(dependsOnId({ rules: [when(1, is('container', '/'))], permissions: [] }))
})

t.test('each type of application may hold what is documented, and nothing else', async (t) => {
  const verbs = ['create', 'read', 'update', 'delete', 'search', 'use']
  const held = [...verbs.map((verb) => `token:${verb}`), 'reactor:invoke', 'proxy:invoke']
  for (const permission of Object.keys(PERMISSIONS) as Permission[]) {
    const isOfTokens = held.includes(permission)
    t.equal(mayHold('public', permission), ['token:create', 'token:update'].includes(permission), permission)
    t.equal(mayHold('private', permission), isOfTokens, permission)
    t.equal(mayHold('management', permission), !isOfTokens, permission)
  }
  t.equal(Object.keys(PERMISSIONS).length, 32)
})

t.test('says everything that is wrong with an application, by property', async (t) => {
  t.strictSame(checkGrants('private', { permissions: ['token:read'], rules: [] }), {})
  t.strictSame(Object.keys(checkGrants('private', { permissions: [], rules: [] })), ['permissions'])
  const errors = checkGrants('public', {
    permissions: ['token:read', 'token:nothing', 'toString'],
    rules: [rule(1, '/a/', 'mask', 'token:create'), rule(1, 'a', 'mask', 'token:use'), rule(2, '/', 'mask')],
  })
  t.strictSame(errors, {
    'permissions[0]': ['may not be held by a public application: token:read'],
    'permissions[1]': ['is not a permission'],
    'permissions[2]': ['is not a permission'],
    'rules[1].permissions[0]': ['may not be held by a public application: token:use'],
    'rules[1].container': ['must be a path such as /pci/high/'],
    'rules[1].priority': ['must be unique'],
    'rules[2].permissions': ['must name at least one permission'],
  })
  t.match(checkGrants('private', { permissions: ['tokens:raed'] }), {
    'permissions[0]': ['is not a permission; did you mean token:read?'],
  })
  const management = checkGrants('management', {
    permissions: ['log:read'],
    rules: [rule(1, '/', 'mask', 'log:read')],
  })
  t.strictSame(management, { rules: ['are for public and private applications'] })
})

t.test('a key is key_ and 22 base58 characters that hold its 128 bits', async (t) => {
  const keys = [0, 1, 255].map((byte) =>
    drawKey({ bytes: (count) => new Uint8Array(count).fill(byte) }, API_KEY),
  )
  for (const key of keys) t.match(key, /^key_[1-9A-HJ-NP-Za-km-z]{22}$/)
  t.equal(new Set(keys).size, 3)
  t.ok(isKey(keys[2]!, API_KEY))
  for (const text of [
    '',
    'key_',
    `${keys[0]} `,
    keys[0]!.slice(1),
    keys[0]!.replace('1', '0'),
    `${keys[0]}1`,
  ]) {
    t.notOk(isKey(text, API_KEY), text)
  }
})
