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

t.test('an address that RFC 5322 allows is accepted unchanged, and other texts are refused', async (t) => {
  const addresses = [
    'ada.lovelace+tag@sub.example.co.uk',
    "!#$%&'*+-/=?^_`{|}~@example.com",
    '"ada lovelace"@example.com',
    '"a@b"@example.com',
    '"quote \\" and \\\\ back"@example.com',
    '""@example.com',
    'ada@[IPv6:2001:db8::1]',
    `${'a'.repeat(EMAIL_LIMIT - '@example.com'.length)}@example.com`,
  ]
  for (const address of addresses) t.ok(isEmail(address), address)
  const others = [
    '',
    '@example.com',
    'ada@b@example.com',
    'ada.@example.com',
    'ada..l@example.com',
    'ada@example.com.',
    'ada lovelace@example.com',
    'Ada <ada@example.com>',
    'ada(her)@example.com',
    'ada@example.com,eve@example.com',
    '"ada@example.com',
    'a"b"c@example.com',
    'ada@example.com\r\nBcc: eve@example.com',
    '"a\r\nBcc: eve@example.com"@example.com',
    '"a\tb"@example.com',
    'ada\u0000@example.com',
    'ada@example.com\u2028',
    'adä@example.com',
    'ada＠example.com',
    'ada\u202e@example.com',
    'ada@[a]b]',
    `${'a'.repeat(EMAIL_LIMIT - '@example.com'.length + 1)}@example.com`,
  ]
  for (const [at, text] of others.entries()) t.notOk(isEmail(text), `refused ${at}`)
})

t.test('no accepted address can end a header line', async (t) => {
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
  t.ok(taken > 20, `${taken} texts were accepted`)
})

t.test('the longest addresses are checked in less than 100 ms', async (t) => {
  const started = performance.now()
  for (const text of [`${'a.'.repeat(159)}@`, `"${'\\a'.repeat(158)}`, `a@[${'!'.repeat(316)}`]) isEmail(text)
  t.ok(performance.now() - started < 100)
})

t.test('two addresses that differ only in upper and lower case count as the same mailbox', async (t) => {
  t.equal(normalizeEmail('Ada@Example.COM'), 'ada@example.com')
})
