/**
 * Card security codes when a vault is closed, backed up, copied, rekeyed or restored. The tests use vaults in files, in
 * PostgreSQL and in memory.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { copyVault, restoreVault } from '../../src/vault/copy.js'
import { createVault, openEphemeral, openVault } from '../../src/vault/open.js'
import { rekey } from '../../src/vault/rekey.js'
import { startPostgres } from '../storage/postgres-server.js'
import { ask, createKey, locate } from '../support/vault.js'

const START = Date.parse('2030-01-15T12:00:00Z')
const HOUR_MS = 60 * 60 * 1000
const NUMBER = '4242424242424242'

const server = await startPostgres()
const place = mkdtempSync(join(tmpdir(), 'coffer-codes-'))
t.teardown(async () => {
  await server.stop()
  rmSync(place, { recursive: true, force: true })
})
let count = 0
const newDirectory = async () => join(place, `vault-${++count}`)

type Key = ReturnType<typeof createKey>

/** Creates a vault with a card whose mask shows the security code. A search finds the card by its number. */
async function create(address: string): Promise<Key> {
  const key = createKey()
  const app = await createVault(
    locate(address, () => START),
    'first',
    key.create,
  )
  const data = { number: NUMBER, cvc: '123' }
  const more = { mask: { code: '{{ data.cvc }}' }, search_indexes: ['{{ data.number | last4 }}'] }
  await ask(app, 'token create', { id: 'card', type: 'card', data, ...more })
  await app.close()
  return key
}

/**
 * Opens a vault at a given time, sweeps the vault if `sweeps` is true, and returns the card code that the vault shows.
 */
async function codeAt(address: string, key: Key, ms: number, sweeps = false): Promise<string | undefined> {
  const app = await openVault(
    locate(address, () => START + ms),
    key.choose,
  )
  try {
    if (sweeps) await app.sweep()
    const { data } = (await ask(app, 'token search', { query: 'data:4242' })).data[0]
    const shown = await app.ask({ operation: 'token get', input: { id: 'card' }, as: { reveal: false } })
    const masked = (shown.result as unknown as { data: { code: string | null } }).data.code ?? undefined
    if (masked !== data.cvc) throw new Error(`the mask shows ${masked}, and the data ${data.cvc}`)
    return data.cvc
  } finally {
    await app.close()
  }
}

async function checkEnd(t: Test, address: string, key: Key): Promise<void> {
  t.equal(await codeAt(address, key, HOUR_MS - 1), '123')
  t.equal(await codeAt(address, key, HOUR_MS), undefined, 'not swept')
  t.equal(await codeAt(address, key, HOUR_MS - 1), '123', 'the code is not erased yet')
  t.equal(await codeAt(address, key, HOUR_MS, true), undefined)
  t.equal(await codeAt(address, key, HOUR_MS - 1), undefined, 'erased')
}

for (const [name, newAddress] of [
  ['in files', newDirectory],
  ['in PostgreSQL', () => server.createDatabase()],
] as const)
  t.test(`after a backup, a copy, a restore or a rekey ${name}, a card code expires on time`, async (t) => {
    const address = await newAddress()
    const key = await create(address)
    const at = (ms: number) => locate(address, () => START + ms)

    const app = await openVault(at(1), key.choose)
    const file = join(place, `backup-${++count}`)
    await ask(app, 'vault backup', { file })
    await app.close()
    const copied = await newAddress()
    await copyVault(at(1), locate(copied), key.choose, () => undefined)

    await checkEnd(t, address, key)
    await checkEnd(t, copied, key)
    const restored = await newAddress()
    await restoreVault(locate(restored), file, key.choose, () => undefined)
    await checkEnd(t, restored, key)

    const renewed = await newAddress()
    await restoreVault(locate(renewed), file, key.choose, () => undefined)
    await rekey(
      locate(renewed, () => START + 1),
      key.choose,
      () => undefined,
    )
    await checkEnd(t, renewed, key)

    const later = await newAddress()
    await restoreVault(locate(later), file, key.choose, () => undefined)
    const days = 48 * HOUR_MS
    t.equal(
      await codeAt(later, key, days, true),
      undefined,
      'after the vault was closed for a long time, no read shows the code',
    )
    t.equal(await codeAt(later, key, days + HOUR_MS + 1, true), undefined)
    t.equal(await codeAt(later, key, HOUR_MS - 1), undefined, 'the code is erased once the clock is trusted')
  })

t.test('restoring a state in memory also restores the card codes for all later units of work', async (t) => {
  let now = START
  const memory = await openEphemeral({ tenantName: 'first', clock: () => now })
  const { app } = memory
  t.teardown(() => app.close())
  await ask(app, 'token create', { id: 'card', type: 'card', data: { number: NUMBER, cvc: '123' } })
  const state = await memory.save()
  now += 2 * HOUR_MS
  const readCode = async () =>
    ((await app.store.read((reader) => reader.get('token', 1, 'card')))!.data as { cvc?: string }).cvc
  const [before, , after] = await Promise.all([readCode(), memory.restore(state), readCode()])
  t.same([before, after], [undefined, '123'])
})
