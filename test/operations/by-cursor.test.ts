/** Lists by cursor, while tokens are created, changed and deleted between their pages. */
import fc from 'fast-check'
import t from 'tap'
import type { Rule } from '../../src/domain/access/access.js'
import { decideBy } from '../../src/framework/caller/caller.js'
import { perform } from '../../src/framework/perform.js'
import { openTestVault, requireOperation, type TestVault } from '../support/test-vault.js'

interface Page {
  pagination: { page_size: number; next?: string }
  data: { id: string }[]
}

interface Token {
  id: string
  /** In the order of creation. */
  at: number
  type: string
  container: string
  team: string
}

const TYPES = ['token', 'us_bank_account_number']
const CONTAINERS = ['/a/', '/a/b/', '/ab/', '/c/']
const TEAMS = ['Blue', 'blue', 'RED']

type Filter = { input: Record<string, unknown>; query: string; matches(token: Token): boolean }

const filters: Filter[] = [
  { input: {}, query: '', matches: () => true },
  ...TYPES.map((type) => ({
    input: { type },
    query: `type:${type}`,
    matches: (token: Token) => token.type === type,
  })),
  ...['/', '/a/', '/c/'].map((container) => ({
    input: { container },
    query: `container:${container}`,
    matches: (token: Token) => token.container.startsWith(container),
  })),
  ...TEAMS.map((team) => ({
    input: { metadata: { team }, container: '/a/' },
    query: `metadata.team:${team} AND container:/a/`,
    matches: (token: Token) => token.team === team && token.container.startsWith('/a/'),
  })),
]

type Change =
  | { do: 'create'; type: number; container: number; team: number }
  | { do: 'delete' | 'rename'; at: number }
  /** Of the token that the cursor stands on. */
  | { do: 'delete last' }

const created = fc.record({
  do: fc.constant('create' as const),
  type: fc.nat({ max: TYPES.length - 1 }),
  container: fc.nat({ max: CONTAINERS.length - 1 }),
  team: fc.nat({ max: TEAMS.length - 1 }),
})
const changed = fc.record({ do: fc.constantFrom('delete' as const, 'rename' as const), at: fc.nat() })
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: created },
  { weight: 2, arbitrary: changed },
  { weight: 1, arbitrary: fc.constant({ do: 'delete last' as const }) },
)

/** The tokens of a vault, as they should be. */
class Model {
  readonly vault: TestVault
  alive: Token[] = []
  #serial = 0

  constructor(vault: TestVault) {
    this.vault = vault
  }

  async create(one: { type: number; container: number; team: number }): Promise<void> {
    const at = ++this.#serial
    const [type, container, team] = [TYPES[one.type]!, CONTAINERS[one.container]!, TEAMS[one.team]!]
    const input = { id: `token-${at}`, type, data: String(10_000 + at), metadata: { team } }
    await this.vault.ask('token create', { ...input, containers: [container] })
    this.alive.push({ id: input.id, at, type, container, team })
  }

  async remove(token: Token | undefined): Promise<void> {
    if (token === undefined) return
    await this.vault.ask('token delete', { id: token.id })
    this.alive = this.alive.filter((each) => each !== token)
  }

  /** Gives a token another team. */
  async rename(token: Token | undefined): Promise<void> {
    if (token === undefined) return
    const team = TEAMS[(TEAMS.indexOf(token.team) + 1) % TEAMS.length]!
    await this.vault.ask('token update', { id: token.id, metadata: { team } })
    this.alive = this.alive.map((each) => (each === token ? { ...token, team } : each))
  }
}

