/** A copy of a vault between directories, stores and backups is either complete or creates no vault. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { KINDS } from '../../src/domain/records/records.js'
import type { App } from '../../src/vault/app.js'
import { copyVault, restoreVault } from '../../src/vault/copy.js'
import { createVault, openVault } from '../../src/vault/open.js'
import { rekey } from '../../src/vault/rekey.js'
import { query, startPostgres } from '../storage/postgres-server.js'
import { fillCardAreas, NUMBER, readCardAreas } from '../support/card-areas.js'
import { waitFor } from '../support/process.js'
import { ask, createKey, locate } from '../support/vault.js'

const server = await startPostgres()
const place = mkdtempSync(join(tmpdir(), 'coffer-moving-'))
t.teardown(async () => {
  await server.stop()
  rmSync(place, { recursive: true, force: true })
})

const CHILD = fileURLToPath(new URL('copy-child.js', import.meta.url))
let count = 0
const newDirectory = () => join(place, `vault-${++count}`)
const nothing = () => {}
/** The number of tokens, which is more than one batch of the copy can hold. */
const TOKENS = 520

/** Creates a vault at `address` that has at least one record of every kind. */
async function fill(address: string, tokens = 40) {
  const key = createKey()
  const app = await createVault(locate(address), 'first', key.create)
  const many = Array.from({ length: tokens }, (_, index) => [
    `at${index}`,
    { id: `many-${index}`, type: 'token', data: `data of ${index}` },
  ])
  await ask(app, 'token tokenize', { payload: Object.fromEntries(many) })
  const search_indexes = ['{{ data.number | last4 }}']
  const card = { id: 'card', type: 'card', data: { number: '4242424242424242' }, search_indexes }
  await ask(app, 'token create', { ...card, metadata: { order: 'one' } })
  await ask(app, 'token update', { id: 'card', metadata: { order: 'two' } })
  await ask(app, 'token create', { id: 'gone', type: 'token', data: 'x' })
  await ask(app, 'token delete', { id: 'gone' })
  await ask(app, 'app create', { name: 'app', type: 'private', permissions: ['token:read'] })
  await ask(app, 'tenant create', { name: 'second' })
  await fillCardAreas(app)
  return { app, key }
}

/**
 * Returns all content of a vault that operations show: all log records, all tokens, and the results of searches.
 */
async function look(app: App) {
  const list = async (operation: string, input = {}) => {
    const seen = []
    for (let page = 1; ; page++) {
      const { data, pagination } = await ask(app, operation, { page, size: 100, ...input })
      seen.push(...data)
      if (page >= pagination.total_pages) return seen
    }
  }
  return {
    logs: await list('log list'),
    tokens: await list('token list'),
    found: (await ask(app, 'token search', { query: 'data:4242' })).data,
    applications: await list('app list'),
    tenants: await list('tenant list').catch(() => []),
    cardAreas: await readCardAreas(app),
  }
}

type Key = ReturnType<typeof createKey>
type Seen = Awaited<ReturnType<typeof look>>

async function check(t: Test, address: string, key: Key, before: Seen) {
  const app = await openVault(locate(address), key.choose)
  const after = await look(app)
  for (const what of Object.keys(before) as (keyof Seen)[]) {
    // The test compares only the newest log records, because reading adds records to the log.
    const rest = what === 'logs' ? after.logs.slice(-before.logs.length) : after[what]
    t.strictSame(rest, before[what], what)
  }
  t.ok(before.found.length === 1 && before.tokens.length > 40, 'the vault was not empty')
  for (const tenant of ['first', 'second']) {
    const { number } = await app.tenant(tenant)
    t.equal((await app.store.verifyLogs(number)).brokenAt, undefined, `the log of ${tenant} verifies`)
  }
  t.strictSame((await app.maintenance().verify()).findings, [])
  t.equal((await ask(app, 'token create', { id: 'later', type: 'token', data: 'y' })).id, 'later')
  t.equal(
    (await ask(app, 'token list', { size: 1 })).data[0].id,
    'later',
    'a token that is created in the copy is the newest token',
  )
  await app.close()
}

t.test(
  'a copy of a vault includes pending log records, even if other processes write meanwhile',
  async (t) => {
    const store = await server.createDatabase()
    const { app, key } = await fill(store)
    let isOver = false
    const made: string[] = []
    const writing = (async () => {
      for (let index = 0; !isOver; index++) {
        const id = `during-${index}`
        await ask(app, 'token create', { id, type: 'token', data: id })
        made.push(id)
      }
    })()
    const targets = [await server.createDatabase(), newDirectory()]
    for (const to of targets) {
      while (made.length < 5) await new Promise((resolve) => setImmediate(resolve))
      await copyVault(locate(store), locate(to), key.choose, nothing)
    }
    isOver = true
    await writing
    await app.close()
    for (const to of targets) {
      const copy = await openVault(locate(to), key.choose)
      const { tokens, logs } = await look(copy)
      const created = logs.filter(({ message }) => message === 'Token created')
      const named = created.map(({ entity_id }) => entity_id)
      t.strictSame(
        named.sort(),
        [...tokens.map(({ id }) => id), 'gone'].sort(),
        'each token has its log record',
      )
      t.strictSame((await copy.maintenance().verify()).findings, [])
      await copy.close()
    }
  },
)

/**
 * For each of `moments`, starts a process that copies the vault, and kills the process at this moment. Returns the
 * number of kills.
 */
