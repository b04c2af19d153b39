/**
 * Makes the frozen vault of the present format, by hand and once: `npm run build && node dist/test/storage/freeze.js`.
 * From then on its bytes must open for ever, so it refuses to make it again.
 */
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FORMAT } from '../../src/storage/vault-file.js'
import {
  API_KEY_FILE,
  copyFrozen,
  EXPECTED_FILE,
  FROZEN_VAULTS,
  KEY_FILE,
  PASSPHRASE_FILE,
  type Place,
  placeIn,
  READING_TIME,
  readEverything,
  TENANTS,
  VAULT,
} from './frozen.js'

const STARTED = Date.UTC(2026, 10, 20, 12)
const SECOND_MS = 1000
const PASSPHRASE = 'a passphrase that everybody may know'

/** Tokens of every type, and of every attribute that a token can have. */
const TOKENS = [
  { id: 'customer-1', type: 'token', data: { name: 'Ada Lovelace', age: 36, tags: ['x', null, true] } },
  {
    id: 'card-1',
    type: 'card',
    data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' },
    metadata: { customer: '1', note: 'naïve – ✓' },
  },
  { id: 'bank-1', type: 'bank', data: { routing_number: '021000021', account_number: '1234567890' } },
  { id: 'number-1', type: 'card_number', data: '5555555555554444', containers: ['/pci/high/', '/team-a/'] },
  { id: 'account-1', type: 'us_bank_account_number', data: '000123456789' },
  { id: 'routing-1', type: 'us_bank_routing_number', data: '011401533' },
  { id: 'ssn-1', type: 'social_security_number', data: '123-45-6789' },
  { id: 'ein-1', type: 'employer_id_number', data: '12-3456789', mask: null },
  {
    id: 'mail-1',
    type: 'token',
    data: { email: 'ada@example.com' },
    mask: { email: "{{ data.email | reveal: 1, 12, '*' }}" },
    search_indexes: ['{{ data.email }}'],
    fingerprint_expression: '{{ data.email }}',
    deduplicate_token: true,
    expires_at: '2126-01-01T00:00:00Z',
  },
  { id: 'number-2', type: 'token', data: 1.5e300, metadata: { customer: '2' } },
  { id: 'soon-gone', type: 'token', data: 'expires', expires_at: '2026-11-21T00:00:00Z' },
  { id: 'deleted-1', type: 'token', data: 'deleted from a segment' },
]

const target = join(FROZEN_VAULTS, String(FORMAT))
if (existsSync(target)) {
  console.error(`${target} is there, and what is frozen stays. Only what was never released may be removed.`)
  process.exitCode = 1
} else {
  await freeze()
}

async function freeze(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'coffer-freeze-'))
  let time = STARTED
  const place = placeIn(directory, () => (time += SECOND_MS))
  try {
    await fill(place)
    const expected = `${JSON.stringify(await readCopy(directory), undefined, 2)}\n`
    for (const name of [VAULT, KEY_FILE, PASSPHRASE_FILE, API_KEY_FILE])
      cpSync(join(directory, name), join(target, name), { recursive: true })
    writeFileSync(join(target, EXPECTED_FILE), expected)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Of a copy, because to read a vault changes its log. */
async function readCopy(directory: string): Promise<unknown> {
  const copy = copyFrozen(directory)
  try {
    return await readEverything(placeIn(copy.directory, () => READING_TIME))
  } finally {
    copy.remove()
  }
}

async function fill({ directory, json }: Place): Promise<void> {
  const create = (token: object, ...words: string[]) =>
    json(['token', 'create', ...words], { stdin: JSON.stringify(token) })
  writeFileSync(join(directory, PASSPHRASE_FILE), `${PASSPHRASE}\n`, { mode: 0o600 })
  await json(['init', '--name', TENANTS[0]])
  await json(['vault', 'keys', 'add', '--new-passphrase-file', PASSPHRASE_FILE])
  await json(['tenant', 'create', TENANTS[1]])
  for (const token of TOKENS) await create(token)
  const second = ['--tenant', TENANTS[1]]
  await create({ id: 'customer-1', type: 'token', data: 'of the second tenant' }, ...second)
  await json(['token', 'link', 'customer-1', 'card-1'])
  await json(['token', 'delete', 'number-2', '--yes'])
  // Until here everything is in tables, from here on in the log.
  await json(['vault', 'compact'])
  await json(['token', 'delete', 'deleted-1', '--yes'])
  await json(['token', 'update', 'card-1'], { stdin: '{"metadata":{"customer":"3"},"data":{"cvc":null}}' })
  await json(['token', 'create-child', 'customer-1'], {
    stdin: '{"id":"child-1","type":"token","data":[1,"two"]}',
  })
  await create({ id: 'late-1', type: 'token', data: { late: true } }, ...second)
  const permissions = ['--permission', 'token:read', '--permission', 'token:search']
  const { key } = await json(['app', 'create', '--name', 'reader', '--type', 'private', ...permissions])
  writeFileSync(join(directory, API_KEY_FILE), `${key}\n`, { mode: 0o600 })
  await json(['invite', 'create', '--email', 'grace@example.com'])
  await json(['token', 'get', 'mail-1'])
}
