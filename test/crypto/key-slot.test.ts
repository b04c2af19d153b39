import t from 'tap'
import {
  checkNewPassphrase,
  createSlot,
  formatKeyFile,
  openSlot,
  parseKeyFile,
  parseSlots,
  type Secret,
  type Slot,
  sealHeader,
} from '../../src/crypto/key-slot.js'
import { createKeyring } from '../../src/crypto/keyring.js'
import { nativePrimitives } from '../../src/crypto/native.js'
import type { Header } from '../../src/crypto/ports.js'
import { createRandom } from '../../src/crypto/random.js'

const openRoot = async (...slot: Parameters<typeof openSlot>) => (await openSlot(...slot)).root

const CHEAP = { n: 2 ** 14, r: 8, p: 1 }
const VAULT = 'aaaabbbbccccdddd'
const created = '2030-01-01T00:00:00.000+00:00'
const primitives = nativePrimitives
const count = (from: number, length: number) =>
  Uint8Array.from({ length }, (_, index) => (from + index) & 0xff)
/** Returns predictable bytes that count up across all calls. */
const countingRandom = () => {
  let next = 0
  return {
    bytes: (length: number) => {
      const bytes = count(next, length)
      next += length
      return bytes
    },
  }
}
const toHex = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString('hex')
const powers = { primitives, random: createRandom() }
const fileSecret: Secret = { kind: 'key-file', file: { vault: VAULT, key: count(7, 32) } }
const passphrase: Secret = { kind: 'passphrase', passphrase: 'correct horse battery' }

async function makeHeader(secrets: Secret[], root = count(100, 32)): Promise<Header> {
  const slots = await Promise.all(
    secrets.map((secret) => createSlot(powers, { root, secret, created, cost: CHEAP })),
  )
  const bare = { format: 1, vault: VAULT, created, cipher: 'xchacha20-poly1305', slots }
  return sealHeader(primitives, bare, root)
}

t.test('with predictable random bytes, key slots have known bytes', async (t) => {
  const root = count(100, 32)
  const random = countingRandom()
  const slot = await createSlot({ primitives, random }, { root, secret: fileSecret, created })
  t.equal(
    slot.wrapped,
    'BQYHCAkKCwwNDg8QERITFBUWFxgZGhscL10DcCSfgFuflXx4pzxAigECzLGbPwkNmzwVNv3koAN4SDe5hAUgX6YTcHHv+3jK',
  )
  const second = await createSlot({ primitives, random }, { root, secret: passphrase, created, cost: CHEAP })
  t.equal(
    second.wrapped,
    'MjM0NTY3ODk6Ozw9Pj9AQUJDREVGR0hJm1khL368vtDz9indB8U22t0b45RU+5Y9xpgCWRW+Fpa0IO1fV90U9RM2BBB22exJ',
  )
  const bare = { format: 1, vault: VAULT, created, cipher: 'xchacha20-poly1305', slots: [slot, second] }
  const header = sealHeader(primitives, bare, root)
  t.equal(header.mac, 'icj39eJkzYAxPCKo5kNJYgXbwMrFxv6X37G9eU4zWlU=')
  for (const secret of [fileSecret, passphrase])
    t.equal(toHex(await openRoot(powers, header, secret)), toHex(root))
})

t.test('a passphrase opens the vault in any Unicode normalization', async (t) => {
  const header = await makeHeader([{ kind: 'passphrase', passphrase: 'caf\u00e9 au lait' }])
  const decomposed: Secret = { kind: 'passphrase', passphrase: 'cafe\u0301 au lait' }
  t.equal(toHex(await openRoot(powers, header, decomposed)), toHex(count(100, 32)))
})

t.test('if the header of a vault cannot be opened, the error says why', async (t) => {
  const header = await makeHeader([fileSecret, passphrase])
  const keyFile = (vault: string, first: number): Secret => ({
    ...{ kind: 'key-file', file: { vault, key: count(first, 32) } },
  })
  const cases: [Header, Secret, string, RegExp][] = [
    [header, { kind: 'passphrase', passphrase: 'wrong' }, 'vault_locked', /^Wrong passphrase\.$/],
    [header, keyFile('zzzz', 9), 'vault_locked', /for vault zzzz, not for aaaa/],
    [header, keyFile(VAULT, 8), 'vault_damaged', /its slot was removed/],
    [await makeHeader([fileSecret]), passphrase, 'vault_locked', /no passphrase slot/],
  ]
  for (const [given, secret, code, message] of cases)
    await t.rejects(openRoot(powers, given, secret), { code, message })
})

