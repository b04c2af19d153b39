/** Search, against a filter that looks at every token. */
import fc from 'fast-check'
import t from 'tap'
import type { Rule } from '../../src/domain/access/access.js'
import type { Permission, Transform } from '../../src/domain/access/permissions.js'
import { openTestVault, START, setSetting, type TestVault } from '../support/test-vault.js'

const DAY_MS = 24 * 60 * 60 * 1000
const DAYS = ['2030-01-15', '2030-01-16', '2030-01-17', '2030-01-18']

interface Token {
  id: string
  type: string
  fingerprint: string
  containers: string[]
  metadata: Record<string, string>
  created_by: string
  modified_by?: string
  created_at: string
  modified_at?: string
}

interface Found {
  token: Token
  /** What it can be searched by. */
  indexed: string[]
}

/** A query as text, and what it means for a token. */
interface Query {
  text: string
  matches(found: Found): boolean
}

const equal = (left: string, right: string) => left.toLowerCase() === right.toLowerCase()
const day = (date: string | undefined) => date?.slice(0, DAYS[0]!.length)

const quoted = (text: string) => `"${text}"`
const spelled = (text: string) => (/[\s()]/.test(text) ? quoted(text) : text)

function term(field: string, value: string, matches: Query['matches']): fc.Arbitrary<Query> {
  return fc.constantFrom(
    { text: `${field}:${spelled(value)}`, matches },
    { text: `${field}:${quoted(value)}`, matches },
  )
}

const type = fc.constantFrom('token', 'card_number', 'nothing')
const city = fc.constantFrom('Ulm', 'ulm', 'New York', 'Oslo')
const word = fc.constantFrom('alpha', 'ALPHA', 'beta gamma', '7', 'delta')
const path = fc.constantFrom('/', '/a/', '/a/b/', '/ab/', '/c/')
const prefix = fc.constantFrom('*', '/*', '/a*', '/a/*', '/a/b*', '/x/*')

const terms = fc.oneof(
  type.chain((value) => term('type', value, ({ token }) => token.type === value)),
  city.chain((value) => term('metadata.city', value, ({ token }) => equal(token.metadata.city ?? '', value))),
  city.chain((value) =>
    term('metadata."born in"', value, ({ token }) => equal(token.metadata['born in'] ?? '', value)),
  ),
  word.chain((value) => term('data', value, ({ indexed }) => indexed.some((each) => equal(each, value)))),
  path.chain((value) => term('container', value, ({ token }) => token.containers.includes(value))),
  prefix.chain((value) => {
    const begins = (each: string) => each.startsWith(value.slice(0, -1))
    return term('container', value, ({ token }) => token.containers.some(begins))
  }),
  fc.nat({ max: 15 }).chain((at) => term('id', `token-${at}`, ({ token }) => token.id === `token-${at}`)),
  range('created_at', ({ token }) => day(token.created_at)),
  range('modified_at', ({ token }) => day(token.modified_at)),
)

/** By whole days, whose texts are in the order of time. */
function range(field: string, read: (found: Found) => string | undefined): fc.Arbitrary<Query> {
  const end = fc.option(fc.constantFrom(...DAYS), { nil: '*' })
  return fc.tuple(end, end, fc.boolean()).map(([from, to, isInclusive]) => ({
    text: isInclusive ? `${field}:[${from} TO ${to}]` : `${field}:{${from} TO ${to}}`,
    matches: (found: Found) => {
      const at = read(found)
      if (at === undefined) return false
      const isAfter = from === '*' || (isInclusive ? at >= from : at > from)
      return isAfter && (to === '*' || (isInclusive ? at <= to : at < to))
    },
  }))
}

const { query } = fc.letrec<{ query: Query }>((tie) => {
  const parts = fc.array(tie('query'), { minLength: 2, maxLength: 3 })
  const join = (word: string, matches: (each: Query[], found: Found) => boolean) =>
    parts.map((each) => ({
      text: each.map(({ text }) => `(${text})`).join(` ${word} `),
      matches: (found: Found) => matches(each, found),
    }))
  return {
    query: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      { weight: 3, arbitrary: terms },
      join('AND', (each, found) => each.every(({ matches }) => matches(found))),
      join('OR', (each, found) => each.some(({ matches }) => matches(found))),
      fc.tuple(fc.constantFrom('NOT ', '!', '-'), tie('query')).map(([not, { text, matches }]) => ({
        text: `${not}(${text})`,
        matches: (found: Found) => !matches(found),
      })),
    ),
  }
})

