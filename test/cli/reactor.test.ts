/** Formulas and reactors on the command line: checked, installed, run, watched. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createHome, createVaultHome } from './home.js'

const GREET = `module.exports = async ({ args, configuration }) => {
  console.log('hello', args.name)
  if (args.fail) throw new Error('no')
  return { raw: { hello: args.name, key: configuration.KEY } }
}
`

t.test('code is checked without a vault, from a file or as a formula names it', async (t) => {
  const home = createHome(t)
  home.write('greet.js', GREET)
  home.write('greet.json', JSON.stringify({ name: 'greet', type: 'private', code: 'greet.js' }))
  for (const file of ['greet.js', 'greet.json'])
    t.same(await home.json(`formula check ${file}`), { file, compiles: true })
})

t.test('code that does not load fails the check, with its place', async (t) => {
  const home = createHome(t)
  home.write('bad.js', 'module.exports = async () => {\n  let x = ;\n}\n')
  const bad = await home.run('formula check bad.js')
  t.equal(bad.code, 8)
  t.match(bad.stderr, 'line 2, column 11: Unexpected token')
  home.write('none.js', 'exports.handler = 1')
  t.match(await home.run('formula check none.js'), { code: 8, stderr: /exports no function/ })
  home.write('none.json', '{"name":"x"}')
  t.match(await home.run('formula check none.json'), { code: 2, stderr: /is not a formula/ })
})

t.test('the official formulas are installed, and installed again in the place of themselves', async (t) => {
  const home = await createVaultHome(t)
  const first = await home.json('formula install')
  t.same(
    first.map(({ name, type }: Record<string, string>) => [name, type]),
    [
      ['Format-preserving card alias', 'official'],
      ['HMAC for matching', 'official'],
      ['JSON webhook', 'official'],
    ],
  )
  const [again] = await home.json('formula install card-alias')
  t.equal(again.id, first[0].id)
  t.ok(again.modified_at)
  t.equal((await home.json('formula list')).pagination.total_items, 3)
  home.write('own.js', GREET)
  home.write('own.json', JSON.stringify({ name: 'own', code: 'own.js' }))
  const [own] = await home.json('formula install own.json')
  t.match(own, { name: 'own', type: 'official', code: GREET })
  t.match(await home.run('formula install nothing'), { code: 2, stderr: /card-alias/ })
})

t.test('a reactor is run, its failures are told, and its runs are shown', async (t) => {
  const home = await createVaultHome(t)
  home.write('greet.js', GREET)
  const formula = await home.json(
    'formula create --name greet --type private --code @greet.js --configuration {"name":"KEY","type":"string"}',
  )
  home.write('key.txt', 'k3y\n')
  const create = [
    'reactor',
    'create',
    '--name',
    'r',
    '--formula',
    JSON.stringify({ id: formula.id }),
    '--configuration',
    'KEY=@key.txt',
  ]
  const { id } = await home.json(create)
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

t.test('a file is developed as a reactor would run it', async (t) => {
  const home = createHome(t)
  home.write('greet.js', GREET)
  const done = await home.run('reactor dev greet.js --args {"name":"Ada"} --configuration {"KEY":"k"}')
  t.same(JSON.parse(done.stdout), { raw: { hello: 'Ada', key: 'k' } })
  t.match(done.stderr, 'log: hello Ada\n')
  const failed = await home.run('reactor dev greet.js --args {"fail":1}')
  t.equal(failed.code, 8)
  t.match(failed.stderr, /reactor\.js:3/)
  t.match(await home.run('reactor dev greet.js --args [1]'), {
    code: 2,
    stderr: /--args takes key=value or a JSON object/,
  })
  t.equal((await home.run('reactor dev none.js')).code, 2)
  home.write('net.js', 'module.exports = async () => fetch("http://localhost:1/")')
  t.match(await home.run('reactor dev net.js'), { stderr: /not on the list of --allow-net/ })
  t.match(
    await home.run([
      'reactor',
      'dev',
      'net.js',
      '--allow-net',
      'localhost:1, x.example',
      '--allow-net',
      'y.example',
    ]),
    {
      stderr: /ECONNREFUSED/,
    },
  )
  t.match(await home.run('reactor dev net.js --allow-net http://x'), {
    code: 2,
    stderr: /--allow-net takes a host/,
  })
  writeFileSync(join(home.place, 'lib.js'), 'exports.two = 2\n')
  home.write('uses.js', 'module.exports = async () => ({ raw: require("lib").two })')
  t.match(await home.run('reactor dev uses.js --modules .'), { code: 0, stdout: '{"raw":2}\n' })
})

t.test('a file that is watched runs again when it is saved, until it is interrupted', async (t) => {
  const home = createHome(t)
  home.write(
    'watched.js',
    'module.exports = async () => { console.log("first"); throw new Error("not yet") }',
  )
  const save = () =>
    home.write('watched.js', 'module.exports = async () => { console.log("second"); return { raw: 2 } }')
  let saving: NodeJS.Timeout | undefined
  const running = home.run('reactor dev watched.js --watch', {
    interruptAt: 'log: second',
    watch: (text) => {
      if (text.includes('Waiting for')) saving ??= setInterval(save, 100)
    },
  })
  const { stdout, stderr } = await running.finally(() => clearInterval(saving))
  t.match(stderr, /log: first\n.*not yet.*Waiting for the file to be saved.*log: second\n/s)
  t.match(stdout, /"raw":2|^$/)
})
