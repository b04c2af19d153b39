/** Lists by cursor while tokens are created, changed and deleted between two pages. */
import fc from 'fast-check'
import t from 'tap'
import type { Rule } from '../../src/domain/access/access.js'
import { decideBy } from '../../src/framework/caller/caller.js'
import { perform } from '../../src/framework/perform.js'
import { openTestVault, requireOperation } from '../support/test-vault.js'

interface Page {
  pagination: { page_size: number; next?: string }
  data: { id: string }[]
}

interface Token {
  id: string
  /** Position of the token in the order in which the tokens were created. */
  at: number
  type: string
  container: string
  team: string
}

const TYPES = ['token', 'us_bank_account_number'] as const
const CONTAINERS = ['/a/', '/a/b/', '/ab/', '/c/'] as const
const TEAMS = ['Blue', 'blue', 'RED'] as const

interface Filter {
  input: { container?: string; [name: string]: unknown }
  query: string
  matches(token: Token): boolean
}

const FILTERS: Filter[] = [
  { input: {}, query: '', matches: () => true },
  { input: { type: 'token' }, query: 'type:token', matches: ({ type }) => type === 'token' },
  ...['/', '/a/'].map((path) => ({
    input: { container: path },
    query: `container:${path}`,
    matches: ({ container }: Token) => container.startsWith(path),
  })),
  {
    input: { metadata: { team: 'blue' }, container: '/a/' },
    query: 'metadata.team:blue AND container:/a/',
    matches: ({ team, container }) => team === 'blue' && container.startsWith('/a/'),
  },
]

const granted: Pick<Rule, 'priority' | 'transform' | 'permissions'> = {
  priority: 1,
  transform: 'mask',
  permissions: ['token:read', 'token:search'],
}

/** An access rule and the tokens that it shows. */
interface Restriction {
  rule: Rule
  shows(token: Token): boolean
  /**
   * Returns whether the rule grants anything on the container. If the rule grants nothing, a filter by the container is
   * refused.
   */
  takes(container: string): boolean
}

const isBelow = (container: string) => container.startsWith('/a/')
const RESTRICTIONS: Restriction[] = [
  { rule: { ...granted, container: '/a/' }, shows: ({ container }) => isBelow(container), takes: isBelow },
  {
    rule: { ...granted, conditions: [{ attribute: 'id', operator: 'starts_with', value: 'token-1' }] },
    shows: ({ id }) => id.startsWith('token-1'),
    takes: () => false,
  },
]

const created = fc.record({
  do: fc.constant('create' as const),
  type: fc.constantFrom(...TYPES),
  container: fc.constantFrom(...CONTAINERS),
  team: fc.constantFrom(...TEAMS),
})
/** In `delete last`, the last token is the token that the cursor points to. */
const changed = fc.record({ do: fc.constantFrom('delete', 'rename', 'delete last'), at: fc.nat() })
const plan = fc.record({
  before: fc.array(created, { minLength: 4, maxLength: 14 }),
  between: fc.array(fc.array(fc.oneof(created, changed), { maxLength: 3 }), { minLength: 4, maxLength: 4 }),
  filter: fc.constantFrom(...FILTERS),
  sizes: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
  isSearch: fc.boolean(),
  restriction: fc.option(fc.constantFrom(...RESTRICTIONS), { nil: undefined }),
})

type Plan = typeof plan extends fc.Arbitrary<infer P> ? P : never

