import '../support/cheap-scrypt.js'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { App } from '../../src/vault/app.js'
import { openVault } from '../../src/vault/open.js'
import { createVaultHome } from './home.js'

/** Creates a home with a vault. `ask` runs a command that must succeed. */
async function createBench(t: Test) {
  const home = await createVaultHome(t)
  const ask = async (line: string | string[], stdin = '') => (await home.json(line, { stdin })) as never
  return { ...home, ask, vault: join(home.place, '.coffer') }
}

type Bench = Awaited<ReturnType<typeof createBench>>

async function fill({ createToken }: Bench): Promise<void> {
  for (let index = 0; index < 5; index++)
    await createToken({
      ...{ id: `token-${index}`, data: { name: `Name ${index}` }, search_indexes: ['{{ data.name }}'] },
      ...{ metadata: { index: String(index) }, containers: [`/c${index % 2}/`] },
    })
}

const LIST = ['token', 'list', '--all', '--reveal']

t.test(
  'vault verify distinguishes an intact vault from a damaged vault, and says what can be read',
  async (t) => {
    const bench = await createBench(t)
    await fill(bench)
    t.match(await bench.ask('vault verify'), { ok: true, findings: [], readable: { logs: 6 } })
    await bench.ask('vault compact')
    t.match(await bench.ask('vault verify'), { ok: true, findings: [], readable: { logs: 6 } })
    const folder = join(bench.vault, 'segments')
    const file = join(folder, readdirSync(folder)[0]!)
    const bytes = readFileSync(file)
    writeFileSync(file, Buffer.from(bytes).fill(bytes[40]! ^ 1, 40, 41))
    const damaged = await bench.run('vault verify')
    t.match(damaged, { code: 7, stderr: /vault is damaged/ })
    const { findings, ...result } = JSON.parse(damaged.stdout)
    t.match(result, { ok: false, readable: { logs: 6 } })
    t.equal(findings.length, 1)
    writeFileSync(file, bytes)
    rmSync(join(bench.vault, 'state'))
    t.equal((await bench.run('token list')).code, 7)
    const { code, stdout } = await bench.run('vault verify')
    t.equal(code, 7)
    t.match(JSON.parse(stdout), { ok: false, findings: [{ place: 'state' }], readable: { logs: 6 } })
    t.equal(existsSync(join(bench.vault, 'lock')), false, 'the vault is released after it was read')
  },
)

t.test(
  'container sets that no token has are removed by a deletion and by `coffer vault compact`',
  async (t) => {
    const bench = await createBench(t)
    await fill(bench)
    const keys = join(bench.place, 'config', 'coffer', 'keys')
    const text = readFileSync(join(keys, readdirSync(keys)[0]!), 'utf8')
    const withVault = async <T>(work: (app: App) => Promise<T>) => {
      const opening = { directory: bench.vault, pid: process.pid, notice: () => {} }
      const app = await openVault(opening, async () => ({ kind: 'key-file', text }))
      return work(app).finally(() => app.close())
    }
    const sets = () =>
      withVault(async ({ store }) => {
        const found = await store.read((reader) => reader.find('containers', 1, { page: 1, size: 9 }))
        return found.records.map(({ id }) => id).sort()
      })
    for (const id of ['token-1', 'token-3']) await bench.ask(['token', 'delete', id, '--yes'])
    t.strictSame(await sets(), ['["/c0/"]'], 'unused sets are removed at the end of the command')
    const left = { id: '["/gone/"]', containers: ['/gone/'] }
    await withVault(({ store }) => store.write((writer) => writer.insert('containers', 1, left)))
    await bench.ask('token list')
    t.strictSame(await sets(), ['["/c0/"]', '["/gone/"]'], 'other commands do not look for unused sets')
    await bench.ask('vault compact')
    t.strictSame(await sets(), ['["/c0/"]'])
  },
)

t.test(
  'a restored backup is an equal vault, which opens with the same key file as the original',
  async (t) => {
    const bench = await createBench(t)
    await fill(bench)
    const before = await bench.ask(LIST)
    const backup = join(bench.place, 'b')
    t.match(await bench.ask('vault backup b'), { file: backup, bytes: statSync(backup).size })
    t.equal(statSync(backup).mode & 0o777, 0o600)
    t.notOk(readFileSync(backup).includes('Name 1'))
    t.match(await bench.run('vault backup b'), { code: 5 }, 'an existing file is not overwritten')
    await bench.ask('token delete token-0 --yes')
    t.match(await bench.run('vault restore b'), { code: 5 }, 'an existing vault is not overwritten')
    await bench.ask('vault restore b --vault again')
    t.same(await bench.ask([...LIST, '--vault', 'again']), before)
    bench.write('cut', readFileSync(backup).subarray(0, -20))
    t.match(await bench.run('vault restore cut --vault third'), { code: 7 })
    t.match(await bench.run('token list --vault third'), { code: 6 }, 'the refused restore left no vault')
  },
)

