/** With `--all`, every list prints all of its pages. */
import t from 'tap'
import { hasCommand } from '../../src/cli/command-tree.js'
import { isPaged } from '../../src/framework/page.js'
import { registry } from '../../src/operations/all.js'
import { createVaultHome, type Home, testVault } from './home.js'

/** The required arguments of lists. */
const ARGS: Readonly<Record<string, readonly string[]>> = { 'token children': ['parent'] }
const PAGED = registry.operations.filter((each) => hasCommand(each) && isPaged(each.input))

/** Fills a vault with at least two records of every kind that has a list. */
async function fill(home: Home): Promise<void> {
  const make = async (line: string, ...bodies: object[]) => {
    for (const body of bodies) await home.json(line, { stdin: JSON.stringify(body) })
  }
  const card = await home.json('token create', {
    stdin: JSON.stringify({ type: 'card', data: { number: '4200000000000002' } }),
  })
  const session = { token_id: card.id, type: 'merchant' }
  await make('3ds create', session, session)
  const url = 'https://example.com/events'
  await make('webhook create', { name: 'w', url, events: ['token.created'] })
  for (const id of ['parent', 'one', 'two']) await home.createToken({ id })
  await home.run('token link parent one')
  await home.run('token link parent two')
  for (const name of ['a', 'b']) await home.createApp({ name, permissions: ['token:read'] })
  const code = 'module.exports = async () => ({})'
  const draft = { type: 'private', name: 'f', code }
  await make('formula create', draft, { ...draft, name: 'g' })
  const formula = { id: (await home.json('formula list')).data[0].id }
  await make('reactor create', { name: 'r', formula }, { name: 's', formula })
  await make('tenant merchant create', { name: 'm' }, { name: 'n' })
  const proxy = { name: 'p', destination_url: 'https://example.com' }
  await make('proxy create', proxy, { ...proxy, name: 'q' })
  await make('invite create', { email: 'a@example.com' }, { email: 'b@example.com' })
  await make('invite create', { email: 'c@example.com' }, { email: 'd@example.com' })
  for (const mail of ['c@example.com', 'd@example.com']) {
    const { link } = await home.json(['invite', 'outbox', mail])
    await home.json(['invite', 'accept', link, '--first-name', 'C', '--last-name', 'D'])
  }
}

t.test('every list prints all of its pages, as a table, as JSON and as lines', async (t) => {
  const home = await createVaultHome(t)
  await fill(home)
  t.ok(PAGED.length > 10)
  for (const { name } of PAGED) {
    const list = [...name.split(' '), ...(ARGS[name] ?? []), '--size', '1']
    const lines = async (more: readonly string[]) =>
      (await home.run([...list, ...more])).stdout.split('\n').length - 1
    t.equal(await lines(['-o', 'id']), 1, `one page of ${name} has one row`)
    const count = await lines(['-o', 'id', '--all'])
    t.ok(count > 1, `all pages of ${name} have more than one row`)
    t.ok((await lines(['-o', 'ndjson', '--all'])) >= count, `all rows of ${name} are printed with -o ndjson`)
    t.ok((await lines(['-o', 'table', '--all'])) >= count, `all rows of ${name} are printed with -o table`)
    t.ok(
      (await home.json([...list, '--all'])).data.length >= count,
      `all rows of ${name} are printed with -o json`,
    )
  }
})

testVault('a single webhook delivery is printed completely, with and without --all', async (t, home) => {
  await fill(home)
  const [delivery] = (await home.json('webhook deliveries --all')).data
  t.equal((await home.json(['webhook', 'deliveries', delivery.id, '--all'])).id, delivery.id)
  t.equal((await home.json(['webhook', 'deliveries', delivery.id])).id, delivery.id)
})
