/** `serve --seed DIRECTORY`: several files are one seed. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createWorkplace, request, runCommand, serveFor, type Workplace } from '../http/process.js'

const APPLICATION = { name: 'backend', type: 'private', permissions: ['token:read'] }

function workplaceWith(t: Test, files: Record<string, object | string>): Workplace {
  const place = createWorkplace()
  t.teardown(() => place.remove())
  mkdirSync(join(place.directory, 'seeds'))
  for (const [name, content] of Object.entries(files))
    writeFileSync(
      join(place.directory, 'seeds', name),
      typeof content === 'string' ? content : JSON.stringify(content),
    )
  return place
}

const WORDS = ['--ephemeral', '--seed', 'seeds']
const serve = (place: Workplace) => runCommand(place, ['serve', '--port', '0', ...WORDS])

t.test('the files of a directory are one seed, in the order of their names', async (t) => {
  const place = workplaceWith(t, {
    'b.json': { reactors: [{ name: 'r', code: 'module.exports = 1', application: 'backend' }] },
    'a.json': { name: 'shop', applications: [APPLICATION] },
    'c.json': { tokens: [{ id: 'card-1', type: 'token', data: 'x' }], applications: [] },
    'notes.txt': 'not a seed',
    '.hidden.json': '{',
  })
  // Kubernetes keeps the files of a volume in a directory with a name like this, and links to the files.
  const versions = join(place.directory, 'seeds', '..2026_11_29')
  mkdirSync(versions)
  writeFileSync(join(versions, 'd.json'), '{"tokens":[{"id":"card-2","type":"token","data":"x"}]}')
  symlinkSync(join('..2026_11_29', 'd.json'), join(place.directory, 'seeds', 'd.json'))
  const { announcement } = await serveFor(t, WORDS, place)
  const applications = announcement.applications as Record<string, { key: string }>
  t.same(Object.keys(applications), ['backend'])
  const list = await request(announcement, applications.backend?.key, 'GET /tokens')
  const ids = list.json.data.map(({ id }: { id: string }) => id).sort()
  t.same(ids, ['card-1', 'card-2'])
})

t.test('an error in a directory of seeds names the file and the place in this file', async (t) => {
  const token = { id: 'card-1', type: 'token', data: 'x' }
  for (const [stderr, files] of [
    [
      /b\.json: tokens\[1\]/,
      { 'a.json': { tokens: [token] }, 'b.json': { tokens: [{ ...token, id: 'two' }, { id: 'y' }] } },
    ],
    [/b\.json: tokens\[0\]/, { 'a.json': { tokens: [token] }, 'b.json': { tokens: [token] } }],
    [
      /b\.json sets "name", and an earlier file also sets it/,
      { 'a.json': { name: 'x' }, 'b.json': { name: 'y' } },
    ],
    [/b\.json sets "tokens"/, { 'a.json': { tokens: [token] }, 'b.json': { tokens: 'many' } }],
    [/seeds\/a\.json must contain an object/, { 'a.json': '[]' }],
    [/seeds\/a\.json/, { 'a.json': '{' }],
    [/there is no file \*\.json, .* in seeds/, { 'a.txt': '{}' }],
    [
      /more than 100 files of seeds/,
      Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`${at}.json`, '{}'])),
    ],
  ] as [RegExp, Record<string, object | string>][]) {
    const ended = await serve(workplaceWith(t, files))
    t.not(ended.code, 0)
    t.match(ended.stderr, stderr)
  }
})