t.test(
  'each token that is not deleted is in exactly one page, and no page has a token that was created meanwhile',
  async (t) => {
    const property = async (planned: Plan) => {
      const { before, between, filter, sizes, isSearch, restriction } = planned
      const { container } = filter.input
      if (restriction !== undefined && container !== undefined && !restriction.takes(container)) return
      const isWanted = (token: Token) => filter.matches(token) && restriction?.shows(token) !== false
      const { app, ask } = await openTestVault()
      const owner = await app.owner({ reveal: true })
      const caller = restriction
        ? { ...owner, ...decideBy({ rules: [restriction.rule], permissions: [] }) }
        : owner
      let alive: Token[] = []
      let serial = 0
      const create = async ({ type, container, team }: Omit<Token, 'id' | 'at'>) => {
        const at = ++serial
        const id = `token-${at}`
        const data = String(10_000 + at)
        await ask('token create', { id, type, data, metadata: { team }, containers: [container] })
        alive.push({ id, at, type, container, team })
      }
      const remove = async (token: Token | undefined) => {
        if (token === undefined) return
        await ask('token delete', { id: token.id })
        alive = alive.filter((each) => each !== token)
      }
      const rename = async (token: Token | undefined) => {
        if (token === undefined) return
        const team = TEAMS[(TEAMS.indexOf(token.team as 'RED') + 1) % TEAMS.length]!
        await ask('token update', { id: token.id, metadata: { team } })
        alive = alive.map((each) => (each === token ? { ...token, team } : each))
      }
      for (const one of before) await create(one)
      const operation = requireOperation(isSearch ? 'token search-after' : 'token list-after')
      const begin = [...alive]
      const seen: string[] = []
      let start: string | undefined
      for (let round = 0; round === 0 || start !== undefined; round++) {
        const size = sizes[round % sizes.length]!
        const last = Number(seen.at(-1)?.slice('token-'.length) ?? Number.POSITIVE_INFINITY)
        const next = alive.filter((token) => isWanted(token) && token.at < last && token.at <= begin.length)
        const input = {
          ...(isSearch ? { query: filter.query } : filter.input),
          size,
          ...(start && { start }),
        }
        const { data, pagination } = (await perform(app, caller, operation, input, 'trace')).result as Page
        const ids = data.map(({ id }) => id)
        t.strictSame(
          ids,
          next
            .map(({ id }) => id)
            .reverse()
            .slice(0, size),
          `page ${round}`,
        )
        t.equal(pagination.next !== undefined, next.length > size)
        seen.push(...ids)
        start = pagination.next
        for (const one of between[round] ?? []) {
          if ('team' in one) await create(one)
          else if (one.do === 'delete') await remove(alive[one.at % alive.length])
          else if (one.do === 'rename') await rename(alive[one.at % alive.length])
          else await remove(alive.find(({ id }) => id === seen.at(-1)))
        }
      }
      const kept = begin.filter((token) => alive.includes(token) && isWanted(token))
      t.ok(kept.every(({ id }) => seen.includes(id)) && new Set(seen).size === seen.length)
      await app.close()
    }
    await fc.assert(fc.asyncProperty(plan, property), { numRuns: 80 })
  },
)

t.test('a cursor is accepted only if it is unchanged, and only in the tenant that got it', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const other = await vault.createTenant('other')
  for (const tenant of [undefined, other])
    for (let at = 0; at < 3; at++)
      await vault.ask('token create', { id: `token-${at}`, type: 'token', data: at }, tenant)
  const first = async (tenant?: string) =>
    (await vault.ask('token list-after', { size: 1 }, tenant)).pagination.next!
  const cursor = await first()
  const error = { code: 'validation', errors: { start: [/same filters/] } }
  const refused = (start: string, tenant?: string) =>
    t.rejects(vault.ask('token list-after', { start, size: 1 }, tenant), error, start)
  await refused(cursor, other)
  await refused(await first(other))
  for (let at = 0; at < cursor.length; at++) {
    const digit = (Number.parseInt(cursor[at]!, 16) ^ (1 + (at % 15))).toString(16)
    await refused(cursor.slice(0, at) + digit + cursor.slice(at + 1))
  }
  const near = [cursor.slice(2), `${cursor}00`, cursor.toUpperCase(), ` ${cursor}`]
  for (const start of ['0'.repeat(cursor.length), '../x', ...near]) await refused(start)
  t.notMatch(cursor, Buffer.from('token-').toString('hex'))
  t.not(await first(), cursor, 'two cursors of the same position have different texts')
  const { key } = await vault.createApplication('private', { permissions: ['token:read'] })
  t.match(await vault.askAs(key, 'token list-after', { start: cursor }), {
    data: [{ id: 'token-1' }, { id: 'token-0' }],
  })
})
