/** Formulas and reactors on the command line: checking, installing, running and watching code. */
import { testHome, testVault } from './home.js'

const GREET = `module.exports = async ({ args, configuration }) => {
  console.log('hello', args.name)
  if (args.fail) throw new Error('no')
  return { raw: { hello: args.name, key: configuration.KEY } }
}
`

testHome('code from a file or a formula is checked without a vault', async (t, home) => {
  home.write('greet.js', GREET)
  home.write('greet.json', JSON.stringify({ name: 'greet', type: 'private', code: 'greet.js' }))
  home.write('bad.js', 'module.exports = async () => {\n  let x = ;\n}\n')
  home.write('none.js', 'exports.handler = 1')
  home.write('none.json', '{"name":"x"}')
  for (const [file, expected] of [
    ['greet.js', { code: 0, stdout: '{"file":"greet.js","compiles":true}\n' }],
    ['greet.json', { code: 0, stdout: '{"file":"greet.json","compiles":true}\n' }],
    ['bad.js', { code: 8, stderr: 'line 2, column 11: Unexpected token' }],
    ['none.js', { code: 8, stderr: /exports no function/ }],
    ['none.json', { code: 2, stderr: /is not a formula/ }],
  ] as const)
    t.match(await home.run(`formula check ${file}`), expected, file)
})

testVault('code that cannot run is stored with a warning', async (t, home) => {
  const bad = 'module.exports=('
  const invalid = {
    code: 0,
    stderr: /^warning: This code cannot run: The code is not valid at line 1, column/,
  }
  for (const [line, expected] of [
    ['formula create --type private --name x --code 1', { code: 0, stderr: /^warning: .*no function/ }],
    ['formula update x --name x --type private --code ;', { code: 0, stderr: /^warning: .*no function/ }],
    [`reactor create --name r --code ${bad}`, invalid],
    [`reactor update r --name r --code ${bad}`, invalid],
    [`reactor patch r --code ${bad}`, invalid],
  ] as const)
    t.match(await home.run(line), expected, line)
  t.match(await home.json('reactor get r'), { code: bad })
  // `reactor check` does not run the code.
  home.write('endless.js', 'module.exports = () => 1\nfor (;;) {}')
  t.match(await home.run('reactor create --name endless --code @endless.js'), { code: 0, stderr: '' })
  for (const line of [
    'formula create --type private --name y --code module.exports=()=>1',
    'reactor create --name s --code module.exports=()=>1',
    'reactor create --name t --formula y',
    'reactor patch s --name s',
  ])
    t.match(await home.run(line), { code: 0, stderr: '' }, line)
})

testVault(
  'reactor code is stored and the command succeeds even if the warning cannot be written to standard error',
  async (t, home) => {
    const run = await home.run('reactor create --name r --code 1', { stderrFailure: 'ENOSPC' })
    t.equal(run.code, 0)
    t.match((await home.json('reactor list')).data, [{ name: 'r', code: '1' }])
  },
)

testHome('reactor check ends even if the code never finishes loading', async (t, home) => {
  home.write('endless.js', 'for (;;) {}')
  t.match(await home.run('formula check endless.js'), {
    code: 8,
    stderr: /The code took longer than 3000 ms to load and was stopped/,
  })
})

testVault(
  'the official formulas can be installed, and installing them a second time succeeds',
  async (t, home) => {
    const first = await home.json('formula install')
    const names = ['Format-preserving card alias', 'HMAC for matching', 'JSON webhook']
    for (const [at, name] of names.entries()) t.match(first[at], { name, type: 'official' })
    const [again] = await home.json('formula install card-alias')
    t.equal(again.id, first[0].id)
    t.ok(again.modified_at)
    t.equal((await home.json('formula list')).pagination.total_items, 3)
    home.write('own.js', GREET)
    home.write('own.json', JSON.stringify({ name: 'own', code: 'own.js' }))
    t.match(await home.json('formula install own.json'), [{ name: 'own', type: 'official', code: GREET }])
    t.match(await home.run('formula install nothing'), { code: 2, stderr: /card-alias/ })
  },
)

testVault('a reactor can be run, and its failures and runs are shown', async (t, home) => {
  home.write('greet.js', GREET)
  const configuration = '{"name":"KEY","type":"string"}'
  const formula = 'formula create --name greet --type private --code @greet.js --configuration'
  await home.json(`${formula} ${configuration}`)
  home.write('key.txt', 'k3y\n')
  const { id } = await home.json('reactor create --name r --formula greet --configuration KEY=@key.txt')
  await home.json('token create --id ada --type token --data "Ada"')
  const run = (args: object) => home.run(['reactor', 'react', id], { stdin: JSON.stringify({ args }) })
  t.same(JSON.parse((await run({ name: '{{ ada }}' })).stdout), { raw: { hello: 'Ada', key: 'k3y' } })
  t.match(await run({ name: 'x', fail: true }), { code: 8, stderr: /error: no/ })
  t.match(await run({ name: '{{ nobody }}' }), { code: 2, stderr: /args\.name/ })
  const runs = await home.json(['reactor', 'logs', id])
  t.match(runs, [
    { outcome: 'done', console: [{ level: 'log', text: 'hello Ada' }] },
    { outcome: 'reactor_failed', errors: { error: ['no'] }, stack: 'at module.exports (reactor.js:3:24)' },
  ])
  t.equal((await home.json(['reactor', 'logs', id, '-n', '1'])).length, 1)
  t.equal((await home.run('reactor logs nothing')).code, 3)
  t.equal((await home.run(['reactor', 'logs', id, '-n', '101'])).code, 2)
})
