/** The access matrix and the preview: each cell shows what a request of the application gets. */
import t from 'tap'
import type { Rule } from '../../src/domain/access/access.js'
import type { Permission, Transform } from '../../src/domain/access/permissions.js'
import { Turns } from '../../src/domain/expression/budget.js'
import { examplesOf } from '../../src/domain/token/example-data.js'
import type { TokenTypeName } from '../../src/domain/token/token-types.js'
import { createExamples } from '../../src/operations/access/example.js'
import { chooseContainers } from '../../src/operations/access/matrix.js'
import { type Grants, openTestVault, START, type TestVault } from '../support/test-vault.js'

const MARK = 'MARKED-PLAINTEXT'

let next = 0
const rule = (container: string, transform: Transform, ...permissions: Permission[]): Rule => ({
  priority: ++next,
  container,
  transform,
  permissions: permissions.length === 0 ? ['token:read'] : permissions,
})

async function open(t: { teardown(work: () => unknown): void }): Promise<TestVault> {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  return vault
}

/** The rules and permissions of each application, by the name of the application. */
const GRANTS: Record<string, Grants> = {
  reveals: { rules: [rule('/', 'reveal')] },
  masks: { rules: [rule('/pci/', 'mask')] },
  redacts: { rules: [rule('/pci/high/', 'redact'), rule('/', 'mask')] },
  'first rule wins': { rules: [rule('/pci/', 'redact'), rule('/pci/high/', 'reveal')] },
  'permissions alone': { permissions: ['token:read'] },
  'permissions after rules': { permissions: ['token:read'], rules: [rule('/pci/', 'redact')] },
  'other permissions': { rules: [rule('/', 'reveal', 'token:create', 'token:search')] },
  'uses only': { permissions: ['token:use'] },
}

/** Containers, each with the type and the mask of its only token. */
const TOKENS: [container: string, type: TokenTypeName, mask?: unknown][] = [
  ['/pci/high/', 'card'],
  ['/pci/low/', 'card', { last: '{{ data.number | last4 }}' }],
  ['/bank/high/', 'bank'],
  ['/general/high/', 'token'],
  ['/general/named/', 'token', { name: '{{ data.name | reveal_last: 3 }}' }],
  ['/pii/high/', 'social_security_number', null],
]

t.test('each cell is what a request of the application gets for the example', async (t) => {
  const vault = await open(t)
  const keys: Record<string, string> = {}
  const ids: Record<string, string> = {}
  for (const [name, grants] of Object.entries(GRANTS)) {
    const made = await vault.ask('app create', { name, type: 'private', ...grants })
    keys[name] = made.key!
    ids[name] = made.id
  }
  for (const [container, type, mask] of TOKENS) {
    const [data] = examplesOf(type)
    const input = { id: container.replaceAll('/', '-'), type, data, containers: [container] }
    await vault.ask('token create', { ...input, ...(mask !== undefined && { mask }) })
  }
  const matrix = await vault.ask('access matrix')
  t.same(
    matrix.containers.map(({ container, type, is_used }) => [container, type, is_used]),
    [
      ['/', 'card', false],
      ['/pci/', 'card', false],
      ['/pci/high/', 'card', true],
      ...TOKENS.slice(1)
        .map(([container, type]) => [container, type, true])
        .sort(),
    ],
  )
  for (const [name, key] of Object.entries(keys)) {
    const row = matrix.applications.find(({ id }) => id === ids[name])!
    t.match(row, { name, type: 'private', keys: 1, is_expired: false })
    for (const [container] of TOKENS) {
      const cell = row.cells.find((each) => each.container === container)!
      const id = container.replaceAll('/', '-')
      const got = await vault.askAs(key, 'token get', { id }).then(
        ({ data }) => ({ sees: data === undefined ? 'no data' : 'data', data }),
        ({ status }: { status: number }) => ({ sees: `refused ${status}`, data: undefined }),
      )
      const hasData = cell.example !== undefined
      const expected = cell.sees === 'none' ? 'refused 403' : hasData ? 'data' : 'no data'
      t.same(got, { sees: expected, data: cell.example }, `${name} in ${container}: ${cell.sees}`)
    }
  }
})

t.test('a mask of text is shown with an example that is text', async (t) => {
  const vault = await open(t)
  await vault.createApplication('private', { rules: [rule('/pii/', 'mask')] })
  const input = { type: 'token', data: 'alan@turing.example', containers: ['/pii/low/'] } as const
  await vault.ask('token create', { ...input, mask: `{{ data | split: '@' | last }}` })
  const matrix = await vault.ask('access matrix', { container: ['/pii/low/'] })
  t.match(matrix.applications[0]!.cells, [{ sees: 'masked', example: 'example.com' }])
})