t.test(
  'a new passphrase replaces the old passphrase, and all key slots except the last can be removed',
  async (t) => {
    const bench = await createBench(t)
    const opens = async (flag: string) => (await bench.run(`token list ${flag}`)).code
    bench.write('first', 'the first passphrase\n')
    bench.write('second', 'the second passphrase\n')
    bench.write('short', 'short\n')
    await bench.ask('vault passwd --new-passphrase-file first')
    t.equal(await opens('--passphrase-file first'), 0)
    await bench.ask('vault passwd --passphrase-file first --new-passphrase-file second')
    t.equal(await opens('--passphrase-file first'), 6, 'the old passphrase is refused')
    t.equal(await opens('--passphrase-file second'), 0)
    t.equal((await bench.run('vault keys add --new-passphrase-file short')).code, 2)
    await bench.ask('vault keys add --new-key-file k.key')
    t.equal(await opens('--key-file k.key'), 0)
    t.equal(
      (await bench.run('vault keys add --new-key-file k.key')).code,
      5,
      'an existing key file is not overwritten',
    )
    const slots: { id: string; kind: string }[] = await bench.ask('vault keys list')
    t.match(slots, [{ kind: 'key-file' }, { kind: 'passphrase' }, { kind: 'key-file' }])
    t.equal((await bench.run('vault keys remove nonesuch --yes')).code, 3)
    const remove = (at: number) =>
      bench.run(`vault keys remove ${slots[at]!.id} --yes --passphrase-file second`)
    for (const at of [0, 2]) t.equal((await remove(at)).code, 0)
    t.match(await remove(1), { code: 5, stderr: /last key slot/ })
    t.equal(await opens('--passphrase-file second'), 0)
  },
)

t.test('a vault has at most sixteen key slots, and a refused slot leaves no key file', async (t) => {
  const bench = await createBench(t)
  const add = (slot: number) => bench.run(`vault keys add --new-key-file k${slot}`)
  for (let slot = 2; slot <= 16; slot++) t.equal((await add(slot)).code, 0)
  t.match(await add(17), { code: 5, stderr: /at most 16 key slots/ })
  t.notOk(existsSync(join(bench.place, 'k17')))
  t.equal((await bench.run('token list --key-file k16')).code, 0)
})

t.test('after a rekey, all data can be read and is encrypted with new keys', async (t) => {
  const bench = await createBench(t)
  await fill(bench)
  await bench.ask('tenant create second')
  await bench.ask('token create --tenant second', '{"type":"token","data":"there"}')
  const { key } = await bench.createApp({ permissions: ['token:read'] })
  const before = await bench.ask(LIST)
  const listSlots = (): Promise<{ id: string }[]> => bench.ask('vault keys list')
  const [oldSlot] = await listSlots()
  t.match(await bench.ask('vault rekey --yes'), { dropped_slots: [] })
  const slots = await listSlots()
  t.equal(slots.length, 1)
  t.not(slots[0]?.id, oldSlot!.id, 'no slot has the old root key')
  t.equal(existsSync(join(bench.vault, 'lock')), false, 'rekey releases the vault')
  t.same(await bench.ask(LIST), before, 'tokens and fingerprints are unchanged')
  const query = 'data:"name 3" AND metadata.index:3 AND container:/c1/*'
  t.match(await bench.ask(['token', 'search', '--query', query]), { data: [{ id: 'token-3' }] })
  t.match(await bench.ask('token list --tenant second --reveal'), { data: [{ data: 'there' }] })
  const env = { COFFER_API_KEY: key }
  t.match(await bench.run('token get token-1', { env }), { code: 0 }, 'API keys are still accepted')
  t.match(await bench.ask('vault verify'), { ok: true })
  t.match(await bench.ask('log verify'), { is_whole: true })
  const config = join(bench.place, 'config', 'coffer', 'keys')
  t.equal(readdirSync(config).length, 1, 'the key file is unchanged')
})

