import t from 'tap'
import { composeLetter, describeDate, wrapLetter } from '../../src/domain/invitation/letter.js'

const FACTS = {
  tenantName: 'Payments',
  email: 'ada@example.com',
  link: 'https://vault.example.com/invitations/accept?token=abc',
  linkExpiresAt: '2030-08-27T02:23:57.000+00:00',
}

t.test('the letter says who invites whom, where to go and until when, in text and in HTML', async (t) => {
  const letter = composeLetter(FACTS)
  for (const text of [letter.text, letter.html]) {
    t.match(text, 'Payments')
    t.match(text, 'ada@example.com')
    t.match(text, FACTS.link)
    t.match(text, '27 August 2030, 02:23 UTC')
  }
  t.equal(letter.subject, 'You are invited to a Coffer tenant')
})

t.test('nothing that somebody chose becomes HTML, a header or a line of its own', async (t) => {
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
})

t.test('the letter fetches nothing and runs nothing', async (t) => {
  const html = wrapLetter(composeLetter(FACTS))
  t.notMatch(html, /<(script|img|link|iframe|object|form)|url\(|@import|\son[a-z]+=/i)
  const targets = [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, target]) => target)
  t.same(new Set(targets), new Set([FACTS.link]))
})

t.test('a link that is not kept any more is said to be so', async (t) => {
  const { link: _, ...facts } = FACTS
  const letter = composeLetter(facts)
  t.match(letter.text, '(the link is not kept here)')
  t.notMatch(letter.html, 'href')
})

t.test('a date is written for people', async (t) => {
  t.equal(describeDate('2030-01-05T23:59:59.999+00:00'), '5 January 2030, 23:59 UTC')
})
