/** `coffer serve --ephemeral --seed FILE --watch`: a changed seed is loaded, and an invalid seed changes nothing. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openControlled } from '../../src/control/control-state.js'
import { createWorkplace, request, runCommand, serveFor } from '../http/process.js'

const KEY = 'key_1111111111111111111111'
const application = { name: 'backend', type: 'private', permissions: ['token:read'], key: KEY }

/** `printedLater` waits until the server has printed the text on stderr. */
async function serveAndWatch(t: Test, seed: string, place: ReturnType<typeof createWorkplace>) {
  const words = ['--ephemeral', '--seed', seed, '--watch', '--log', 'none']
  const { announcement, printed, child } = await serveFor(t, words, place)
  const key = announcement.applications.private?.key
  const statusOf = async (id: string) => (await request(announcement, key, `GET /tokens/${id}`)).status
  const printedLater = async (wanted: RegExp) => {
    while (!wanted.test(printed.stderr))
      await new Promise((resolve) => child.stderr!.once('data', () => setImmediate(resolve)))
    printed.stderr = ''
  }
  return { statusOf, printedLater }
}

t.test(
  'after the seed file changes, the server loads the new seed, and the keys stay the same',
  async (t) => {
    const place = createWorkplace()
    const file = join(place.directory, 'seed.yaml')
    writeFileSync(file, 'tokens:\n  - { id: first, type: token, data: 1 }\n')
    const { statusOf, printedLater } = await serveAndWatch(t, 'seed.yaml', place)
    t.equal(await statusOf('first'), 200)
    // The test writes another file and renames it, as editors do.
    writeFileSync(`${file}.new`, 'tokens:\n  - { id: second, type: token, data: 2 }\n')
    renameSync(`${file}.new`, file)
    await printedLater(/seed\.yaml has changed\. The vault was reset to the new seed\./)
    t.same([await statusOf('first'), await statusOf('second')], [404, 200])
    writeFileSync(file, 'tokens:\n  - id: third\n   type: token\n')
    await printedLater(/The vault keeps its contents\.[\s\S]*line 3, column 1/)
    t.equal(await statusOf('second'), 200)
    writeFileSync(file, 'tokens:\n  - { id: third, type: tokn, data: 1 }\n')
    await printedLater(/was not loaded[\s\S]*seed\.tokens\[0\]\.type: must be one of/)
    t.equal(await statusOf('second'), 200)
    writeFileSync(file, JSON.stringify({ tokens: [{ id: 'third', type: 'token', data: 3 }] }))
    await printedLater(/reset to the new seed/)
    t.equal(await statusOf('third'), 200, 'JSON is YAML')
  },
)

t.test(
  'a directory of seeds that cannot be read is reported, and the server continues to watch it',
  async (t) => {
    const place = createWorkplace()
    const seeds = join(place.directory, 'seeds')
    const write = (id: string) => {
      mkdirSync(seeds)
      writeFileSync(join(seeds, 'a.json'), JSON.stringify({ tokens: [{ id, type: 'token', data: 1 }] }))
    }
    write('first')
    const { statusOf, printedLater } = await serveAndWatch(t, 'seeds', place)
    rmSync(seeds, { recursive: true })
    symlinkSync('seeds', seeds)
    await printedLater(/seeds has changed, but was not loaded/)
    t.equal(await statusOf('first'), 200)
    rmSync(seeds)
    write('second')
    await printedLater(/reset to the new seed/)
    t.equal(await statusOf('second'), 200)
  },
)

t.test('--watch is refused without a seed file, and on a server that other machines can reach', async (t) => {
  const place = createWorkplace()
  t.teardown(place.remove)
  writeFileSync(join(place.directory, 'seed.json'), '{}')
  for (const words of [
    ['--ephemeral', '--watch'],
    ['--ephemeral', '--seed', '-', '--watch'],
    ['--ephemeral', '--seed', 'seed.json', '--watch', '--host', '0.0.0.0', '--allow-remote'],
  ]) {
    const { code, stderr } = await runCommand(place, ['serve', ...words])
    t.equal(code, 2, stderr)
    t.match(stderr, /--watch/)
  }
})

t.test(
  'after a reset to another seed, only the keys of applications that have the same name in both seeds stay the same',
  async (t) => {
    const { control } = await openControlled(
      { tenantName: 'test' },
      { name: 'one', applications: [application, { ...application, name: 'other', key: undefined }] },
    )
    t.teardown(() => control.close())
    const { app } = control
    const asOwner = async (operation: string, input = {}) =>
      (await app.ask({ operation, input, as: { reveal: true } } as never)) as { result: { data: object[] } }
    const holder = async (key: string) =>
      (await app.ask({ operation: 'app whoami', input: {}, as: { key } } as never)) as {
        result: { name: string }
      }
    await asOwner('token create', { id: 'mine', type: 'token', data: 1 })
    const fork = await control.fork()
    await control.advanceClock(1000)
    const seed = {
      name: 'two',
      applications: [
        { ...application, key: undefined },
        { name: 'new', type: 'private', permissions: ['token:read'] },
      ],
    }
    const added = await control.reseed(seed)
    t.same(Object.keys(added), ['new'])
    t.match(await holder(KEY), { result: { name: 'backend' } })
    t.match(await holder(added.new!.key), { result: { name: 'new' } })
    t.same((await asOwner('token list')).result.data, [])
    t.equal(control.readClock().mode, 'real')
    t.equal(control.seedName, 'two')
    t.equal(control.listForks()[0]!.id, fork.id)
    await asOwner('token create', { id: 'later', type: 'token', data: 1 })
    await control.advanceClock(1000)
    await t.rejects(control.reseed({ tokens: [{ id: 'a' }] }), { code: 'validation' })
    await t.rejects(control.reseed({ associations: [{ parent_id: 'x', child_id: 'y' }] }), { code: /./ })
    t.match(await asOwner('token list'), { result: { data: [{ id: 'later' }] } })
    t.equal(control.readClock().mode, 'offset', 'a refused seed does not change the clock')
    await control.reset()
    t.equal((await app.tenant()).name, 'two', 'a reset restores the new seed')
    t.same((await asOwner('token list')).result.data, [])
    await control.reseed({})
    t.match(
      (await asOwner('app list')).result.data,
      { length: 3 },
      'a seed without applications has the samples',
    )
  },
)