t.test('each token that stays is in one page, and none that was created meanwhile', async (t) => {
  const plan = fc.record({
    before: fc.array(created, { minLength: 4, maxLength: 14 }),
    between: fc.array(fc.array(change, { maxLength: 3 }), { minLength: 4, maxLength: 4 }),
    filter: fc.constantFrom(...filters),
    sizes: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
    isSearch: fc.boolean(),
    isRestricted: fc.boolean(),
  })
  const property = fc.asyncProperty(
    plan,
    async ({ before, between, filter, sizes, isSearch, isRestricted }) => {
      // A container that the rule does not cover is refused; what it covers is all that is seen.
      const isSeen = (token: Token) => !isRestricted || token.container.startsWith('/a/')
      const { container } = filter.input as { container?: string }
      if (isRestricted && container !== undefined && !container.startsWith('/a/')) return
      const vault = await openTestVault()
      const rules = [
        { priority: 1, container: '/a/', transform: 'mask', permissions: ['token:read', 'token:search'] },
      ]
      const { key } = await vault.createApplication('private', { rules: rules as never })
      const model = new Model(vault)
      for (const one of before) await model.create(one)
      const read = async (start: string | undefined, size: number) => {
        const input = {
          ...(isSearch ? { query: filter.query } : filter.input),
          size,
          ...(start ? { start } : {}),
        }
        const name = isSearch ? 'token search-after' : 'token list-after'
        return (await (isRestricted ? vault.askAs(key, name, input) : vault.ask(name, input))) as Page
      }
      const begin = [...model.alive]
      const seen: string[] = []
      let start: string | undefined
      for (let round = 0; round === 0 || start !== undefined; round++) {
        const size = sizes[round % sizes.length]!
        const here = model.alive.filter((token) => filter.matches(token) && isSeen(token))
        const { pagination, data } = await read(start, size)
        const last =
          seen.length === 0 ? Number.POSITIVE_INFINITY : Number(seen.at(-1)!.slice('token-'.length))
        const next = here.filter(({ at }) => at < last && at <= begin.length).sort((a, b) => b.at - a.at)
        const expected = next.slice(0, size).map(({ id }) => id)
        if (JSON.stringify(data.map(({ id }) => id)) !== JSON.stringify(expected))
          throw new Error(`page ${round} is ${JSON.stringify(data.map(({ id }) => id))}, not ${expected}`)
        if ((pagination.next !== undefined) !== next.length > size)
          throw new Error('next is there for no page, or missing')
        seen.push(...data.map(({ id }) => id))
        start = pagination.next
        for (const one of between[round] ?? []) {
          if (one.do === 'create') await model.create(one)
          else if (one.do === 'delete') await model.remove(model.alive[one.at % model.alive.length])
          else if (one.do === 'rename') await model.rename(model.alive[one.at % model.alive.length])
          else await model.remove(model.alive.find(({ id }) => id === seen.at(-1)))
        }
      }
      const kept = begin.filter(
        (token) => model.alive.includes(token) && filter.matches(token) && isSeen(token),
      )
      for (const { id } of kept)
        if (seen.filter((each) => each === id).length !== 1) throw new Error(`${id} is not there once`)
      if (new Set(seen).size !== seen.length) throw new Error('a token is there twice')
      await vault.app.close()
    },
  )
  await fc.assert(property, { numRuns: 80 })
  t.pass('no page repeats, misses or invents a token')
})

t.test('a cursor is opened only as it was given, by whoever is of its tenant', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const other = await vault.createTenant('other')
  for (const tenant of [undefined, other])
    for (let at = 0; at < 3; at++)
      await vault.ask('token create', { id: `token-${at}`, type: 'token', data: at }, tenant)
  const first = async (tenant?: string) =>
    (await vault.ask('token list-after', { size: 1 }, tenant)).pagination.next!
  const cursor = await first()
  const refused = (start: string, tenant?: string) =>
    t.rejects(
      vault.ask('token list-after', { start, size: 1 }, tenant),
      { code: 'validation', errors: { start: [/same filters/] } },
      start,
    )
  await refused(cursor, other)
  await refused(await first(other))
  for (let at = 0; at < cursor.length; at++) {
    const digit = (Number.parseInt(cursor[at]!, 16) ^ (1 + (at % 15))).toString(16)
    await refused(cursor.slice(0, at) + digit + cursor.slice(at + 1))
  }
  const near = [cursor.slice(2), `${cursor}00`, cursor.toUpperCase(), ` ${cursor}`]
  for (const start of ['', '0'.repeat(cursor.length), '../x', ...near]) await refused(start)
  await t.rejects(vault.ask('token list-after', { start: '0'.repeat(100_000) }), {
    code: 'validation',
    message: /at most 200/,
  })
  t.notMatch(cursor, Buffer.from('token-').toString('hex'))
  t.not(await first(), cursor, 'which tells nobody where it stands')
  const { key } = await vault.createApplication('private', { permissions: ['token:read'] })
  t.match(await vault.askAs(key, 'token list-after', { start: cursor }), {
    data: [{ id: 'token-1' }, { id: 'token-0' }],
  })
})

t.test('pages are full for a caller whose rules are about the ids of tokens', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  for (let at = 0; at < 30; at++)
    await vault.ask('token create', {
      id: `${at % 3 === 0 ? 'mine' : 'other'}-${at}`,
      type: 'token',
      data: at,
    })
  const conditions: Rule['conditions'] = [{ attribute: 'id', operator: 'starts_with', value: 'mine-' }]
  const rule: Rule = {
    priority: 1,
    conditions,
    transform: 'mask',
    permissions: ['token:read', 'token:search'],
  }
  const owner = await vault.app.owner({ reveal: false })
  const caller = { ...owner, ...decideBy({ rules: [rule], permissions: [] }) }
  for (const name of ['token list-after', 'token search-after']) {
    const sizes: number[] = []
    const ids: string[] = []
    let start: string | undefined
    do {
      const input = { size: 4, ...(start === undefined ? {} : { start }) }
      const { result } = await perform(vault.app, caller, requireOperation(name), input, 'trace')
      const { data, pagination } = result as Page
      sizes.push(data.length)
      ids.push(...data.map(({ id }) => id))
      start = pagination.next
    } while (start !== undefined)
    t.strictSame(sizes, [4, 4, 2], name)
    const mine = Array.from({ length: 10 }, (_, at) => `mine-${27 - 3 * at}`)
    t.strictSame(ids, mine, name)
  }
})
