import fc from 'fast-check'
import t from 'tap'
import { checkEmail, EMAIL_LIMIT, normalizeEmail } from '../../src/domain/invitation/mail-server.js'

const isEmail = (text: string) => {
  try {
    checkEmail(text)
    return true
  } catch (error) {
    if ((error as { code?: string }).code !== 'validation') throw error
    return false
  }
}

t.test('an address of RFC 5322 is taken as it stands', async (t) => {
  const addresses = [
    'a@b',
    'ada@example.com',
    'ada.lovelace+tag@sub.example.co.uk',
    "!#$%&'*+-/=?^_`{|}~@example.com",
    '"ada lovelace"@example.com',
    '"a@b"@example.com',
    '"quote \\" and \\\\ back"@example.com',
    '""@example.com',
    'ada@[192.0.2.1]',
    'ada@[IPv6:2001:db8::1]',
    'ada@xn--mnchen-3ya.de',
    `${'a'.repeat(EMAIL_LIMIT - '@example.com'.length)}@example.com`,
  ]
  for (const address of addresses) t.ok(isEmail(address), address)
})

t.test('anything else is refused', async (t) => {
  const texts: Record<string, string> = {
    nothing: '',
    'no at sign': 'ada.example.com',
    'no mailbox': '@example.com',
    'no domain': 'ada@',
    'two at signs': 'ada@b@example.com',
    'a dot at the start': '.ada@example.com',
    'a dot at the end': 'ada.@example.com',
    'two dots': 'ada..l@example.com',
    'an empty label': 'ada@example..com',
    'a dot at the end of the domain': 'ada@example.com.',
    'a blank': 'ada lovelace@example.com',
    'a blank before': ' ada@example.com',
    'a blank behind': 'ada@example.com ',
    'a display name': 'Ada <ada@example.com>',
    'angle brackets': '<ada@example.com>',
    'a comment': 'ada(her)@example.com',
    'two addresses': 'ada@example.com,eve@example.com',
    'a list': 'ada@example.com;eve@example.com',
    'an open quote': '"ada@example.com',
    'a quote inside': 'a"b"c@example.com',
    'a line break': 'ada@example.com\n',
    'a header': 'ada@example.com\r\nBcc: eve@example.com',
    'a header in quotes': '"a\r\nBcc: eve@example.com"@example.com',
    'a folded line': '"a\r\n b"@example.com',
    'a tab in quotes': '"a\tb"@example.com',
    'a null character': 'ada\u0000@example.com',
    'a line separator': 'ada@example.com\u2028',
    'full-width letters': 'ａｄａ@example.com',
    'letters beyond ASCII': 'adä@example.com',
    'a domain beyond ASCII': 'ada@münchen.de',
    'a full-width at sign': 'ada＠example.com',
    'text that runs the other way': 'ada\u202e@example.com',
    'a bracket in a literal': 'ada@[a]b]',
    'one character too many': `${'a'.repeat(EMAIL_LIMIT - '@example.com'.length + 1)}@example.com`,
    '5,000 characters': `${'a'.repeat(5000)}@example.com`,
  }
  for (const [name, text] of Object.entries(texts)) t.notOk(isEmail(text), name)
})

t.test('no text that is taken could end a header, whatever it is made of', async (t) => {
  const odd = fc.constantFrom(...'.@"\\ \r\n\t<>(é\u2028[]')
  const part = fc.array(fc.oneof({ weight: 4, arbitrary: fc.constant('a') }, odd), { maxLength: 8 })
  let taken = 0
  fc.assert(
    fc.property(part, part, (local, domain) => {
      const text = `${local.join('')}@${domain.join('')}`
      if (!isEmail(text)) return true
      taken++
      return /^[ -~]{3,320}$/.test(text) && text.indexOf('@') > 0
    }),
    { numRuns: 20_000 },
  )
  t.ok(taken > 20, `${taken} were taken`)
})

t.test('an address is checked in time that grows with its length alone', async (t) => {
  const started = performance.now()
  for (const text of [`${'a.'.repeat(159)}@`, `"${'\\a'.repeat(158)}`, `a@[${'!'.repeat(316)}`]) isEmail(text)
  t.ok(performance.now() - started < 100)
})

t.test('capitals do not make another mailbox', async (t) => {
  t.equal(normalizeEmail('Ada@Example.COM'), 'ada@example.com')
})
