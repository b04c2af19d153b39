/**
 * Tests of a vault without `vault.json`. Every command reports the missing file, and no command changes the remaining
 * files.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createVaultHome, testHome, testVault } from './home.js'

/** Returns the contents of each file below a directory, except locks. */
function readAll(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()
  const files = names.filter((name) => !statSync(join(directory, name)).isDirectory() && name !== 'lock')
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(directory, name), 'base64')]))
}

testVault('no command creates, replaces or removes files of a vault without vault.json', async (t, home) => {
  const vault = join(home.place, '.coffer')
  await home.createToken({ id: 'card-1', data: 'kept' })
  await home.json('vault compact')
  await home.createToken({ id: 'card-2', data: 'kept too' })
  await home.json('vault backup whole.backup')
  await home.json('init --vault other')
  home.write('draft.json', '{"type":"token","data":"x"}')
  home.write('pass', 'correct horse battery staple')
  renameSync(join(vault, 'vault.json'), join(home.place, 'header'))
  const before = readAll(vault)
  t.match(Object.keys(before).join(' '), /head-.* journal-.* segments.* state/)
  for (const line of [
    'init',
    'init --vault .coffer',
    'init --vault .coffer --passphrase-file pass',
    'vault restore whole.backup',
    'vault copy --vault other --to .coffer',
    'vault rekey --yes',
    'vault passwd --new-passphrase-file pass',
    'vault keys list',
    'vault keys add --new-key-file second.key',
    'vault keys remove 0000000000 --yes',
    'vault compact',
    'vault verify',
    'vault status',
    'vault copy --skip-damaged --to recovered',
    'vault backup another.backup',
    'token list',
    'token create --file draft.json',
    'token export tokens.ndjson',
    'tenant list',
    'tenant use default',
    'config list',
    'serve --port 0',
    'scan pass',
  ]) {
    const { code, stdout, stderr } = await home.run(line)
    t.same([code, stdout], [7, ''], line)
    t.match(stderr, /^error: .*\.coffer has files of a vault \(.*\) but no vault\.json/, line)
    t.match(
      stderr,
      /Put vault\.json back from any copy of this directory\..*`coffer vault restore BACKUP --vault NEW`/,
      line,
    )
    t.equal(stderr.trimEnd().split('\n').length, 1, `${line}: the missing header is reported once`)
    t.strictSame(readAll(vault), before, line)
  }
  t.match(await home.run('doctor'), { code: 1, stdout: /but no vault\.json/ })
  const named = readdirSync(home.place).filter((name) => /second|another|recovered|tokens/.test(name))
  t.same(named, [], 'no other file was written')

  await home.json('vault restore whole.backup --vault new')
  renameSync(join(home.place, 'new/vault.json'), join(vault, 'vault.json'))
  t.equal(readFileSync(join(vault, 'vault.json'), 'utf8'), readFileSync(join(home.place, 'header'), 'utf8'))
  const { data } = await home.json('token list')
  t.same(
    data.map(({ id }: { id: string }) => id).sort(),
    ['card-1', 'card-2'],
    'the command that the error advises succeeds',
  )
})

testVault(
  'no vault is created in a directory that contains at least one essential file of a vault',
  async (t, home) => {
    await home.createToken()
    await home.json('vault compact')
    const vault = join(home.place, '.coffer')
    const names = readdirSync(vault).filter((name) => name !== 'vault.json')
    for (const kept of names) {
      const place = join(home.place, `only-${kept}`)
      mkdirSync(place, { mode: 0o700 })
      renameSync(join(vault, kept), join(place, kept))
      t.match(await home.run(`init --vault only-${kept}`), { code: 7, stderr: /but no vault\.json/ }, kept)
      renameSync(join(place, kept), join(vault, kept))
    }
    t.ok(names.length >= 4, names.join(' '))
  },
)

testVault(
  'if a vault has lost its header, a command does not use the vault of a parent folder instead',
  async (t, home) => {
    await home.createToken({ id: 'of-the-outer' })
    const inner = join(home.place, 'inner')
    mkdirSync(inner)
    await home.json('init', { cwd: inner })
    rmSync(join(inner, '.coffer/vault.json'))
    t.match(await home.run('token list', { cwd: inner }), {
      code: 7,
      stdout: '',
      stderr: /inner\/\.coffer has/,
    })
  },
)

testHome(
  'after an interrupted creation, init starts again and does not mistake the remains for a vault',
  async (t, home) => {
    const { key_file } = await home.json('init')
    const vault = join(home.place, '.coffer')
    // If the creation of a vault is killed before its last step, these files remain.
    renameSync(join(vault, 'vault.json'), join(vault, 'being-created'))
    writeFileSync(join(vault, 'segments', 'left'), 'half a table')
    t.match(await home.run('token list'), { code: 6, stderr: /has not ended.*coffer init --vault/ })
    const again = await home.json('init')
    t.not(again.key_file, key_file)
    await home.createToken({ id: 'first' })
    const left = Object.keys(readAll(vault)).map((name) => name.replace(/-.*/, ''))
    t.same(left, ['head', 'journal', 'state', 'vault.json'], 'no file of the interrupted creation is left')
  },
)

testHome(
  'init refuses a directory with files that have names of vault files, and keeps these files',
  async (t, home) => {
    const project = join(home.place, 'project')
    mkdirSync(join(project, 'segments'), { recursive: true, mode: 0o700 })
    writeFileSync(join(project, 'segments', 'one.ts'), 'code')
    t.match(await home.run('init --vault project'), {
      code: 7,
      stderr: /If these files do not belong to a vault, choose/,
    })
    renameSync(join(project, 'segments'), join(project, 'parts'))
    writeFileSync(join(project, 'lock'), 'package one\npackage two\n')
    const refused = await home.run('init --vault project')
    t.match(refused, { code: 5, stderr: /project\/lock is not a lock of Coffer/ })
    t.equal(readFileSync(join(project, 'lock'), 'utf8'), 'package one\npackage two\n')
    t.equal(readFileSync(join(project, 'parts', 'one.ts'), 'utf8'), 'code')
  },
)

t.test(
  'if the demo vault is incomplete, the error advises moving its directory away, and does not advise deleting it',
  async (t) => {
    const home = await createVaultHome(t)
    mkdirSync(join(home.place, '.coffer-demo'))
    const { code, stderr } = await home.run('serve --demo --port 0')
    t.equal(code, 7)
    t.match(
      stderr,
      /The vault in the same directory was not changed: use it with --vault .*first move this directory away: mv /,
    )
  },
)
