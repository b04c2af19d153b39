import { execFileSync } from 'node:child_process'
import {
  existsSync,
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
import { openVault } from '../../src/vault/open.js'
import { createVaultHome } from './home.js'

/** A home with a vault; `ask` runs what must succeed. */
async function createBench(t: Test) {
  const home = await createVaultHome(t)
  const ask = async (words: string[], stdin = '') => (await home.json(words, { stdin })) as never
  return { ...home, ask, vault: join(home.place, '.coffer') }
}

type Bench = Awaited<ReturnType<typeof createBench>>

async function fill({ ask }: Bench): Promise<void> {
  for (let index = 0; index < 5; index++) {
    const body = {
      id: `token-${index}`,
      type: 'token',
      data: { name: `Name ${index}` },
      search_indexes: ['{{ data.name }}'],
      metadata: { index: String(index) },
      containers: [`/c${index % 2}/`],
    }
    await ask(['token', 'create'], JSON.stringify(body))
  }
}

const withoutLog = { token: ['token', 'list', '--all', '--reveal'] }

t.test('verify tells a whole vault from a damaged one, and what can still be read', async (t) => {
  const bench = await createBench(t)
  await fill(bench)
  t.match(await bench.ask(['vault', 'verify']), { ok: true, findings: [], readable: { logs: 6 } })
  await bench.ask(['vault', 'compact'])
  t.match(await bench.ask(['vault', 'verify']), { ok: true, findings: [], readable: { logs: 6 } })
  const folder = join(bench.vault, 'segments')
  const file = join(folder, readdirSync(folder)[0]!)
  const bytes = readFileSync(file)
  writeFileSync(file, Buffer.from(bytes).fill(bytes[40]! ^ 1, 40, 41))
  const damaged = await bench.run(['vault', 'verify'])
  t.match(damaged, { code: 7, stderr: /vault is damaged/ })
  const result = JSON.parse(damaged.stdout) as { findings: unknown[] }
  t.match(result, { ok: false, readable: { logs: 6 } })
  t.equal(result.findings.length, 1)
  writeFileSync(file, bytes)
  rmSync(join(bench.vault, 'state'))
  t.equal((await bench.run(['token', 'list'])).code, 7)
  const { code, stdout } = await bench.run(['vault', 'verify'])
  t.equal(code, 7)
  t.match(JSON.parse(stdout), { ok: false, findings: [{ place: 'state' }], readable: { logs: 6 } })
  t.equal(existsSync(join(bench.vault, 'lock')), false, 'looking lets go of the vault')
})

t.test('a backup becomes the same vault again, and opens with what opened it then', async (t) => {
  const bench = await createBench(t)
  await fill(bench)
  const before = await bench.ask(withoutLog.token)
  const backup = join(bench.place, 'b')
  t.match(await bench.ask(['vault', 'backup', 'b']), { file: backup, bytes: statSync(backup).size })
  t.equal(statSync(backup).mode & 0o777, 0o600)
  t.notOk(readFileSync(backup).includes('Name 1'))
  t.match(await bench.run(['vault', 'backup', 'b']), { code: 5 }, 'no file is overwritten')
  await bench.ask(['token', 'delete', 'token-0', '--yes'])
  t.match(await bench.run(['vault', 'restore', 'b']), { code: 5 }, 'nor is a vault')
  await bench.ask(['vault', 'restore', 'b', '--vault', join(bench.place, 'again')])
  const after = await bench.ask([...withoutLog.token, '--vault', join(bench.place, 'again')])
  t.same(after, before)
  const cut = readFileSync(backup).subarray(0, -20)
  writeFileSync(join(bench.place, 'cut'), cut, { mode: 0o600 })
  t.match(await bench.run(['vault', 'restore', 'cut', '--vault', join(bench.place, 'third')]), { code: 7 })
  t.match(
    await bench.run(['token', 'list', '--vault', join(bench.place, 'third')]),
    { code: 6 },
    'and left no vault',
  )
})

t.test('a new passphrase replaces the old one; slots come and go, but never the last', async (t) => {
  const bench = await createBench(t)
  await fill(bench)
  const secret = (name: string, text: string) => {
    writeFileSync(join(bench.place, name), `${text}\n`, { mode: 0o600 })
    return join(bench.place, name)
  }
  const first = secret('first', 'the first passphrase')
  const second = secret('second', 'the second passphrase')
  const opens = async (...flags: string[]) => (await bench.run(['token', 'list', ...flags])).code
  await bench.ask(['vault', 'passwd', '--new-passphrase-file', first])
  t.equal(await opens('--passphrase-file', first), 0)
  await bench.ask(['vault', 'passwd', '--passphrase-file', first, '--new-passphrase-file', second])
  t.equal(await opens('--passphrase-file', first), 6, 'the old one opens nothing')
  t.equal(await opens('--passphrase-file', second), 0)
  t.match(await bench.run(['vault', 'keys', 'add', '--new-passphrase-file', secret('short', 'short')]), {
    code: 2,
  })
  await bench.ask(['vault', 'keys', 'add', '--new-key-file', 'k.key'])
  t.equal(await opens('--key-file', join(bench.place, 'k.key')), 0)
  t.match(
    await bench.run(['vault', 'keys', 'add', '--new-key-file', 'k.key']),
    { code: 5 },
    'no key file is overwritten',
  )
  const slots = (await bench.ask(['vault', 'keys', 'list'])) as { id: string; kind: string }[]
  t.same(
    slots.map(({ kind }) => kind),
    ['key-file', 'passphrase', 'key-file'],
  )
  t.match(await bench.run(['vault', 'keys', 'remove', 'nonesuch']), { code: 3 })
  await bench.ask(['vault', 'keys', 'remove', slots[0]!.id])
  await bench.ask(['vault', 'keys', 'remove', slots[2]!.id, '--passphrase-file', second])
  const last = await bench.run(['vault', 'keys', 'remove', slots[1]!.id], {
    env: { COFFER_PASSPHRASE_FILE: second },
  })
  t.match(last, { code: 5, stderr: /last key slot/ })
  t.equal(await opens('--passphrase-file', second), 0)
})

t.test('a vault has sixteen key slots at most, and no key file is saved beyond them', async (t) => {
  const bench = await createBench(t)
  await fill(bench)
  const add = (name: string) => bench.run(['vault', 'keys', 'add', '--new-key-file', name])
  for (let slot = 2; slot <= 16; slot++) t.equal((await add(`k${slot}`)).code, 0)
  t.match(await add('k17'), { code: 5, stderr: /at most 16 key slots/ })
  t.notOk(existsSync(join(bench.place, 'k17')))
  t.equal((await bench.run(['token', 'list', '--key-file', join(bench.place, 'k16')])).code, 0)
})

t.test('after rekeying everything is there, under other keys, and still found', async (t) => {
  const bench = await createBench(t)
  await fill(bench)
  await bench.ask(['tenant', 'create', 'second'])
  await bench.ask(['token', 'create', '--tenant', 'second'], '{"type":"token","data":"there"}')
  const key = (
    (await bench.ask('app create --name a --type private --permission token:read'.split(' '))) as {
      key: string
    }
  ).key
  await bench.ask(['vault', 'backup', 'old'])
  const before = await bench.ask(withoutLog.token)
  const listSlots = () => bench.ask(['vault', 'keys', 'list']) as Promise<{ id: string }[]>
  const [oldSlot] = await listSlots()
  t.match(await bench.ask(['vault', 'rekey', '--yes']), { dropped_slots: [] })
  const slots = await listSlots()
  t.equal(slots.length, 1)
  t.not(slots[0]?.id, oldSlot!.id, 'no slot gives the old root key')
  t.equal(existsSync(join(bench.vault, 'lock')), false, 'it lets go of the vault')
  t.same(await bench.ask(withoutLog.token), before, 'tokens, fingerprints included')
  t.match(
    await bench.ask(['token', 'search', '--query', 'data:"name 3" AND metadata.index:3 AND container:/c1/*']),
    {
      data: [{ id: 'token-3' }],
    },
  )
  t.match(await bench.ask(['token', 'list', '--tenant', 'second', '--reveal']), { data: [{ data: 'there' }] })
  t.match(
    await bench.run(['token', 'get', 'token-1'], { env: { COFFER_API_KEY: key } }),
    { code: 0 },
    'API keys too',
  )
  t.match(await bench.ask(['vault', 'verify']), { ok: true })
  t.match(await bench.ask(['log', 'verify']), { is_whole: true })
  const config = join(bench.place, 'config', 'coffer', 'keys')
  t.equal(readdirSync(config).length, 1, 'the key file is the same')
})

t.test(
  'while somebody has the vault open for long, commands go through them and give the same',
  async (t) => {
    const bench = await createBench(t)
    await fill(bench)
    const alone = await bench.ask(withoutLog.token)
    t.equal(existsSync(join(bench.vault, 'lock')), false)
    const keyFile = readdirSync(join(bench.place, 'config', 'coffer', 'keys'))[0]!
    const text = readFileSync(join(bench.place, 'config', 'coffer', 'keys', keyFile), 'utf8')
    const server = await openVault(
      { directory: bench.vault, pid: process.pid, notice: () => {}, role: 'server' },
      async () => ({ kind: 'key-file', text }),
    )
    const status: { held_by: object } = await bench.ask(['vault', 'status'])
    t.match(status.held_by, { pid: process.pid, state: 'alive' })
    t.same(await bench.ask(withoutLog.token), alone)
    t.match(await bench.ask(['token', 'create'], '{"id":"via","type":"token","data":1}'), { id: 'via' })
    t.match(await bench.run(['token', 'create'], { stdin: '{"id":"via","type":"token","data":1}' }), {
      code: 5,
    })
    t.match(await bench.run(['token', 'create'], { stdin: '{"type":"card","data":{}}' }), {
      code: 2,
      stderr: /data.number: /,
    })
    t.match(await bench.ask(['vault', 'status']), { tokens: 6 })
    t.match(await bench.ask(['vault', 'verify']), { ok: true })
    await bench.ask(['vault', 'backup', 'running'])
    await bench.ask(['vault', 'keys', 'add', '--new-key-file', 'k.key'])
    t.match(await bench.run(['token', 'list', '--key-file', join(bench.place, 'k.key')]), { code: 0 })
    const found = await server.ask({ operation: 'token get', input: { id: 'via' }, as: { reveal: true } })
    t.match(found, { status: 200, result: { data: 1 } }, 'who has it open sees what they did')
    await server.close()
    t.match(await bench.ask(['token', 'get', 'via', '--reveal']), { data: 1 })
    await bench.ask(['vault', 'restore', 'running', '--vault', join(bench.place, 'copy')])
    t.match(await bench.ask(['vault', 'status', '--vault', join(bench.place, 'copy')]), { tokens: 6 })
  },
)

t.test(
  'what stands in the place of a file or a directory of the vault is refused, never waited for',
  async (t) => {
    const bench = await createBench(t)
    await fill(bench)
    await bench.ask(['vault', 'compact'])
    const head = join(bench.vault, readdirSync(bench.vault).find((name) => name.startsWith('head-'))!)
    const bytes = readFileSync(head)
    rmSync(head)
    execFileSync('mkfifo', ['-m', '600', head])
    t.match(await bench.run(['token', 'list']), { code: 1, stderr: /head-\w+: it is no file/ })
    rmSync(head)
    writeFileSync(head, bytes, { mode: 0o600 })
    t.equal((await bench.run(['token', 'list'])).code, 0)
    const segments = join(bench.vault, 'segments')
    renameSync(segments, join(bench.place, 'elsewhere'))
    symlinkSync(join(bench.place, 'elsewhere'), segments)
    t.match(await bench.run(['token', 'list']), { code: 6, stderr: /segments is not a plain directory/ })
  },
)
