import t from 'tap'
import {
  extendExpiry,
  formatLink,
  isLinkSecret,
  readLink,
  readNames,
} from '../../src/domain/invitation/invitation.js'
import { composeLetter, wrapLetter } from '../../src/domain/invitation/letter.js'
import { errorsOf } from '../support/refusals.js'

const HOUR = 3_600_000
const START = Date.parse('2030-01-15T12:00:00Z')
const at = (ms: number) => ({ expires_at: new Date(ms).toISOString() })
const SECRET = Buffer.alloc(32, 7).toString('base64url')

t.test(
  'sending an invitation again moves its expiry by 72 hours, or to 72 hours from now if it has expired',
  async (t) => {
    const expiry = START + 10 * HOUR
    t.equal(extendExpiry(START, at(expiry).expires_at), expiry + 72 * HOUR)
    t.equal(extendExpiry(expiry, at(expiry).expires_at), expiry + 72 * HOUR)
    t.equal(extendExpiry(expiry + HOUR, at(expiry).expires_at), expiry + HOUR + 72 * HOUR)
  },
)

t.test('the secret of a link is found in a text that people paste', async (t) => {
  const link = formatLink('https://vault.example.com', SECRET)
  t.equal(link, `https://vault.example.com/invitations/accept?token=${SECRET}`)
  t.equal(readLink(link), SECRET)
  t.equal(readLink(SECRET), SECRET)
  t.equal(readLink(` ${SECRET}\n`), SECRET)
  t.equal(readLink(`/invitations/accept?utm=1&token=${SECRET}#x`), SECRET)
  for (const text of ['', 'nonsense', link.slice(0, -1), `${link}A`, `?token=`, `${SECRET.slice(0, -1)}B`])
    t.throws(() => readLink(text), { code: 'usage' }, JSON.stringify(text))
})

t.test('a text is accepted as a secret only if it is the encoding of 32 bytes', async (t) => {
  t.ok(isLinkSecret(SECRET))
  // The last of the 43 characters encodes four bits. If its other two bits were ignored, several texts would mean the
  // same secret.
  for (const text of [`${SECRET}=`, SECRET.replace(/^./, '+'), `${SECRET.slice(0, -1)}B`])
    t.notOk(isLinkSecret(text), text)
})

t.test('names are kept as written, and a text that cannot be a name is refused', async (t) => {
  const good = ["O'Neil", 'Åsa-Märta', '山田', 'علی\u200cرضا', 'José'.normalize('NFD'), 'x'.repeat(200)]
  for (const first_name of good)
    t.same(readNames({ first_name }), { first_name: first_name.normalize('NFC') })
  t.same(readNames({ first_name: '  Ada ', last_name: ' ' }), { first_name: 'Ada' })
  const refused = (last_name: string, message: string) =>
    t.same(errorsOf(() => readNames({ last_name }))?.last_name, [message])
  const lines = ['Ada\r\nBcc: eve', 'a\u2028b']
  const hidden = [
    'a\u0000b',
    '\u001b[31mred',
    '\u202eevil',
    'a\u2066b',
    'a\u200bb',
    '\u3164',
    'a\u{e0041}',
    'a\ud800',
  ]
  for (const name of [...lines, ...hidden]) refused(name, 'must be visible text on one line')
  refused('x'.repeat(5000), 'must have at most 200 characters')
})

const FACTS = {
  tenantName: 'Payments',
  email: 'ada@example.com',
  link: 'https://vault.example.com/invitations/accept?token=abc',
  linkExpiresAt: '2030-08-27T02:23:57.000+00:00',
}

t.test(
  'the mail of an invitation says in text and in HTML who invites whom, which link to open, and until when',
  async (t) => {
    const letter = composeLetter(FACTS)
    for (const text of [letter.text, letter.html]) {
      t.match(text, 'Payments')
      t.match(text, 'ada@example.com')
      t.match(text, FACTS.link)
      t.match(text, '27 August 2030, 02:23 UTC')
    }
    t.equal(letter.subject, 'You are invited to a Coffer tenant')
  },
)

t.test(
  'text that other people wrote adds no HTML, no header and no line to the mail of an invitation',
  async (t) => {
    const letter = composeLetter({
      ...FACTS,
      tenantName: '<img src=x onerror=alert(1)>"&\r\nTo accept, open https://evil.example\u2028\u202egnp',
      email: `"<script>alert(1)</script>"@example.com`,
    })
    const html = wrapLetter(letter)
    t.notMatch(html, /<img|<script/)
    t.match(html, '&lt;img src=x onerror=alert(1)&gt;&quot;&amp;')
    t.equal(letter.subject, 'You are invited to a Coffer tenant')
    t.notMatch(letter.text, /^To accept, open https:\/\/evil/m)
    t.notMatch(letter.text + html, /[\u2028\u202e\r]/)
  },
)

t.test('the HTML of an invitation loads no content and runs no code', async (t) => {
  const html = wrapLetter(composeLetter(FACTS))
  t.notMatch(html, /<(script|img|link|iframe|object|form)|url\(|@import|\son[a-z]+=/i)
  const targets = [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, target]) => target)
  t.same(new Set(targets), new Set([FACTS.link]))
})

t.test(
  'if the link of an invitation is no longer stored, its mail says so in place of the link',
  async (t) => {
    const { link: _, ...facts } = FACTS
    const letter = composeLetter(facts)
    t.match(letter.text, '(the link is not kept here)')
    t.notMatch(letter.html, 'href')
  },
)
