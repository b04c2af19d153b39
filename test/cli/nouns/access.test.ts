/** The access matrix on the command line: tables that fit the terminal, lines for programs, and hostile names. */
import { parse } from 'csv-parse/sync'
import { measureWidth } from '../../../src/cli/output/display.js'
import { type Home, ruleOf, testVault } from '../home.js'

const MASK = { number: '{{ data.number | reveal_last: 4 }}' }

async function fill(home: Home): Promise<void> {
  await home.createToken({ type: 'card', data: { number: '5555555555554444' }, mask: MASK })
  await home.createApp({ name: 'support', rules: [ruleOf('mask', { container: '/pci/' })] })
  await home.createApp({ name: 'backend', rules: [ruleOf('reveal'), ruleOf('redact', { priority: 2 })] })
}

testVault('a table has a row for each application and a column for each container', async (t, home) => {
  await fill(home)
  const { code, stdout, stderr } = await home.run('access matrix', { columns: 150 })
  t.equal(code, 0)
  t.same(
    stdout.split('\n').map((line) => line.split(/ {2,}/)),
    [
      ['application', '/', '/pci/', '/pci/high/'],
      ['backend', 'plain 4242424242424242', 'plain 4242424242424242', 'plain 4242424242424242'],
      ['support', 'no access', 'masked XXXXXXXXXXXX4242', 'masked XXXXXXXXXXXX4242'],
      [''],
    ],
  )
  t.match(stderr, /for the permission token:read\. The values are examples/)
  const filtered = await home.run('access matrix --application support --container /pci/high/', {
    columns: 80,
  })
  t.equal(
    filtered.stdout,
    'application  /pci/high/\nsupport      masked XXXXXXXXXXXX4242\n',
    'names and containers filter',
  )
  t.match(
    (await home.run('access matrix --application nobody', { columns: 80 })).stderr,
    /No application matches/,
  )
})

testVault('on 80 columns, a wide matrix is printed as several tables without cut cells', async (t, home) => {
  await fill(home)
  const rules = Array.from({ length: 12 }, (_, at) =>
    ruleOf('mask', { priority: at + 1, container: `/customers/${at}/` }),
  )
  await home.createApp({ name: 'many', rules })
  const { stdout } = await home.run('access matrix', { columns: 80 })
  const lines = stdout.split('\n')
  t.same(
    lines.filter((line) => measureWidth(line) > 80),
    [],
  )
  t.notMatch(stdout, '…')
  const heads = lines.filter((line) => line.startsWith('application '))
  t.ok(heads.length > 3, `${heads.length} tables`)
  t.equal(new Set(heads.flatMap((head) => head.split(/ +/).slice(1))).size, 15, 'every container is shown')
  t.equal(lines.filter((line) => line.startsWith('support ')).length, heads.length)
  const narrow = await home.run('access matrix', { columns: 40 })
  t.same(
    narrow.stdout.split('\n').filter((line) => measureWidth(line) > 40),
    [],
    'also on 40 columns',
  )
})

testVault('CSV has one line for each application and container', async (t, home) => {
  await fill(home)
  const { stdout } = await home.run('access matrix -o csv')
  const rows = parse(stdout, { columns: true }) as Record<string, string>[]
  t.equal(rows.length, 6)
  t.match(
    rows.find(({ application, container }) => application === 'support' && container === '/pci/high/'),
    {
      ...{ application_type: 'private', sees: 'masked', by: 'rule', rule: '1', description: '' },
      ...{ permission: 'token:read', tenant: 'default', example: '{"number":"XXXXXXXXXXXX4242"}' },
    },
  )
  const [line] = (await home.run('access matrix -o ndjson --fields application,container,sees')).stdout.split(
    '\n',
  )
  t.equal(line, '{"application":"backend","container":"/","sees":"plain"}')
  t.match(await home.json('access matrix'), { total_applications: 2, tenant: { name: 'default' } })
  t.match(await home.json('access matrix --fields application,sees'), [
    { application: 'backend', sees: 'plain' },
    {},
    {},
    {},
    {},
    {},
  ])
  t.equal((await home.run('access matrix --fields nothing')).code, 2)
})

