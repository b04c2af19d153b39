/**
 * `vault copy --skip-damaged` creates a working vault from the readable part of a damaged vault, and reports what is
 * lost.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createVaultHome, ruleOf } from './home.js'

const SECRET = 'secret-of-token'

/**
 * Creates a vault with five tokens, two links and an application. All these records are in the log unless `isFlushed`
 * is true.
 */
async function createBench(t: Test, isFlushed = false) {
  const home = await createVaultHome(t)
  for (let index = 1; index <= 5; index++)
    await home.createToken({
      ...{ id: `tok-${index}`, data: `${SECRET} ${index}`, containers: [`/c${index}/`] },
      search_indexes: ['{{ data }}'],
    })
  for (const child of ['tok-2', 'tok-3']) await home.run(['token', 'link', 'tok-1', child])
  const rules = [1, 2].map((priority) => ruleOf('reveal', { priority, container: `/c${priority}/` }))
  const { key } = await home.createApp({ rules })
  if (isFlushed) await home.json(['vault', 'compact'])
  /** Runs a command in the copy of the vault. */
  const after = async (line: string) => (await home.json(`${line} --vault new`)) as never
  return { home, vault: join(home.place, '.coffer'), key, after }
}

function breakByte(path: string, at: number): void {
  const bytes = readFileSync(path)
  bytes[at]! ^= 1
  writeFileSync(path, bytes)
}

/** Returns the offset of each frame of the log. */
function framesOf(vault: string): { path: string; starts: number[] } {
  const path = join(vault, readdirSync(vault).find((name) => name.startsWith('journal-'))!)
  const bytes = readFileSync(path)
  const starts: number[] = []
  for (let at = 0; at < bytes.length; at += 8 + bytes.readUInt32LE(at)) starts.push(at)
  return { path, starts }
}

async function copy({ home, vault }: Awaited<ReturnType<typeof createBench>>) {
  const list = () =>
    readdirSync(vault, { recursive: true, encoding: 'utf8' })
      .filter((name) => name !== 'lock')
      .sort()
      .join()
  const before = list()
  const { code, stdout, stderr } = await home.run(`vault copy --skip-damaged --vault ${vault} --to new`)
  if (code !== 0) throw new Error(stderr)
  if (`${stdout}${stderr}`.includes(SECRET)) throw new Error('data on the screen')
  if (before !== list()) throw new Error('the damaged vault was changed')
  return { report: JSON.parse(stdout), stderr }
}

t.test('if one byte of a new vault is damaged, nearly everything is copied', async (t) => {
  const bench = await createBench(t)
  const { home, vault, key, after } = bench
  const { path, starts } = framesOf(vault)
  // The first frame has the vault and its tenant. The next frames have five tokens, two links, and the application.
  breakByte(path, starts[3]! + 100)
  const advice = /vault verify.*vault copy --skip-damaged --to/s
  t.match(await home.run('token list'), { code: 7, stderr: advice })
  const verified = await home.run('vault verify')
  const told = /1\d records and \d+ log records can still be read.*copy --skip-damaged/s
  t.match(verified, { code: 7, stderr: told })
  const { readable } = JSON.parse(verified.stdout)
  t.ok(readable.records >= 16, `${readable.records} readable`)

  const { report, stderr } = await copy(bench)
  t.match(report, { skipped: { changes: 3, association: 1 } })
  t.match(stderr, /\d rows were left out.*keep it until you have checked/s)
  const { data } = (await after('token list --reveal')) as { data: { data: string }[] }
  t.same(
    data.map(({ data }) => data),
    [5, 4, 2, 1].map((n) => `${SECRET} ${n}`),
  )
  const children = { pagination: { total_items: 1 }, data: [{ id: 'tok-2' }] }
  t.match(await after('token children tok-1'), children)
  t.match(await after('vault verify'), { ok: true, findings: [] })
  t.match(await after('log verify'), { is_whole: true })
  const message = /^Vault copied without damaged records; log records may be missing/
  t.match(await after('log list --entity-type tenant'), { data: [{ message }] })
  const asKey = { env: { COFFER_API_KEY: key } }
  t.match(await home.json('token list --vault new', asKey), { pagination: { total_items: 2 } })
  await home.json('token create --vault new', { stdin: '{"id":"tok-3","type":"token","data":"anew"}' })
  t.match(await after('token children tok-1'), children, 'no old link points to the new token')
  t.match(
    await home.run(['vault', 'copy', '--skip-damaged', '--to', vault]),
    { code: 5 },
    'an existing vault is not overwritten',
  )
})

t.test(
  'the readable part of damaged tables is copied, and missing records that a vault requires are created',
  async (t) => {
    const bench = await createBench(t, true)
    const { vault, after, home, key } = bench
    const folder = join(vault, 'segments')
    const path = join(folder, readdirSync(folder)[0]!)
    const sound = readFileSync(path)
    const totals: number[] = []
    for (let at = 20; at < sound.length - 700; at += Math.floor(sound.length / 12)) {
      breakByte(path, at)
      const { report } = await copy(bench)
      const { token = 0, tenant = 0, settings = 0, application = 0, api_key = 0 } = report.skipped
      t.match(await after('vault verify'), { ok: true }, `the copy works after damage at ${at}`)
      if (tenant === 0 && report.skipped.unknown === undefined) {
        t.match(await after('token list'), { pagination: { total_items: 5 - token } })
        t.match(await after('log verify'), { is_whole: true })
        const { code } = await home.run(['token', 'get', 'tok-1', '--vault', 'new'], {
          env: { COFFER_API_KEY: key },
        })
        if (token === 0)
          t.equal(
            code,
            settings + application + api_key === 0 ? 0 : 4,
            'the API key is accepted, or its loss is reported',
          )
        totals.push(5 - token)
      }
      rmSync(join(home.place, 'new'), { recursive: true })
      writeFileSync(path, sound)
    }
    t.ok(totals.length > 6 && totals.every((count) => count >= 4), `${totals}`)
  },
)