async function killCopies(
  from: string,
  to: string,
  key: Key,
  moments: readonly (readonly [effect: string, number: number])[],
  between: () => Promise<unknown> = async () => {},
): Promise<number> {
  let kills = 0
  for (const [effect, number] of moments) {
    const words = [CHILD, from, to, effect, String(number)]
    const env = { ...process.env, COPY_KEY: (await key.choose()).text }
    const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'ignore', 'pipe'] })
    const { code, signal, stderr } = await waitFor(child)
    if (code === 0) return kills
    if (signal !== 'SIGKILL') throw new Error(stderr)
    kills++
    await between()
  }
  return kills
}

t.test('a copy that is killed leaves no vault and can be repeated', async (t) => {
  const first = newDirectory()
  const { app, key } = await fill(first, TOKENS)
  const before = await look(app)
  const backup = join(place, 'killed.backup')
  t.ok((await app.maintenance().backup(backup)) > 1000)
  await t.rejects(app.maintenance().backup(backup), { code: 'conflict' })
  await t.rejects(app.maintenance().backup(join(place, 'none', 'file')), { code: 'storage_failed' })
  await app.close()
  const [store, other] = [await server.createDatabase(), await server.createDatabase()]
  const made: string[] = []
  for (const [from, to, moments] of [
    // These copies are killed while the tables are emptied, between two batches, while the copy is read again, and
    // before the commit.
    [first, store, [2, 4, 6, 8].map((number) => ['send', number] as const)],
    // These copies are killed before the file `state` exists, and before the header is written.
    [store, newDirectory(), [1, 2].map((number) => ['rename', number] as const)],
    [store, other, [['send', 4]]],
    [backup, newDirectory(), [1, 2].map((number) => ['rename', number] as const)],
    [backup, await server.createDatabase(), [4, 8].map((number) => ['send', number] as const)],
  ] as const) {
    const kills = await killCopies(from, to, key, moments, async () => {
      await t.rejects(openVault(locate(to), key.choose), { code: 'vault_missing' })
    })
    t.equal(kills, moments.length, `the copy from ${from} to ${to} can be repeated`)
    const steps: [number, number][] = []
    const note = (...step: [number, number]) => steps.push(step)
    if (from === backup) await restoreVault(locate(to), from, key.choose, note)
    else {
      const { count } = await copyVault(locate(from), locate(to), key.choose, note)
      t.ok(count > TOKENS, `${count} rows`)
      t.ok(steps.every(([done, total]) => done <= total))
    }
    await t.rejects(copyVault(locate(first), locate(to), key.choose, nothing), { code: 'conflict' })
    await t.rejects(restoreVault(locate(to), backup, key.choose, nothing), { code: 'conflict' })
    made.push(to)
  }
  for (const to of made) await check(t, to, key, before)
})

t.test('a copy of a damaged store has every readable row, and reports the unreadable rows', async (t) => {
  const store = await server.createDatabase()
  const { app, key } = await fill(store)
  const { number } = await app.tenant('first')
  await app.maintenance().compact()
  const second = await openVault(locate(store), key.choose)
  await ask(second, 'token create', { id: 'by-second', type: 'token', data: 'x' })
  await second.maintenance().compact()
  const before = await look(second)
  const listed = await second.store.read((reader) => reader.get('tenant', 0, String(number)))
  t.strictSame(listed?.log_chains, [1, 2])
  await app.close()
  await second.close()
  const damage = (which: string, kind: number) =>
    query(
      store,
      `update coffer_rows set sealed = sealed || '\\x00' where tenant = $1 and kind = $2 and seq =
       (select ${which}(seq) from coffer_rows where tenant = $1 and kind = $2)`,
      [number, kind],
    )
  await damage('min', KINDS.token)
  await damage('max', KINDS.log_block)
  const target = newDirectory()
  const left = { findings: [], skipped: {} as Record<string, number>, lost_tenants: [] }
  await copyVault(locate(store), locate(target), key.choose, nothing, left)
  t.match(left.skipped, { token: 1, log_block: 1 })
  const opened = await openVault(locate(target), key.choose)
  const after = await look(opened)
  t.equal(after.tokens.length, before.tokens.length - 1)
  t.match(after.logs[0], { message: 'Vault copied without damaged records; log records may be missing' })
  t.strictSame((await opened.maintenance().verify()).findings, [])
  await opened.close()
})

t.test('if two processes copy into one store at the same time, one of the two is refused', async (t) => {
  const first = newDirectory()
  const { app, key } = await fill(first)
  const before = await look(app)
  const backup = join(place, 'twice.backup')
  await app.maintenance().backup(backup)
  await app.close()
  const address = await server.createDatabase()
  const copy = () => copyVault(locate(first), locate(address), key.choose, nothing)
  const both = await Promise.allSettled([copy(), restoreVault(locate(address), backup, key.choose, nothing)])
  t.strictSame(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  t.match(
    both.find(({ status }) => status === 'rejected'),
    { reason: { code: 'conflict' } },
  )
  await check(t, address, key, before)
})

t.test(
  'after a copy and a rekey of the copy, in a directory or a store, everything can be read and found',
  async (t) => {
    const first = newDirectory()
    const { app, key } = await fill(first)
    const before = await look(app)
    await app.close()
    for (const to of [newDirectory(), await server.createDatabase()]) {
      await copyVault(locate(first), locate(to), key.choose, nothing)
      await rekey(locate(to), key.choose, nothing)
      const copy = await openVault(locate(to), key.choose)
      const [{ id }] = before.cardAreas.networkTokens
      const again = await ask(copy, 'network-token create', {
        data: { number: NUMBER, expiration_month: 1, expiration_year: 2040 },
      })
      t.match(again, { id, _extras: { deduplicated: true } }, 'the card is found by its number')
      await t.rejects(ask(copy, 'tenant merchant create', { name: 'shop' }), { code: 'conflict' })
      await copy.close()
      await check(t, to, key, before)
    }
  },
)
