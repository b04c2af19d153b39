/**
 * Access rules in their short form: the commands that accept this form, and the output that contains rules in this
 * form.
 */
import { ruleOf, testVault } from './home.js'

const CARDS = '/pci/ mask token:read'

testVault('--rule accepts the short form, JSON and files', async (t, home) => {
  const create = async (...rules: string[]) => {
    const words = rules.flatMap((rule) => ['--rule', rule])
    return (await home.json(['app', 'create', '--name', 'a', '--type', 'private', ...words])).rules
  }
  const cards = ruleOf('mask', { container: '/pci/' })
  t.same(await create(CARDS), [cards])
  t.same(await create(JSON.stringify(cards)), [cards])
  const [first, second, third] = ['/pci/', '/general/', '/'].map((container, at) =>
    ruleOf('mask', { container, priority: at + 1 }),
  )
  t.same(await create('/pci/,/general/ mask token:read', '/ mask token:read'), [first, second, third])
  t.same(
    await create(JSON.stringify({ ...cards, priority: 4 }), '/ mask token:read'),
    [ruleOf('mask', { container: '/pci/', priority: 4 }), ruleOf('mask', { priority: 5 })],
    'a rule without a number follows the rule before it',
  )
  home.write('rules.txt', '/pci/ mask token:read\n2: /general/ mask token:read\n')
  home.write('rules.json', JSON.stringify([first, second]))
  t.same(await create('@rules.txt'), [first, second])
  t.same(await create('@rules.json'), [first, second])

  const { id } = await home.json('app create --name b --type private --permission token:read')
  const update = ['app', 'update', id, '--name', 'b', '--rule', '5: / reveal token:read,token:use # shop']
  const permissions = ['token:read', 'token:use'] as const
  t.same((await home.json(update)).rules, [
    ruleOf('reveal', { priority: 5, permissions: [...permissions], description: 'shop' }),
  ])

  const twice = await home.run([
    'app',
    'create',
    '--name',
    'a',
    '--type',
    'private',
    '--rule',
    `2: ${CARDS}`,
    '--rule',
    `2: ${CARDS}`,
  ])
  t.match(twice, { code: 2, stderr: 'rules[1].priority: must be unique' })
})

testVault('a session can be authorized by rules with conditions in the short form', async (t, home) => {
  const browser = await home.createApp({ type: 'public', permissions: ['token:create'] })
  const shop = await home.createApp({ permissions: ['token:read', 'token:use'] })
  const asBrowser = { env: { COFFER_API_KEY: browser.key } }
  const asShop = { env: { COFFER_API_KEY: shop.key } }
  await home.createToken({ id: 'card-1', mask: 'masked' })
  await home.createToken({ id: 'other', mask: 'masked' })
  const { session_key, nonce } = await home.json('session create', asBrowser)
  home.write('nonce.txt', nonce)
  const words = [
    'session',
    'authorize',
    '--nonce',
    '@nonce.txt',
    '--rule',
    'id=card-* reveal token:read,token:use',
  ]
  t.equal((await home.run(words, asShop)).code, 0)
  const asSession = { env: { COFFER_API_KEY: session_key } }
  t.equal((await home.json('token get card-1 --fields data', asSession)).data, 'masked')
  t.equal((await home.run('token get other', asSession)).code, 4)
})

testVault(
  'a wrong access rule is refused, and the error names the wrong part of the rule',
  async (t, home) => {
    const refuse = async (rule: string, ...more: string[]) => {
      const words = ['app', 'create', '--name', 'a', '--type', 'private', '--rule', rule, ...more]
      const { code, stderr } = await home.run(words)
      t.equal(code, 2, rule)
      return stderr
    }
    t.equal(
      await refuse('/pci/ maks token:read'),
      `error: --rule '/pci/ maks token:read': "maks" is not a transform; did you mean mask?\n`,
    )
    t.match(
      await refuse('id=card-1 mask token:read'),
      'only rules of sessions have conditions. Give a container',
    )
    t.match(
      await refuse('/pci/ mask reactor:read'),
      /rules\[0\].permissions\[0\]: may not be held by a private/,
    )
    const unquoted = await refuse('/pci/', 'mask', 'token:read', '--no-create-key')
    t.match(unquoted, `Put the rule between quotes: --rule '/pci/ mask token:read'`)
    const other = await refuse(CARDS, '--no-create-key', 'more')
    t.notMatch(other, 'Put the rule')
  },
)

testVault(
  'access rules are printed in the short form, and the printed rules can be pasted back',
  async (t, home) => {
    const rules = ['/pci/ mask token:read,token:search # help desk', '/ reveal token:create']
    const words = rules.flatMap((rule) => ['--rule', rule])
    const made = await home.json(['app', 'create', '--name', 'support', '--type', 'private', ...words])
    const shown = await home.run('app get support', { columns: 80 })
    const printed = ['  1: /pci/ mask token:read,token:search # help desk', '  2: / reveal token:create']
    t.match(shown.stdout, `rules:\n${printed.join('\n')}\n`)
    const again = printed.flatMap((line) => ['--rule', line])
    const updated = await home.json(['app', 'update', 'support', '--name', 'support', ...again])
    t.same(updated.rules, made.rules)
    const one = await home.run(['app', 'update', 'support', '--name', 'support', '--rule', CARDS], {
      columns: 80,
    })
    t.match(one.stdout, /^rules: +1: \/pci\/ mask token:read$/m)
    t.match((await home.run('app list --fields rules', { columns: 80 })).stdout, '1: /pci/ mask token:read')
    t.match(await home.json('app get support'), { rules: [ruleOf('mask', { container: '/pci/' })] })
    t.match((await home.run('app get support --fields rules.container', { columns: 80 })).stdout, '/pci/')
  },
)

testVault('a table of applications shows the rights of each application', async (t, home) => {
  await home.createApp({ name: 'plain', permissions: ['token:create', 'token:read'] })
  const rules = [ruleOf('reveal', { priority: 2 }), ruleOf('mask', { container: '/pci/' })]
  await home.createApp({ name: 'ruled', rules })
  await home.createApp({ name: 'both', rules: [rules[1]], permissions: ['token:create'] })
  const { stdout } = await home.run('app list', { columns: 200 })
  t.same(
    stdout
      .split('\n')
      .slice(0, 4)
      .map((line) => line.split(/ {2,}/).slice(1, 4)),
    [
      ['name', 'type', 'rights'],
      ['both', 'private', '/pci/ mask token:read; everywhere: token:create'],
      ['ruled', 'private', '2 rules: /pci/ mask token:read; / reveal token:read'],
      ['plain', 'private', 'token:create, token:read'],
    ],
  )
  const narrow = await home.run('app list', { columns: 80 })
  t.match(narrow.stdout, /ruled +private +2 rules: /)
  const csv = (await home.run('app list -o csv')).stdout
  t.match(csv, /"rules","created_at","expires_at"\n.*\n.*"ruled","private","\[\]","\[\{""priority"":2/)
})

testVault('a question for rules accepts the short form', async (t, home) => {
  const { code, stderr, stdout } = await home.run('app create --name a --type private -o json', {
    columns: 100,
    answers: [
      ['? permissions or rules', '\u001b[B\r'],
      ['? rules (such as /pci/ mask token:read, or JSON)', '/pci/ maks token:read\r'],
      ['"maks" is not a transform; did you mean mask?', ''.padEnd(30, '\u007f')],
      ['? rules', `${CARDS}\r`],
    ],
  })
  t.equal(code, 0, stderr)
  t.same(JSON.parse(stdout).rules, [ruleOf('mask', { container: '/pci/' })])
})
