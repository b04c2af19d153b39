/** Vaults of every format there ever was: they open for ever, show what they showed, and can be worked on. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { PRESENT_DIGEST } from '../../src/crypto/digest.js'
import { TOKEN_TYPE_NAMES } from '../../src/domain/token/token-types.js'
import { FORMAT } from '../../src/storage/vault-file.js'
import {
  API_KEY_FILE,
  copyFrozen,
  EXPECTED_FILE,
  FROZEN_VAULTS,
  PASSPHRASE_FILE,
  placeIn,
  READING_TIME,
  readEverything,
  VAULT,
  withoutDerived,
} from './frozen.js'

const formats = readdirSync(FROZEN_VAULTS).filter((name) => /^\d+$/.test(name))
const DAY_MS = 24 * 3600 * 1000

t.test('there is a frozen vault of the present format, and it holds what a vault can hold', async (t) => {
  t.ok(formats.includes(String(FORMAT)))
  const vault = join(FROZEN_VAULTS, String(FORMAT), VAULT)
  const names = readdirSync(vault, { recursive: true, encoding: 'utf8' })
  for (const start of ['journal-', 'segments/r-'])
    t.ok(
      names.some((name) => name.startsWith(start)),
      start,
    )
  const wal = names.find((name) => name.startsWith('journal-'))!
  t.ok(statSync(join(vault, wal)).size > 4096, 'with more in the log than the read of a tenant')
  const { tenants, status } = readExpected(String(FORMAT))
  const types = new Set(tenants.first.tokens.map(({ type }: { type: string }) => type))
  t.strictSame([...types].sort(), [...TOKEN_TYPE_NAMES].sort(), 'tokens of every type')
  t.strictSame(
    status.key_slots.map(({ kind }: { kind: string }) => kind),
    ['key-file', 'passphrase'],
  )
  const ids = tenants.first.tokens.map(({ id }: { id: string }) => id)
  t.notOk(ids.includes('soon-gone') || ids.includes('deleted-1'), 'neither expired nor deleted')
  for (const part of ['applications', 'invitations', 'members', 'children'])
    t.ok(tenants.first[part].length > 0, part)
  t.equal(tenants.second.tokens.length, 2)
})

for (const format of formats) {
  const openCopy = (t: Test, time = READING_TIME) => {
    const copy = copyFrozen(join(FROZEN_VAULTS, format))
    t.teardown(copy.remove)
    return placeIn(copy.directory, () => time)
  }

  t.test(`format ${format} shows by its key file what it showed when it was frozen`, async (t) => {
    t.strictSame(await readEverything(openCopy(t)), readExpected(format))
  })

  t.test(`format ${format} opens by its passphrase and by its API key`, async (t) => {
    const { directory } = openCopy(t)
    const opener = { COFFER_PASSPHRASE_FILE: join(directory, PASSPHRASE_FILE) }
    const { json } = placeIn(directory, () => READING_TIME, opener)
    const { tokens } = readExpected(format).tenants.first
    t.strictSame(withoutDerived((await json(['token', 'list', '--all', '--reveal'])).data), tokens)
    const key = readFileSync(join(directory, API_KEY_FILE), 'utf8').trim()
    const byKeyFile = placeIn(directory, () => READING_TIME)
    const env = { COFFER_API_KEY: key }
    t.match(await byKeyFile.json(['token', 'get', 'ssn-1'], { env }), { data: 'XXX-XX-6789' })
    const found = await byKeyFile.json(['token', 'search', '--query', 'data:ADA@example.com'], { env })
    t.match(found, { pagination: { total_items: 1 }, data: [{ id: 'mail-1' }] }, 'search indexes fit')
    t.match(await byKeyFile.run(['token', 'delete', 'ssn-1', '--yes'], { env }), { code: 4 })
  })

  t.test(`format ${format} has keys beside the one that it was frozen with`, async (t) => {
    const { directory, json, run } = openCopy(t)
    const [{ id, keys }] = readExpected(format).tenants.first.applications
    const asKey = (key: string) => run(['app', 'whoami'], { env: { COFFER_API_KEY: key } })
    const old = readFileSync(join(directory, API_KEY_FILE), 'utf8').trim()
    const { key, id: made } = await json(['app', 'key', 'create', id])
    t.match(await json(['app', 'key', 'list', id]), [{ id: made }, ...keys])
    t.match([await asKey(old), await asKey(key)], [{ code: 0 }, { code: 0 }])
    await json(['app', 'key', 'delete', id, keys[0].id, '--yes'])
    t.match([await asKey(old), await asKey(key)], [{ code: 4 }, { code: 0 }])
    t.match(await json(['app', 'regenerate', id, '--yes']), { keys: [{ key: /^key_/ }] })
    t.match(await asKey(key), { code: 4 })
  })

  t.test(`format ${format} finds metadata, whatever its case and to the case`, async (t) => {
    const { json } = openCopy(t)
    const find = async (words: string[], value: string) =>
      (await json(['token', 'list', ...words, '--metadata', `note=${value}`])).data.map(
        ({ id }: { id: string }) => id,
      )
    for (const value of ['naïve – ✓', 'NAÏVE – ✓']) t.strictSame(await find([], value), ['card-1'], value)
    t.strictSame(await find(['--after'], 'naïve – ✓'), ['card-1'])
    t.strictSame(await find(['--after'], 'Naïve – ✓'), [])
    await json(['token', 'create'], {
      stdin: '{"id":"new-1","type":"token","data":1,"metadata":{"note":"Naïve – ✓"}}',
    })
    t.strictSame(await find([], 'NAÏVE – ✓'), ['new-1', 'card-1'])
    t.strictSame(await find(['--after'], 'Naïve – ✓'), ['new-1'])
    t.strictSame(await find(['--after'], 'naïve – ✓'), ['card-1'])
  })

  t.test(`format ${format} verifies, and so does the log of each tenant`, async (t) => {
    const { json } = openCopy(t)
    const { logs } = readExpected(format).status.storage
    t.match(await json(['vault', 'verify']), { ok: true, findings: [], readable: { logs } })
    for (const name of ['first', 'second'])
      t.match(await json(['log', 'verify', '--tenant', name]), { is_whole: true })
  })

  t.test(`format ${format} has an exact report of usage, whichever program created a token`, async (t) => {
    const { json } = openCopy(t, Date.UTC(2026, 10, 28))
    const usage = async () => {
      const { metrics_by_type, monthly_active_tokens } = (await json(['tenant', 'usage'])).token_report
      const { count, last_created_at } = metrics_by_type.social_security_number
      return [monthly_active_tokens, count, last_created_at.slice(0, '2026-11-20'.length)]
    }
    const create = (id: string) =>
      json(['token', 'create'], {
        stdin: JSON.stringify({ id, type: 'social_security_number', data: '123-45-6780' }),
      })
    t.strictSame(await usage(), [13, 1, '2026-11-20'], 'deleted and expired ones too')
    await json(['token', 'get', 'ssn-1'])
    t.strictSame(await usage(), [13, 1, '2026-11-20'])
    await json(['token', 'update', 'ssn-1'], { stdin: '{"metadata":{"a":"b"}}' })
    await json(['token', 'delete', 'ssn-1', '--yes'])
    t.strictSame(await usage(), [13, 0, '2026-11-20'])
    for (const id of ['ssn-1', 'ssn-2']) await create(id)
    t.strictSame(await usage(), [14, 2, '2026-11-28'])
    for (const id of ['ssn-1', 'ssn-2']) await json(['token', 'delete', id, '--yes'])
    t.strictSame(await usage(), [14, 0, '2026-11-28'])
  })

  t.test(`format ${format} keeps its digest when all keys change, and finds what it has by it`, async (t) => {
    const { directory, json } = openCopy(t)
    const digest = () => JSON.parse(readFileSync(join(directory, VAULT, 'vault.json'), 'utf8')).digest
    t.equal(digest(), format === '1' ? 'blake2b' : PRESENT_DIGEST)
    const list = async () => withoutDerived((await json(['token', 'list', '--all', '--reveal'])).data)
    const tokens = await list()
    const before = digest()
    await json(['vault', 'rekey', '--yes'])
    t.equal(digest(), before)
    t.strictSame(await list(), tokens)
    t.match(await json(['vault', 'verify']), { ok: true, findings: [] })
    t.match(await json(['log', 'verify']), { is_whole: true })
    t.match(await json(['token', 'list', '--metadata', 'note=naïve – ✓']), { data: [{ id: 'card-1' }] })
    const again = { type: 'token', data: { email: 'ada@example.com' }, deduplicate_token: true }
    const duplicate = { ...again, fingerprint_expression: '{{ data.email }}' }
    t.match(await json(['token', 'create'], { stdin: JSON.stringify(duplicate) }), { id: 'mail-1' })
  })

  t.test(`format ${format} can be worked on, and opens again`, async (t) => {
    const place = openCopy(t)
    const { json, run } = place
    const list = () => json(['token', 'list', '--all', '--reveal'])
    const before = (await list()).data
    await json(['token', 'create'], { stdin: '{"id":"new-1","type":"token","data":"new"}' })
    await json(['token', 'update', 'customer-1'], { stdin: '{"data":{"age":37}}' })
    await json(['token', 'delete', 'number-1', '--yes'])
    const again = { id: 'again', type: 'token', data: { email: 'ada@example.com' } }
    const duplicate = { ...again, fingerprint_expression: '{{ data.email }}', deduplicate_token: true }
    t.match(await json(['token', 'create'], { stdin: JSON.stringify(duplicate) }), { id: 'mail-1' })
    t.match(await run(['token', 'create'], { stdin: '{"id":"ein-1","type":"token","data":1}' }), { code: 5 })
    const expected = before
      .filter(({ id }: { id: string }) => id !== 'number-1')
      .map((token: { id: string }) =>
        token.id === 'customer-1' ? { id: token.id, data: { age: 37 } } : token,
      )
    t.match((await list()).data, [{ id: 'new-1', data: 'new' }, ...expected])
    await json(['vault', 'compact'])
    t.match((await list()).data, [{ id: 'new-1', data: 'new' }, ...expected], 'flushed as well')
    t.match(await json(['vault', 'verify']), { ok: true, findings: [] })
    t.match(await json(['log', 'verify']), { is_whole: true })
    const logs = (await json(['log', 'list', '--entity-id', 'soon-gone'])).data
    t.match(logs, [{ operation: 'delete', actor_type: 'system' }, { operation: 'create' }], 'swept')
    const later = placeIn(place.directory, () => READING_TIME + DAY_MS)
    t.equal((await later.json(['vault', 'status'])).tokens, expected.length + 1)
  })
}

// biome-ignore lint/suspicious/noExplicitAny: its shape is what readEverything gives
function readExpected(format: string): any {
  return JSON.parse(readFileSync(join(FROZEN_VAULTS, format, EXPECTED_FILE), 'utf8'))
}