t.test('a change of any field of the vault header is reported as damage', async (t) => {
  const header = await makeHeader([fileSecret])
  const other = await makeHeader([fileSecret], count(50, 32))
  const [slot] = header.slots as [Slot]
  const changes: Partial<Header>[] = [
    { format: 2 },
    { vault: 'aaaabbbbccccddde' },
    { created: '2031-01-01T00:00:00.000+00:00' },
    { cipher: 'none' },
    { mac: other.mac },
    { mac: '' },
    { slots: [slot, { ...slot, id: '0000000000' }] },
    { slots: [{ ...slot, created: 'x' }] },
  ]
  for (const change of changes)
    await t.rejects(openRoot(powers, { ...header, ...change }, fileSecret), { code: 'vault_damaged' })
})

t.test(
  'a vault header with cheap, excessive or invalid parameters is refused before any key is derived',
  async (t) => {
    const [slot] = (await makeHeader([passphrase])).slots as [Slot]
    const kdfs = [
      ...[{ n: 2 ** 13 }, { n: 2 ** 19 }, { n: 2 ** 14 + 1 }, { n: 2 ** 17, r: 32 }, { n: 2 ** 16, r: 1 }],
      ...[{ p: 5 }, { p: 0 }, { r: 1.5 }, { n: '16384' }, { salt: 5 }],
    ]
    for (const kdf of kdfs) {
      const forged = { ...slot, kdf: { ...(slot as { kdf: object }).kdf, ...kdf } }
      t.throws(() => parseSlots([forged]), { code: 'vault_damaged' }, JSON.stringify(kdf))
    }
    for (const wrong of [null, { id: 'a', kind: 'tape', created, wrapped: '' }, { ...slot, kdf: null }])
      t.throws(() => parseSlots([wrong]), { code: 'vault_damaged' })
    t.same(parseSlots([slot]), [slot])
    t.same(parseSlots(Array(16).fill(slot)).length, 16)
    t.throws(() => parseSlots(Array(17).fill(slot)), { code: 'vault_damaged' })
  },
)

t.test('a new passphrase has 8 to 1024 characters', async (t) => {
  t.throws(() => checkNewPassphrase('seven77'), { code: 'usage' })
  t.throws(() => checkNewPassphrase('x'.repeat(1025)), { code: 'usage' })
  t.doesNotThrow(() => checkNewPassphrase('eight888'))
})

t.test('a key file is one line that contains the id of its vault', async (t) => {
  const key = count(0, 32)
  const text = formatKeyFile({ vault: VAULT, key })
  t.equal(text, `coffer-key-1 ${VAULT} AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n`)
  const parsed = parseKeyFile(text)
  t.strictSame([parsed.vault, toHex(parsed.key)], [VAULT, toHex(key)])
  const short = `coffer-key-1 ${VAULT} AAEC`
  for (const broken of [
    '',
    text.replace('-1', '-2'),
    short,
    `${text.trim()} more`,
    text.replace('AAEC', '!!EC'),
  ])
    t.throws(() => parseKeyFile(broken), { code: 'vault_locked' }, broken)
})

t.test('a keyring has a different key for each purpose, and loses its keys when it is wiped', async (t) => {
  const keyring = createKeyring(primitives, createRandom(), count(1, 32))
  const nothing = new Uint8Array()
  const sealed = keyring.engine.wal.seal(count(0, 10), nothing)
  t.equal(toHex(keyring.engine.wal.open(sealed, nothing)), toHex(count(0, 10)))
  const { head, state, sstable } = keyring.engine
  for (const other of [head, state, sstable, keyring.vault.data])
    t.equal(other.open(sealed, nothing), undefined)
  const keys = keyring.generateTenant()
  t.not(keys.data, keys.index)
  const record = keyring.openTenant(keys).data.seal(count(0, 4), nothing)
  t.equal(toHex(keyring.openTenant(keys).data.open(record, nothing)), toHex(count(0, 4)))
  t.equal(keyring.openTenant(keyring.generateTenant()).data.open(record, nothing), undefined)
  keyring.wipe()
  t.equal(
    keyring.engine.wal.open(sealed, nothing),
    undefined,
    'the key of a wiped vault cannot decrypt anything',
  )
})
