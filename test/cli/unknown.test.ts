/** Notices of properties that operations ignore: misspelled ones in given JSON. */
import t from 'tap'
import { suggestName } from '../../src/domain/nearest.js'
import { createVaultHome } from './home.js'

const SECRET = 'secret-value'

t.test('a misspelled property is named with the nearest one, and is no error', async (t) => {
  const home = await createVaultHome(t)
  const body = { type: 'token', data: 'x', maks: SECRET, metdata: { a: SECRET }, '\u001b[2Jq': SECRET }
  const made = await home.run(['token', 'create'], { stdin: JSON.stringify(body) })
  t.match(made, { code: 0, stdout: /"id"/ })
  t.match(made.stderr, 'Ignored: token create takes no property "maks"; did you mean mask?')
  t.match(made.stderr, 'takes no property "metdata"; did you mean metadata?')
  t.notMatch(made.stderr, SECRET)
  t.notMatch(made.stderr, '\u001b')
  const missing = await home.run(['token', 'create'], { stdin: '{"type":"token","dta":"x"}' })
  t.match(missing, { code: 2, stderr: /"dta"; did you mean data\?[\s\S]*--data/ })
  t.equal((await home.run(['token', 'create', '--quiet'], { stdin: JSON.stringify(body) })).stderr, '')
})

t.test('of what an answer has, maps, and what code is given, nothing is told', async (t) => {
  const home = await createVaultHome(t)
  const words = ['--name', 'a', '--type', 'private', '--permission', 'token:read']
  const made = await home.run(['app', 'create', ...words])
  const { id, key: _, ...app } = JSON.parse(made.stdout)
  const update = async (body: object) => {
    home.write('app.json', JSON.stringify(body))
    return home.run(['app', 'update', id, '--file', 'app.json'])
  }
  t.match(await update(app), { code: 0, stderr: '' })
  t.match(await update({ ...app, nmae: 'x' }), { code: 0, stderr: /"nmae"; did you mean name\?/ })
  const stdin = '{"type":"token","data":{"dta":1},"metadata":{"dta":"1"}}'
  t.match(await home.run(['token', 'create'], { stdin }), { code: 0, stderr: '' })
})

t.test('many bodies and rows are told of once for each name, and of ten names at most', async (t) => {
  const home = await createVaultHome(t)
  const line = '{"type":"token","data":1,"maks":"x"}\n'
  const told = (stderr: string) => stderr.match(/Ignored: /g)?.length ?? 0
  t.equal(told((await home.run(['token', 'create'], { stdin: line.repeat(3) })).stderr), 1)
  t.equal(told((await home.run(['token', 'import'], { stdin: line.repeat(2500) })).stderr), 1)
  const names = Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`name-${at}`, 1]))
  const stdin = JSON.stringify({ type: 'token', data: 1, ...names })
  for (const verb of ['create', 'import'])
    t.equal(told((await home.run(['token', verb], { stdin })).stderr), 10)
})

t.test('a slip of one letter is near in short names too', (t) => {
  const names = ['data', 'mask', 'id', 'containers']
  for (const [text, name] of [
    ['dta', 'data'],
    ['daata', 'data'],
    ['dita', 'data'],
    ['adta', 'data'],
    ['Mask', 'mask'],
    ['maks', 'mask'],
    ['container', 'containers'],
    ['containrse', 'containers'],
  ] as const)
    t.equal(suggestName(text, names), `; did you mean ${name}?`, text)
  for (const text of ['', 'd', 'is', 'dx', 'mosk1', 'x'.repeat(1e6)]) t.equal(suggestName(text, names), '')
  t.end()
})