t.test('a vault without its state or its log head can be copied', async (t) => {
  const young = await createBench(t)
  for (const name of readdirSync(young.vault))
    if (name === 'state' || name.startsWith('head-')) rmSync(join(young.vault, name))
  t.match((await copy(young)).report, {
    findings: [{ place: 'state' }, { place: 'the write-ahead log', problem: /head-\w+ is missing/ }],
  })
  t.match(await young.after('token list'), { pagination: { total_items: 5 } })

  const flushed = await createBench(t, true)
  await flushed.home.json(['token', 'update', 'tok-1'], { stdin: '{"metadata":{"a":"b"}}' })
  await flushed.home.json(['vault', 'compact'])
  rmSync(join(flushed.vault, 'state'))
  t.match((await copy(flushed)).report, { findings: [{ place: 'state' }] })
  t.match(
    await flushed.after('token get tok-1'),
    { metadata: { a: 'b' } },
    'the copy has the newest version of the token',
  )
  t.match(await flushed.after('log verify'), { is_whole: true })
})

/** Damages both copies of the first tenant's record. Returns a function that repairs both copies. */
function breakFirstTenant(vault: string): () => void {
  const folder = join(vault, 'segments')
  const tables = readdirSync(folder).map((name) => ({
    path: join(folder, name),
    bytes: readFileSync(join(folder, name)),
  }))
  // The smallest table contains only the second copies of keys. The first record in a table is the oldest record.
  const [copies] = tables.toSorted((left, right) => left.bytes.length - right.bytes.length)
  const record = copies!.bytes.subarray(0, 64)
  const places = tables.map(({ path, bytes }) => ({ path, at: bytes.indexOf(record) }))
  const found = places.filter(({ at }) => at >= 0)
  if (found.length !== 2) throw new Error(`${found.length} copies`)
  const flip = () => {
    for (const { path, at } of found) breakByte(path, at + 40)
  }
  flip()
  return flip
}

t.test(
  'if the keys of the only tenant are lost, the error names the tenant, and nothing is copied',
  async (t) => {
    const { vault, home } = await createBench(t, true)
    const repair = breakFirstTenant(vault)
    const loss =
      /The keys of tenant number 1 are lost, so none of its \d+ rows can be read\. Restore a backup/
    const verified = await home.run('vault verify')
    t.equal(verified.code, 7)
    const { findings } = JSON.parse(verified.stdout) as { findings: { place: string; problem: string }[] }
    t.match(
      findings.filter(({ place }) => place === 'tenant 1'),
      [{ problem: loss }],
    )
    t.equal(findings.length, 3, 'the tenant, and the two copies of its record')
    const copied = await home.run(`vault copy --skip-damaged --vault ${vault} --to new`)
    t.match(copied, { code: 7, stdout: '', stderr: loss })
    t.match(copied.stderr, /No tenant of the vault can be read, so nothing was copied/)
    t.notOk(existsSync(join(home.place, 'new')))
    repair()
    t.match(await home.json('vault verify'), { ok: true })
  },
)

t.test(
  'if the keys of one tenant are lost, the report counts the rows of this tenant, and the other tenants are copied',
  async (t) => {
    const bench = await createBench(t, true)
    const { vault, home, after } = bench
    const { id: other } = (await home.json('tenant create other')) as { id: string }
    await home.json(['token', 'create', '--tenant', other], {
      stdin: '{"id":"tok-other","type":"token","data":"kept"}',
    })
    await home.json('vault compact')
    breakFirstTenant(vault)
    const { report, stderr } = await copy(bench)
    t.match(report.lost_tenants, [{ tenant: 1 }])
    const [{ rows }] = report.lost_tenants
    t.ok(rows > 8, `${rows} rows`)
    t.match(report.skipped, { token: 5, association: 2, tenant: 1 })
    t.ok(stderr.includes(`The keys of tenant number 1 are lost, so none of its ${rows} rows can be read.`))
    t.match(await after('tenant list'), [{ id: other }])
    t.match(await after('token get tok-other --reveal'), { data: 'kept' })
    t.match(await after('vault verify'), { ok: true })
  },
)

t.test(
  'the keys of a tenant survive the loss of any single table, and the keys of a deleted tenant do not come back',
  async (t) => {
    const bench = await createBench(t, true)
    const { vault, home, after } = bench
    await home.json('tenant create other')
    await home.json('tenant create third')
    await home.json('vault compact')
    await home.json('tenant delete --yes --tenant other')
    const folder = join(vault, 'segments')
    const names = readdirSync(folder)
    t.ok(names.length >= 2, `${names.length} tables`)
    for (const name of names) {
      const path = join(folder, name)
      const sound = readFileSync(path)
      writeFileSync(path, Buffer.alloc(sound.length))
      t.match(await home.run('vault verify'), { code: 7 })
      await copy(bench)
      const tenants = (await after('tenant list')) as { name: string }[]
      const others = tenants.map(({ name }) => name).filter((name) => name === 'other' || name === 'third')
      t.same(others, ['third'], `without ${name}`)
      t.match(await after('vault verify'), { ok: true })
      await home.json('token create --vault new', { stdin: '{"id":"tok-9","type":"token","data":"anew"}' })
      rmSync(join(home.place, 'new'), { recursive: true })
      writeFileSync(path, sound)
    }
  },
)
