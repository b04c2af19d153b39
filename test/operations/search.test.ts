/**
 * Searches in data by callers who have no right to see the data. The file `token-search.json` has the cases of other
 * searches.
 */
import fc from 'fast-check'
import t from 'tap'
import type { Rule } from '../../src/domain/access/access.js'
import type { Permission, Transform } from '../../src/domain/access/permissions.js'
import { openTestVault, setSetting, type TestVault } from '../support/test-vault.js'

interface Token {
  id: string
  fingerprint: string
}

/** Creates two tokens for each set of containers. The tokens of a pair differ only in their data. */
async function createTwins({ ask }: TestVault, containers: readonly string[][]): Promise<Token[]> {
  const twins: Token[] = []
  for (const [index, set] of containers.entries())
    for (const data of ['left', 'right']) {
      const input = { id: `${data}-${index}`, type: 'token', data, containers: set }
      twins.push((await ask('token create', { ...input, search_indexes: ['{{ data }}'] })) as Token)
    }
  return twins
}

t.test(
  'if search.masked_data is false, no caller learns anything about data that is hidden from the caller',
  async (t) => {
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
      t.equal(pagination.total_items, data.length, `the total of ${query} reveals no more than the rows`)
      return data.map(({ id }) => id)
    }
    t.equal((await find('data:left')).length, 6, 'the setting is true by default')
    await setSetting(app, 'search.masked_data', 'false')
    t.strictSame(await find('data:left'), ['left-1', 'left-0'])
    t.equal((await find('NOT data:left')).length, 10, 'tokens with hidden data cannot be distinguished')
    t.strictSame(await find(`fingerprint:${twins[4]!.fingerprint}`), ['left-1', 'left-0'])
    t.strictSame(
      await find('data:left', plain.key),
      [],
      'a caller with plain permissions sees masked data, so its search finds nothing in the data',
    )
    t.equal((await find('!data:left', plain.key)).length, 12)
    t.equal((await find('data:left', '')).length, 6, 'the owner may see all data')
    const page = await createApplication('public', { permissions: ['token:create'] })
    const backend = await createApplication('private', { rules: [rule(1, '/', 'reveal')] })
    const { session_key, nonce } = await askAs(page.key, 'session create')
    const conditions = [{ attribute: 'id', operator: 'starts_with', value: 'left' }]
    const conditional = { priority: 1, conditions, transform: 'reveal', permissions }
    await askAs(backend.key, 'session authorize', { nonce, rules: [conditional] })
    t.strictSame(await find('data:left', session_key), [], 'a rule about ids grants nothing on containers')
    t.equal((await find('NOT data:left', session_key)).length, 6)
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
    t.ok(told > 20, `${told} pairs with visible data were distinguished`)
  },
)
