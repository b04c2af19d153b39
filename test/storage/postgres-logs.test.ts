/** Log records and what servers believe over PostgreSQL, where answers are lost and tables are changed behind our back. */
import t, { type Test } from 'tap'
import { createKeyring } from '../../src/crypto/keyring.js'
import { createRandom } from '../../src/crypto/random.js'
import { loadSodium } from '../../src/crypto/sodium.js'
import { CofferError } from '../../src/errors.js'
import { authenticate } from '../../src/framework/authenticate.js'
import { withCertainty } from '../../src/framework/belief.js'
import { resultOf } from '../../src/framework/outcome.js'
import { perform } from '../../src/framework/perform.js'
import { registry } from '../../src/operations/all.js'
import { KEPT_KINDS } from '../../src/storage/barrier/record-cache.js'
import { openPostgresEngine } from '../../src/storage/postgres/engine.js'
import { Connection, ConnectionPool } from '../../src/storage/postgres/pool.js'
import { type App, createApp, createFirstTenant } from '../../src/vault/app.js'
import { createTables, sharedDatabase } from './postgres-server.js'

/** A new vault, open as often as asked; `run` sends SQL, and `notices` has what the operator is told. */
async function openVaults(t: Test, count: number) {
  const config = await createTables(await sharedDatabase())
  const [primitives, random] = [await loadSodium(), createRandom()]
  const root = random.bytes(32)
  const notices: string[] = []
  const apps: App[] = []
  const open = async () => {
    const keyring = createKeyring(primitives, random, root)
    const engine = await openPostgresEngine({
      pool: new ConnectionPool(config),
      clock: Date.now,
      random,
      remembered: KEPT_KINDS,
      notice: (text) => notices.push(text),
    })
    const app = createApp({ engine, keyring, random, header: undefined, primitives })
    if (apps.length === 0) await createFirstTenant(app, 'first')
    apps.push(app)
    return { app, engine }
  }
  const opened = [await open()]
  while (opened.length < count) opened.push(await open())
  const pool = new ConnectionPool(config)
  t.teardown(() => Promise.allSettled([...apps, pool].map((each) => each.close())))
  const run = async (text: string, values: unknown[] = []) => (await pool.query({ text, values })).rows
  return { opened, open, run, notices, tenant: (await apps[0]!.tenant()).number }
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the operation answers.
const ask = async (app: App, operation: string, input: Record<string, unknown>): Promise<any> =>
  resultOf(await app.ask({ operation, input, as: { reveal: true } }))

const isWaiting = (statements: readonly { text: string }[]) =>
  statements.some(({ text }) => text.includes('insert into coffer_waiting'))

/** Until the end of the test, what answers to all that is sent goes through `answer`. */
function intercept(t: Test, answer: (statements: readonly { text: string }[]) => void) {
  const { send } = Connection.prototype
  Connection.prototype.send = async function (statements) {
    const results = await send.call(this, statements)
    answer(statements)
    return results
  }
  t.teardown(() => {
    Connection.prototype.send = send
  })
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20))

t.test('what was logged is in the log once, though the answer that took it was lost', async (t) => {
  const { opened, tenant, notices } = await openVaults(t, 1)
  const { app, engine } = opened[0]!
  await ask(app, 'token create', { id: 'read', type: 'token', data: 'x' })
  await engine.fold()
  const { count } = await app.store.verifyLogs(tenant)
  let lost = 0
  intercept(t, (statements) => {
    if (!isWaiting(statements) || lost >= 5) return
    lost++
    throw new CofferError('unavailable', 'The store does not answer.')
  })
  await ask(app, 'token get', { id: 'read' })
  for (let left = 10; left > 0 && lost < 5; left--) await engine.send().catch(() => undefined)
  t.equal(lost, 5)
  await ask(app, 'token get', { id: 'read' })
  await engine.send()
  await engine.fold()
  t.strictSame(await app.store.verifyLogs(tenant), { count: count + 2 })
  t.strictSame(notices, [], 'nothing that a second attempt does not help')
  await app.close()
})

t.test('what keeps log records from the log is reported, once', async (t) => {
  const { opened, notices } = await openVaults(t, 1)
  const { app } = opened[0]!
  await ask(app, 'token create', { id: 'read', type: 'token', data: 'x' })
  let failed = 0
  intercept(t, (statements) => {
    if (!isWaiting(statements)) return
    failed++
    throw new CofferError('internal', 'The store does not take a statement (00000).')
  })
  await ask(app, 'token get', { id: 'read' })
  for (let left = 1000; left > 0 && failed < 2; left--) await pause()
  t.match(notices, [/^New log records are not in the log yet, and are tried again\. The store does not take/])
  t.equal(notices.length, 1)
})

t.test('a key that was deleted is refused, though the store has lost the last change before', async (t) => {
  const { opened, run } = await openVaults(t, 2)
  const [one, two] = opened.map(({ app }) => app) as [App, App]
  const get = registry.find('token get')!
  const permissions = ['token:read']
  const { id, key } = await ask(one, 'app create', { name: 'app', type: 'private', permissions })
  await ask(one, 'token create', { id: 'read', type: 'token', data: 'x' })
  const read = async (app: App) => {
    try {
      const caller = await authenticate(app, key, { believes: true })
      return (await withCertainty(caller, (known) => perform(app, known, get, { id: 'read' }, 'trace')))
        .status
    } catch (error) {
      return (error as CofferError).code
    }
  }
  await ask(two, 'token create', { id: 'other', type: 'token', data: 'x' })
  // Each has its chain, and makes no further change by it.
  for (const { engine } of opened) await engine.fold()
  const tables = ['coffer_rows', 'coffer_keys', 'coffer_state']
  for (const table of tables) await run(`create table kept_${table} as select * from ${table}`)
  await ask(two, 'tenant update', { name: 'second' })
  t.strictSame([await read(one), await read(one)], [200, 200])
  for (const table of tables) {
    await run(`delete from ${table}`)
    await run(`insert into ${table} select * from kept_${table}`)
  }
  await ask(two, 'app delete', { id })
  t.strictSame([await read(one), await read(two)], ['unauthenticated', 'unauthenticated'])
})