t.test('a cell names the rule that decides', async (t) => {
  const vault = await open(t)
  const rules = [
    { ...rule('/pci/', 'mask'), priority: 7, description: 'help desk' },
    { ...rule('/', 'redact', 'token:use'), priority: 3 },
  ]
  await vault.createApplication('private', { rules, permissions: ['token:use'] })
  const cells = async (permission?: string) =>
    (await vault.ask('access matrix', { container: ['/pci/'], permission })).applications[0]!.cells
  t.same(await cells(), [
    {
      ...{ container: '/pci/', sees: 'masked', by: 'rule', rule: 7, description: 'help desk' },
      example: { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2040 },
    },
  ])
  t.same(await cells('token:use'), [{ container: '/pci/', sees: 'redacted', by: 'rule', rule: 3 }])
  t.same(await cells('proxy:invoke'), [{ container: '/pci/', sees: 'none', by: 'nothing' }])
})

t.test(
  'an expired application sees nothing, and the matrix does not count keys that are no longer valid',
  async (t) => {
    const vault = await open(t)
    await vault.createApplication('private', {
      permissions: ['token:read'],
      expires_at: new Date(START + 60_000).toISOString(),
    })
    const [before] = (await vault.ask('access matrix', { container: ['/pci/'] })).applications
    t.match(before, { is_expired: false, keys: 1, cells: [{ sees: 'masked', by: 'permissions' }] })
    vault.clock.now += 120_000
    const [after] = (await vault.ask('access matrix', { container: ['/pci/'] })).applications
    t.match(after, { is_expired: true, cells: [{ sees: 'none', by: 'expiry' }] })
  },
)

t.test('the access matrix never has data of a token, not even through a mask', async (t) => {
  const vault = await open(t)
  await vault.createApplication('private', { rules: [rule('/', 'reveal')] })
  const create = (container: string, data: unknown, mask: unknown, type = 'token') =>
    vault.ask('token create', { type, data, mask, containers: [container] })
  await create('/whole/', MARK, '{{ data }}')
  await create('/member/', { [MARK]: MARK }, { value: `{{ data["${MARK}"] }}` })
  await create('/card/', { number: '5555555555554444' }, { number: '{{ data.number }}' }, 'card')
  const matrix = await vault.ask('access matrix')
  const text = JSON.stringify(matrix)
  t.notMatch(text, new RegExp(`${MARK}|5555555555554444`))
  const masks = matrix.containers.map(({ container, mask }) => [container, mask])
  t.same(masks, [
    ['/', 'shown'],
    ['/card/', 'shown'],
    ['/member/', 'other'],
    ['/whole/', 'shown'],
  ])
})

t.test('if masks need too much work, the examples after the limit have no mask', async (t) => {
  const { app } = await open(t)
  const { expressions } = app
  const toExample = createExamples({ expressions: async () => expressions(), turns: new Turns() })
  const maskOf = async (mask: unknown) =>
    (await toExample({ container: '/c/', type: 'token', mask, isUsed: true })).mask
  t.equal(await maskOf('{{ data.name }}'), 'shown')
  let count = 0
  do {
    count++
    await maskOf(
      Array.from({ length: 2000 }, (_, at) => `{{ data.name | append: "${count} ${at}" | upcase }}`),
    )
  } while (count < 100 && (await maskOf(`{{ data.name }} ${count}`)) === 'shown')
  t.equal(await maskOf('{{ data.email }}'), 'other', `after ${count} masks`)
  const card = await toExample({ container: '/pci/', type: 'card', isUsed: false })
  t.match(card, { record: { type: 'card', data: { number: '4242424242424242' } }, mask: 'other' })
})

t.test('a long mask is not repeated in every cell', async (t) => {
  const vault = await open(t)
  await vault.createApplication('private', { permissions: ['token:read'] })
  for (const [container, length] of [
    ['/long/', 300],
    ['/short/', 200],
  ] as const)
    await vault.ask('token create', {
      type: 'token',
      data: 'x',
      mask: ['m'.repeat(length), 'm'.repeat(length)],
      containers: [container],
    })
  const { containers, applications } = await vault.ask('access matrix')
  t.match(containers, [
    { container: '/long/', mask: 'other' },
    { container: '/short/', mask: 'shown' },
  ])
  t.match(applications[0]!.cells, [
    { sees: 'masked' },
    { sees: 'masked', example: ['m'.repeat(200), 'm'.repeat(200)] },
  ])
  t.notOk('example' in applications[0]!.cells[0]!)
})

t.test('a page of the access matrix has at most 100 applications and 100 containers', async (t) => {
  const vault = await open(t)
  for (let at = 0; at < 103; at++)
    await vault.ask('app create', {
      ...{ name: `a${at}`, type: 'private', create_key: false },
      rules: [rule(`/c/${at}/`, 'mask')],
    })
  const first = await vault.ask('access matrix')
  t.match(first, { total_applications: 103, total_containers: 100 })
  t.equal(first.applications.length, 100)
  t.equal(first.containers.length, 100)
  t.ok(first.applications.every(({ cells }) => cells.length === 100))
  const second = await vault.ask('access matrix', { page: 2 })
  t.same(
    second.applications.map(({ name }) => name),
    ['a2', 'a1', 'a0'],
  )
  t.equal(second.containers.length, 3)
  const one = await vault.ask('access matrix', {
    application: [second.applications[0]!.id],
    container: ['/c/2/'],
  })
  t.match(one, {
    total_applications: 1,
    total_containers: 1,
    applications: [{ name: 'a2', cells: [{ sees: 'masked' }] }],
  })
})