t.test(
  'while another process has the vault open, commands go through that process and have the same result',
  async (t) => {
    const bench = await createBench(t)
    await fill(bench)
    const alone = await bench.ask(LIST)
    t.equal(existsSync(join(bench.vault, 'lock')), false)
    const keys = join(bench.place, 'config', 'coffer', 'keys')
    const text = readFileSync(join(keys, readdirSync(keys)[0]!), 'utf8')
    const opening = { directory: bench.vault, pid: process.pid, notice: () => {}, role: 'server' } as const
    const server = await openVault(opening, async () => ({ kind: 'key-file', text }))
    t.match(await bench.ask('vault status'), { held_by: { pid: process.pid, state: 'alive' } })
    t.same(await bench.ask(LIST), alone)
    const create = (stdin: string) => bench.run('token create', { stdin })
    t.equal((await create('{"id":"via","type":"token","data":1}')).code, 0)
    t.equal((await create('{"id":"via","type":"token","data":1}')).code, 5)
    t.match(await create('{"type":"card","data":{}}'), { code: 2, stderr: /data.number: / })
    t.match(await bench.ask('vault verify'), { ok: true })
    await bench.ask('vault backup running')
    await bench.ask('vault keys add --new-key-file k.key')
    t.match(await bench.run('token list --key-file k.key'), { code: 0 })
    const found = await server.ask({ operation: 'token get', input: { id: 'via' }, as: { reveal: true } })
    t.match(found, { status: 200, result: { data: 1 } }, 'the owner of the vault sees the change')
    await server.close()
    t.match(await bench.ask('token get via --reveal'), { data: 1 })
    await bench.ask('vault restore running --vault copy')
    t.match(await bench.ask('vault status --vault copy'), { tokens: 6 })
  },
)

t.test('a vault file of the wrong kind, such as a pipe, is refused without waiting', async (t) => {
  const bench = await createBench(t)
  const head = join(bench.vault, readdirSync(bench.vault).find((name) => name.startsWith('head-'))!)
  rmSync(head)
  execFileSync('mkfifo', ['-m', '600', head])
  t.match(await bench.run('token list'), {
    code: 7,
    stderr: /head-\w+ is missing, is not a file or does not open/,
  })
  const other = await createBench(t)
  renameSync(join(other.vault, 'segments'), join(other.place, 'elsewhere'))
  symlinkSync(join(other.place, 'elsewhere'), join(other.vault, 'segments'))
  t.match(await other.run('token list'), { code: 6, stderr: /segments is not a plain directory/ })
})

t.test(
  'if a file of the vault is replaced by a directory or a link, the vault counts as damaged',
  async (t) => {
    for (const part of ['segments/', 'journal-', 'head-'])
      for (const kind of ['directory', 'link']) {
        const title = `a ${kind} in place of ${part}`
        const { vault, place, run } = await createBench(t)
        await run('vault compact')
        await run('token create --type token --data 1')
        const names = readdirSync(vault, { recursive: true, encoding: 'utf8' })
        const files = names.filter((name) => name.startsWith(part)).map((name) => join(vault, name))
        // The test moves the largest table away. The small table has only the second copy of the tenant's keys, and
        // commands do not read this table.
        const [path] = files.sort((left, right) => statSync(right).size - statSync(left).size) as [string]
        const moved = join(place, 'moved')
        renameSync(path, moved)
        const bytes = readFileSync(moved)
        if (kind === 'directory') mkdirSync(path)
        else symlinkSync(moved, path)
        const isHead = part === 'head-'
        const problem = isHead
          ? /head-\w+ .* is not a file/
          : kind === 'link'
            ? /a symbolic link/
            : /is a directory/
        t.match(await run('vault verify'), { code: 7, stdout: problem }, title)
        for (const line of ['token list', 'vault backup b', 'vault copy --to c', 'vault rekey --yes'])
          t.match(await run(line), { code: 7, stderr: problem }, `${title}: ${line}`)
        t.match(await run('vault copy --skip-damaged --to new'), { code: 0 }, title)
        t.same(readFileSync(moved), bytes, 'the file outside of the vault is unchanged')
        rmSync(path, { recursive: true })
        renameSync(moved, path)
        t.match(await run('vault verify'), { code: 0 }, `${title}: the file put back repairs the vault`)
      }
  },
)

t.test('if the directory of tables is missing, the vault counts as damaged', async (t) => {
  for (const isFlushed of [true, false]) {
    const { vault, run } = await createBench(t)
    if (isFlushed) await run('vault compact')
    rmSync(join(vault, 'segments'), { recursive: true })
    for (const line of ['token list', 'vault backup b', 'vault copy --to c'])
      t.match(await run(line), { code: 7, stderr: /segments is missing/ }, line)
    const { code, stdout } = await run('vault verify')
    t.equal(code, 7)
    t.match(JSON.parse(stdout).findings[0], {
      place: 'segments',
      problem: /segments is missing, .*Put it back/,
    })
    // If the vault is flushed, the keys of the tenant are only in the tables in `segments`.
    t.match(await run('vault copy --skip-damaged --to new'), { code: isFlushed ? 7 : 0 })
  }
})