t.test('a search finds what a look at every token finds', async (t) => {
  const { ask, clock } = await openTestVault()
  const known: Found[] = []
  const cities = ['Ulm', 'ulm', 'New York', undefined]
  const words = ['alpha', 'Beta Gamma', '7', 'omega']
  const sets = [['/'], ['/a/'], ['/a/b/', '/c/'], ['/ab/']]
  for (let index = 0; index < 16; index++) {
    clock.now = START + Math.floor(index / 4) * DAY_MS
    const indexed = [words[index % 4]!, words[(index * 3) % 4]!]
    const isCard = index % 5 === 0
    const given = cities[(index * 7) % 4]
    await ask('token create', {
      id: `token-${index}`,
      type: isCard ? 'card_number' : 'token',
      data: isCard ? '4242424242424242' : { words: indexed },
      containers: sets[Math.floor(index / 2) % 4],
      search_indexes: isCard ? [] : ['{{ data.words[0] }}', '{{ data.words[1] }}'],
      ...(given === undefined ? {} : { metadata: { city: given, 'born in': given } }),
    })
    known.unshift({ token: {} as Token, indexed: isCard ? [] : indexed })
  }
  clock.now = START + 3 * DAY_MS
  for (const index of [2, 3, 10])
    await ask('token update', { id: `token-${index}`, metadata: { seen: 'yes' } })
  const all = await ask('token list', { size: 100 })
  all.data.forEach((token, at) => {
    known[at]!.token = { ...token, metadata: token.metadata ?? {} }
  })
  let found = 0
  const property = fc.asyncProperty(query, async ({ text, matches }) => {
    const expected = known.filter(matches).map(({ token }) => token.id)
    const page = await ask('token search', { query: text, size: 5 })
    t.strictSame(
      page.data.map(({ id }) => id),
      expected.slice(0, 5),
      text,
    )
    t.equal(page.pagination.total_items, expected.length, text)
    if (expected.length > 0 && expected.length < known.length) found++
  })
  await fc.assert(property, { numRuns: 400 })
  t.ok(found > 80, `${found} queries told tokens apart`)
})

/** Pairs of tokens that differ in their data alone, one pair for each of the containers. */
async function createTwins({ ask }: TestVault, containers: readonly string[][]): Promise<Token[]> {
  const twins: Token[] = []
  for (const [index, set] of containers.entries())
    for (const data of ['left', 'right']) {
      const input = { id: `${data}-${index}`, type: 'token', data, containers: set }
      twins.push((await ask('token create', { ...input, search_indexes: ['{{ data }}'] })) as Token)
    }
  return twins
}

t.test('with search.masked_data false nobody learns of data that they are not shown', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { app, ask, askAs, createApplication } = vault
  const permissions: Permission[] = ['token:read', 'token:search']
  const rule = (priority: number, container: string, transform: Transform): Rule => ({
    priority,
    container,
    transform,
    permissions,
  })
  const rules = [rule(1, '/mask/', 'mask'), rule(2, '/redact/', 'redact'), rule(3, '/', 'reveal')]
  const { key } = await createApplication('private', { rules })
  const plain = await createApplication('private', { permissions })
  const shown = [['/a/'], ['/']]
  const hidden = [['/mask/'], ['/redact/a/'], ['/a/', '/mask/'], ['/redact/', '/mask/b/']]
  const twins = await createTwins(vault, [...shown, ...hidden])
  const find = async (query: string, as: string | undefined = key) => {
    const input = { query, size: 100 }
    const answer = as === '' ? await ask('token search', input) : await askAs(as, 'token search', input)
    const { data, pagination } = answer as { data: Token[]; pagination: { total_items: number } }
    t.equal(pagination.total_items, data.length, `the total of ${query} tells no more`)
    return data.map(({ id }) => id)
  }
  t.equal((await find('data:left')).length, 6, 'true is what it is when nobody said')
  await setSetting(app, 'search.masked_data', 'false')
  t.strictSame(await find('data:left'), ['left-1', 'left-0'])
  t.equal((await find('NOT data:left')).length, 10, 'of what is hidden, none is told apart')
  t.strictSame(await find(`fingerprint:${twins[4]!.fingerprint}`), ['left-1', 'left-0'])
  t.strictSame(await find('data:left', plain.key), [], 'plain permissions show masks')
  t.equal((await find('!data:left', plain.key)).length, 12)
  t.equal((await find('data:left', '')).length, 6, 'the owner may see everything')
  for (const input of [{ query: 'data:left' }, { query: `fingerprint:${twins[4]!.fingerprint}` }]) {
    const { data } = await askAs(key, 'token search-after', input)
    t.strictSame(
      data.map(({ id }) => id),
      ['left-1', 'left-0'],
    )
  }

  const atom = fc.constantFrom(
    'data:left',
    'data:RIGHT',
    ...twins.slice(0, 2).map(({ fingerprint }) => `fingerprint:${fingerprint}`),
    'container:/mask/*',
    'type:token',
  )
  const { query } = fc.letrec<{ query: string }>((tie) => {
    const both = fc.tuple(tie('query'), fc.constantFrom('AND', 'OR'), tie('query'))
    return {
      query: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        atom,
        both.map(([a, by, b]) => `(${a}) ${by} (${b})`),
        tie('query').map((each) => `NOT (${each})`),
      ),
    }
  })
  let told = 0
  const property = fc.asyncProperty(query, async (text) => {
    const found = new Set(await find(text))
    for (const index of [...shown, ...hidden].keys()) {
      const isToldApart = found.has(`left-${index}`) !== found.has(`right-${index}`)
      if (index >= shown.length) t.notOk(isToldApart, text)
      else if (isToldApart) told++
    }
  })
  await fc.assert(property, { numRuns: 150 })
  t.ok(told > 20, `${told} twins whose data is shown were told apart`)
})
