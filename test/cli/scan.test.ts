/** `coffer scan`: what it finds, where, and that it never prints it. */
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createVaultHome } from './home.js'

const CARD = '4242424242424242'

t.test('values are found in files, folders and pipes, by token and line', async (t) => {
  const home = await createVaultHome(t)
  await home.run('token create', {
    stdin: `{"id":"card-1","type":"card","data":{"number":"${CARD}"}}\n{"id":"note","type":"token","data":"a secret note"}`,
  })
  t.same(await home.json('scan .coffer'), [], 'a vault has no value in the clear')
  t.same(await home.json('scan -', { stdin: 'nothing\n' }), [])
  mkdirSync(join(home.place, 'logs/deep'), { recursive: true })
  home.write('logs/a.log', `one\ntwo a secret note, twice: a secret note\n4242 4242 4242 4242`)
  home.write(
    'logs/deep/b.json',
    JSON.stringify({ long: 'x'.repeat(700_000), url: encodeURIComponent('a secret note') }),
  )
  symlinkSync(join(home.place, 'logs'), join(home.place, 'logs/deep/again'))
  const { code, stdout, stderr } = await home.run('scan logs --output ndjson')
  t.equal(code, 5)
  t.same(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
    [
      { id: 'note', file: 'logs/a.log', line: 2 },
      { id: 'card-1', file: 'logs/a.log', line: 3 },
      { id: 'note', file: 'logs/deep/b.json', line: 1 },
    ],
  )
  t.match(stderr, 'Values of tokens are in the clear in 3 places.')
  t.notMatch(stdout + stderr, /secret|4242/)
  const piped = await home.run('scan -', {
    stdin: `\n\n${Buffer.from(`{"n":"${CARD}"}`).toString('base64')}`,
  })
  t.same([piped.code, JSON.parse(piped.stdout)], [5, [{ id: 'card-1', file: '-', line: 3 }]])
  t.match(piped.stderr, 'Values of tokens are in the clear in 1 place.')
  const { count } = await home.json('log reveals card-1')
  t.equal(count, 4, 'one for each time')
  t.match((await home.run('scan --help')).stdout, /coffer log reveals counts/)
  const shown = await home.run('scan logs/a.log', { columns: 80 })
  t.match(shown.stdout, /^id +file +line\nnote +logs\/a\.log +2\ncard-1 +logs\/a\.log +3\n/)
})

t.test('what is not looked for is told', async (t) => {
  const home = await createVaultHome(t)
  const long = `${'long '.repeat(400)}end`
  home.write('long', long)
  await home.run('token create', {
    stdin: `{"id":"short","type":"token","data":["12345","x","a secret"]}\n{"id":"long","type":"token","data":"${long}"}`,
  })
  const { code, stdout, stderr } = await home.run('scan long -', { stdin: long.slice(0, 1023) })
  t.same([code, JSON.parse(stdout)], [5, [{ id: 'long', file: 'long', line: 1 }]])
  t.match(stderr, 'Values of less than 6 bytes, not looked for: 2.')
})

t.test('what cannot be read is told, and is no success', async (t) => {
  const home = await createVaultHome(t)
  const missing = await home.run(['scan', 'nowhere', home.write('empty', '')])
  t.match(
    [missing.code, missing.stderr],
    [2, /nowhere\) does not exist[\s\S]*Files that could not be read: 1\./],
  )
  await home.run('token create', { stdin: '{"id":"note","type":"token","data":"a secret note"}' })
  const alone = await home.run('scan nowhere')
  t.match([alone.code, alone.stderr], [2, /nowhere\) does not exist[\s\S]*Files that could not be read: 1\./])
  const nothing = await home.run(['scan'])
  t.match([nothing.code, nothing.stderr], [2, /Missing required argument 'path'/])
  if (process.getuid?.() === 0) return
  chmodSync(home.write('closed', 'x'), 0)
  t.equal((await home.run('scan closed')).code, 2)
})
