/** Keys of clients and encrypted data on the command line, in a vault on disk. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { encryptLikePhones, type PublicKey } from '../support/encrypt.js'
import { createVaultHome } from './home.js'

const NUMBER = '4242424242424242'
const CARD = { number: NUMBER, expiration_month: 12, expiration_year: 2040 }

function readAll(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const files = names.map((name) => join(folder, name)).filter((path) => statSync(path).isFile())
  return files.map((path) => readFileSync(path, 'latin1')).join('')
}

t.test('commands manage keys, and a key survives a rekey, a copy and a backup of the vault', async (t) => {
  const home = await createVaultHome(t)
  const vault = join(home.place, '.coffer')
  const key = (await home.json(['key', 'create'])) as PublicKey & { id: string }
  const encrypted = encryptLikePhones(CARD, key)
  const create = async (...words: string[]) => {
    const flags = ['token', 'create', '--type', 'card', '--encrypted', encrypted, ...words]
    return (await home.json(flags)) as { id: string; data?: object; card: object }
  }
  const token = await create()
  t.match(token, { card: { last4: '4242' } })
  t.notMatch(token, { data: Object })
  t.match(await home.json(['token', 'get', token.id, '--reveal']), { data: CARD })
  const piped = await home.json(['token', 'create'], { stdin: JSON.stringify({ type: 'card', encrypted }) })
  t.match(piped, { card: { last4: '4242' } })
  t.match(await home.json(['intent', 'create', '--type', 'card', '--encrypted', encrypted]), {
    card: { last4: '4242' },
  })

  const [copy, file, restored] = ['copy', 'backup', 'restored'].map((name) => join(home.place, name))
  await home.json(['vault', 'backup', file!])
  await home.json(['vault', 'rekey', '--yes'])
  await create()
  await home.json(['vault', 'copy', '--to', copy!])
  await create('--vault', copy!)
  await home.json(['vault', 'restore', file!, '--vault', restored!])
  await create('--vault', restored!)
  for (const place of [vault, copy!, restored!]) t.notMatch(readAll(place), NUMBER)

  t.match(await home.json(['key', 'list']), [{ id: key.id }])
  const gone = await home.run(['key', 'delete', key.id, '--yes'])
  t.equal(gone.code, 0)
  const refused = await home.run(['token', 'create', '--type', 'card', '--encrypted', encrypted])
  t.equal(refused.code, 2)
  t.match(refused.stderr, /encrypted: cannot be decrypted/)
  t.notMatch(refused.stderr, NUMBER)
  await create('--vault', copy!)
})

t.test(
  'the expiry of a key can be given as a duration, and if flags are missing, the error names the missing flags',
  async (t) => {
    const home = await createVaultHome(t)
    const { expires_at } = (await home.json(['key', 'create', '--expires-at', '30d'])) as {
      expires_at: string
    }
    const days = (Date.parse(expires_at) - Date.now()) / 86_400_000
    t.ok(days > 29.9 && days < 30.1, `${days} days`)
    const late = await home.run(['key', 'create', '--expires-at', '400d'])
    t.match([late.code, late.stderr], [2, /at most one year/])
    const help = await home.run(['token', 'create', '--help'])
    t.match(help.stdout.replaceAll(/\s+/g, ' '), '(required without --token-intent-id or --encrypted)')
    const missing = await home.run(['token', 'create', '--type', 'token'])
    t.match([missing.code, missing.stderr], [2, /data/])
  },
)