t.test('the containers of rules come before the containers of tokens', async (t) => {
  const used = ['/t/1/', '/t/2/', '/a/']
  t.same(chooseContainers(['/z/', '/a/'], used, undefined, 3), { chosen: ['/a/', '/z/', '/t/1/'], total: 4 })
  t.same(chooseContainers(['/z/', '/a/'], used, ['/t/'], 5), { chosen: ['/t/', '/t/1/', '/t/2/'], total: 3 })
  t.same(
    chooseContainers([], [], ['/new/'], 5),
    { chosen: ['/new/'], total: 1 },
    'a container that is not in use',
  )
  t.same(chooseContainers([], [], undefined, 5), { chosen: [], total: 0 })
})

t.test('the access matrix of an empty vault has the usual containers', async (t) => {
  const vault = await open(t)
  await vault.createApplication('private', { permissions: ['token:read'] })
  const { containers } = await vault.ask('access matrix')
  t.ok(containers.some(({ container, is_used }) => container === '/pci/high/' && !is_used))
})

t.test('a preview returns the cells that a new application would have, and stores nothing', async (t) => {
  const vault = await open(t)
  await vault.ask('token create', { type: 'card', data: { number: '4111111111111111' } })
  for (const [name, grants] of Object.entries(GRANTS)) {
    const logs = await vault.ask('log list')
    const preview = await vault.ask('access preview', { type: 'private', ...grants })
    t.same(await vault.ask('log list'), logs, `${name}: the preview leaves no log record`)
    t.equal((await vault.ask('app list', { id: ['candidate'] })).data.length, 0)
    const made = await vault.createApplication('private', grants)
    const matrix = await vault.ask('access matrix', { application: [made.id] })
    t.same(preview.cells, matrix.applications[0]!.cells, name)
    t.same(preview.containers, matrix.containers, name)
    await vault.ask('app delete', { id: made.id })
  }
})

t.test('a preview refuses what an application cannot have, and the error names the property', async (t) => {
  const vault = await open(t)
  const good = rule('/pci/', 'mask')
  const REFUSED: [input: object, path: string][] = [
    [{ type: 'private', rules: [{ ...good, transform: 'rot13' }] }, 'rules[0].transform'],
    [{ type: 'private', rules: [{ ...good, container: 'pci' }] }, 'rules[0].container'],
    [{ type: 'private', rules: [{ ...good, permissions: [] }] }, 'rules[0].permissions'],
    [{ type: 'private', rules: [{ ...good, permissions: ['token:raed'] }] }, 'rules[0].permissions[0]'],
    [{ type: 'private', rules: [good, good] }, 'rules[1].priority'],
    [{ type: 'private', rules: [{ ...good, only_at_night: true }] }, 'rules[0].only_at_night'],
    [{ type: 'public', permissions: ['token:read'] }, 'permissions[0]'],
    [{ type: 'management', rules: [good] }, 'rules'],
    [{ type: 'private', permissions: [], rules: [] }, 'permissions'],
    [{ type: 'private', permissions: ['token:read'], container: ['pci'] }, 'container[0]'],
  ]
  for (const [input, path] of REFUSED) {
    const error = await vault.ask('access preview', { ...input }).then(
      () => undefined,
      ({ errors }: { errors: object }) => errors,
    )
    t.ok(error && path in error, `${JSON.stringify(input)}: ${JSON.stringify(error)}`)
  }
})

t.test('no application can read the matrix or a preview, whatever its type', async (t) => {
  const vault = await open(t)
  const KEYS = [
    ['public', { permissions: ['token:create'] }],
    ['private', { rules: [rule('/', 'reveal')] }],
    ['management', { permissions: ['application:read', 'application:update'] }],
  ] as const
  for (const [type, grants] of KEYS) {
    const { key } = await vault.createApplication(type, grants as Grants)
    for (const [name, input] of [
      ['access matrix', {}],
      ['access preview', { type: 'private', permissions: ['token:read'] }],
    ] as const)
      await t.rejects(vault.askAs(key, name, input), { code: 'forbidden' }, `${type}: ${name}`)
  }
})

t.test('each tenant sees only its own applications and containers', async (t) => {
  const vault = await open(t)
  const other = await vault.createTenant('other')
  await vault.createApplication('private', { rules: [rule('/mine/', 'mask')] })
  await vault.createApplication('private', { rules: [rule('/theirs/', 'mask')] }, other)
  const mine = await vault.ask('access matrix')
  t.same(
    mine.containers.map(({ container }) => container),
    ['/mine/'],
  )
  const theirs = await vault.ask('access matrix', {}, other)
  t.same(
    theirs.containers.map(({ container }) => container),
    ['/theirs/'],
  )
  t.match(theirs.tenant, { name: 'other', id: other })
})
