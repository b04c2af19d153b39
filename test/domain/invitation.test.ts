import t from 'tap'
import {
  extendExpiry,
  formatLink,
  isLinkSecret,
  readLink,
  readNames,
} from '../../src/domain/invitation/invitation.js'

const HOUR = 3_600_000
const START = Date.parse('2030-01-15T12:00:00Z')
const at = (ms: number) => ({ expires_at: new Date(ms).toISOString() })
const SECRET = Buffer.alloc(32, 7).toString('base64url')

t.test('sending again adds 72 hours to what is left, or to now where nothing is left', async (t) => {
  const expiry = START + 10 * HOUR
  t.equal(extendExpiry(START, at(expiry).expires_at), expiry + 72 * HOUR)
  t.equal(extendExpiry(expiry, at(expiry).expires_at), expiry + 72 * HOUR)
  t.equal(extendExpiry(expiry + HOUR, at(expiry).expires_at), expiry + HOUR + 72 * HOUR)
})

t.test('a link is read from what people paste', async (t) => {
  const link = formatLink('https://vault.example.com', SECRET)
  t.equal(link, `https://vault.example.com/invitations/accept?token=${SECRET}`)
  t.equal(readLink(link), SECRET)
  t.equal(readLink(SECRET), SECRET)
  t.equal(readLink(` ${SECRET}\n`), SECRET)
  t.equal(readLink(`/invitations/accept?utm=1&token=${SECRET}#x`), SECRET)
  for (const text of ['', 'nonsense', link.slice(0, -1), `${link}A`, `?token=`, `${SECRET.slice(0, -1)}B`])
    t.throws(() => readLink(text), { code: 'usage' }, JSON.stringify(text))
})

t.test('only what 32 bytes can spell is a secret', async (t) => {
  t.ok(isLinkSecret(SECRET))
  t.notOk(isLinkSecret(`${SECRET}=`))
  t.notOk(isLinkSecret(SECRET.replace(/^./, '+')))
  // The last character of 43 holds four bits; with the others set, two spellings would mean one secret.
  t.notOk(isLinkSecret(`${SECRET.slice(0, -1)}B`))
})

t.test('names are kept as people write them', async (t) => {
  const good = [
    'Ada',
    "O'Neil",
    'Åsa-Märta',
    '山田',
    'علی\u200cرضا',
    'José'.normalize('NFD'),
    'x'.repeat(200),
  ]
  for (const first_name of good)
    t.same(readNames({ first_name }), { first_name: first_name.normalize('NFC') })
  t.same(readNames({ first_name: '  Ada ', last_name: ' ' }), { first_name: 'Ada' })
})

t.test('names that would be more than a name are refused', async (t) => {
  const bad: Record<string, string> = {
    'a line break': 'Ada\r\nBcc: eve',
    'a null character': 'a\u0000b',
    'an escape': '\u001b[31mred',
    'a line separator': 'a\u2028b',
    'text that runs the other way': '\u202eevil',
    'isolates of direction': 'a\u2066b',
    'nothing to see': 'a\u200bb',
    'a filler': '\u3164',
    'a hidden tag': 'a\u{e0041}',
    'half a character': 'a\ud800',
  }
  for (const [name, last_name] of Object.entries(bad))
    t.throws(
      () => readNames({ last_name }),
      { code: 'validation', errors: { last_name: ['must be visible text on one line'] } },
      name,
    )
  t.throws(() => readNames({ first_name: 'x'.repeat(5000) }), {
    code: 'validation',
    errors: { first_name: ['must have at most 200 characters'] },
  })
})