const HOSTILE = ['=HYPERLINK("http://x")', '<img src=x onerror=alert(1)>', '\u202egnp.exe', '@SUM(1)']

testVault('control characters and formulas in names and descriptions are escaped', async (t, home) => {
  for (const name of HOSTILE)
    await home.createApp({
      name,
      rules: [ruleOf('mask', { container: '/pci/', description: '\u001b[31mred\u202e=1+1' })],
    })
  const { stdout } = await home.run('access matrix -o csv')
  const rows = parse(stdout, { columns: true }) as Record<string, string>[]
  t.same(
    rows.map(({ application }) => application).sort(),
    ['\'=HYPERLINK("http://x")', "'@SUM(1)", HOSTILE[1], HOSTILE[2]].sort(),
  )
  const table = await home.run('access matrix', { columns: 100 })
  t.notMatch(table.stdout, /[\u001b\u202e]/)
  const preview = [
    'access',
    'preview',
    '--type',
    'private',
    '--rule',
    '/pci/ mask token:read # "\\u001b[31m\\u202e"',
  ]
  const shown = await home.run(preview, { columns: 120 })
  t.equal(shown.code, 0)
  t.notMatch(shown.stdout, /[\u001b\u202e]/)
  t.match(shown.stdout, /rule 1: \\u\{1b\}\[31m/)
})

testVault(
  'control characters and formulas in masks are escaped, and a table cuts long values',
  async (t, home) => {
    await home.createApp({ name: 'n'.repeat(60), rules: [ruleOf('mask')] })
    const masks = { ansi: '\u001b[31m\u202e\nred', formula: '=1+1', long: 'x'.repeat(400) }
    for (const [name, mask] of Object.entries(masks))
      await home.createToken({ mask, containers: [`/${name}/`] })
    const table = await home.run('access matrix', { columns: 80 })
    t.notMatch(table.stdout, /[\u001b\u202e]/)
    t.match(table.stdout, /masked \\u\{1b\}\[31m\\u\{202e\}↵red/)
    t.same(
      table.stdout.split('\n').filter((line) => measureWidth(line) > 80),
      [],
    )
    t.match(table.stderr, 'Names and values are cut to fit')
    const rows = parse((await home.run('access matrix -o csv')).stdout, { columns: true }) as Record<
      string,
      string
    >[]
    t.equal(rows.find(({ container }) => container === '/formula/')?.example, "'=1+1")
    t.equal(rows.find(({ container }) => container === '/long/')?.example, 'x'.repeat(400))
  },
)

testVault('if two applications have the same name, the table adds their ids', async (t, home) => {
  const { id } = await home.createApp({ name: 'twin', rules: [ruleOf('mask')] })
  await home.createApp({ name: 'twin', rules: [ruleOf('redact')] })
  const { stdout } = await home.run('access matrix --container /', { columns: 120 })
  t.match(stdout, `twin (${id.slice(0, 8)})`)
})

testVault('access preview shows the access that new rules would give', async (t, home) => {
  const { stdout } = await home.run(
    [
      'access',
      'preview',
      '--type',
      'private',
      '--rule',
      '/pci/ mask token:read # help desk',
      '--container',
      '/pci/',
    ],
    { columns: 100 },
  )
  t.equal(
    stdout,
    'container  sees                     because\n/pci/      masked XXXXXXXXXXXX4242  rule 1: help desk\n',
  )
  t.same((await home.json('app list')).data, [], 'nothing is stored')
})

testVault(
  'an API key cannot read the matrix or a preview, and wrong input ends with code 2',
  async (t, home) => {
    const { key } = await home.createApp({ type: 'public', permissions: ['token:create'] })
    const env = { COFFER_API_KEY: key }
    for (const line of ['access matrix', 'access preview --type private --permission token:read']) {
      const { code, stderr } = await home.run(line, { env })
      t.equal(code, 4, stderr)
    }
    for (const line of [
      'access matrix --container pci',
      'access matrix --permission token:create',
      'access matrix --page 0',
      'access preview --type private --rule /pci/',
      'access preview --type other --permission token:read',
    ])
      t.equal((await home.run(line)).code, 2, line)
  },
)
