/** The payloads, domains and certificate files of wallets. */
import t from 'tap'
import { isApplePayload } from '../../src/domain/wallets/apple-payload.js'
import { readCertificateFile } from '../../src/domain/wallets/certificate-file.js'
import { addDomains, isDomainName, isSameDomain } from '../../src/domain/wallets/domain-name.js'
import { readGooglePayload } from '../../src/domain/wallets/google-payload.js'
import { endOfCard, simulateCard } from '../../src/domain/wallets/simulated-card.js'
import type { CofferError } from '../../src/errors.js'
import { APPLE_PAYMENT, ENCRYPTED, plainPayload } from '../support/wallet-payloads.js'

const readPlain = (message: string, signature = 'card') =>
  readGooglePayload(plainPayload(signature, message).google_payment_data)

t.test('a JSON number in a plain payload is read as text and keeps all its digits', async (t) => {
  const card = { number: '4000000000000000006', expiration_month: '12', expiration_year: '2040' }
  const message =
    '{"number": 4000000000000000006,"expiration_month":12,"expiration_year": 2040 ,"x":[1,{"a b":"7 8"}],"y":-1.5e3}'
  t.strictSame(readPlain(message), { kind: 'card', card })
  const quoted = '{"number":"a\\"12\\"","expiration_month":"\\\\","expiration_year":null}'
  const texts = { number: 'a"12"', expiration_month: '\\', expiration_year: null }
  t.strictSame(readPlain(quoted), { kind: 'card', card: texts }, 'numbers inside texts are not changed')
})

t.test(
  'a plain payload that is no strict JSON object is refused, and the error shows no part of the payload',
  async (t) => {
    const messages = [
      ...[
        '',
        '4242424242424242',
        '[4242424242424242]',
        '"4242424242424242"',
        'null',
        '{',
        '{4242424242424242:1}',
      ],
      ...['{"number":4242424242424242,}', '{"number":04242424242424242}', '{"number":4242424242424242.}'],
      ...['{"number":1,"number":4242424242424242}', '{"__proto__":{"number":4242424242424242}}'],
      ...[
        '{"constructor":{"prototype":{"number":4242424242424242}}}',
        '{"a":1 2}',
        "{'number':4242424242424242}",
      ],
      ...[`${'['.repeat(900)}4242424242424242${']'.repeat(900)}`, `{"number":${'4'.repeat(2_000)}}`],
      ...[`{"number":"${'\\"'.repeat(990)}`, '{"number":4242424242424242}\u0000', '{"number":-}'],
    ]
    for (const message of messages) {
      const name = message.slice(0, 40)
      try {
        readPlain(message)
        t.fail(`accepted: ${name}`)
      } catch (error) {
        const { code, message: text, errors } = error as CofferError
        t.equal(code, 'validation', name)
        t.strictSame(Object.keys(errors ?? {}), ['google_payment_data.signedMessage'], name)
        t.notMatch(JSON.stringify([text, errors]), /4242/, name)
      }
    }
  },
)

t.test('a payload of a network token needs both a cryptogram and an ECI indicator', async (t) => {
  const read = (more: object) =>
    readGooglePayload(
      plainPayload('network_token', { number: '1', expiration_month: 1, expiration_year: 2, ...more })
        .google_payment_data,
    )
  t.match(read({ cryptogram: 'abc=', eci_indicator: 7 }), {
    authentication: { threeds_cryptogram: 'abc=', eci_indicator: '7' },
  })
  const wrong = [{}, { cryptogram: 'a' }, { cryptogram: '', eci_indicator: '7' }]
  for (const more of [...wrong, { cryptogram: {}, eci_indicator: '7' }, { cryptogram: 'a'.repeat(1_001) }])
    t.throws(() => read(more), { code: 'validation' }, JSON.stringify(more).slice(0, 40))
})

t.test('an encrypted payload is well-formed only if it has the parts that a wallet sends', async (t) => {
  const { google_payment_data: payload } = ENCRYPTED
  t.strictSame(readGooglePayload(payload), { kind: 'encrypted', isWellFormed: true })
  for (const signedMessage of ['', 'x', '[]', '{"encryptedMessage":"a","ephemeralPublicKey":"a"}', undefined])
    t.strictSame(readGooglePayload({ ...payload, signedMessage }), {
      kind: 'encrypted',
      isWellFormed: false,
    })
  for (const key of [undefined, null, 'x', [], {}, { signedKey: 'a' }, { signedKey: 1, signatures: [] }])
    t.throws(() => readGooglePayload({ ...payload, intermediateSigningKey: key }), { code: 'validation' })
})

t.test('a payload of Apple Pay must have the version EC_v1 and parts in base64', async (t) => {
  t.ok(isApplePayload(APPLE_PAYMENT))
  t.ok(isApplePayload({ ...APPLE_PAYMENT, data: 'abc' }), 'padding may be absent')
  const wrong: object[] = [{ version: 'RSA_v1' }, { version: undefined }, { data: '' }, { data: 'a%b=' }]
  wrong.push({ data: 'abcde' }, { signature: undefined }, { header: {} }, { header: [] }, { header: null })
  for (const each of [...wrong, { header: { ephemeralPublicKey: 7 } }])
    t.notOk(isApplePayload({ ...APPLE_PAYMENT, ...each }), JSON.stringify(each))
})

t.test('the simulated card is valid until June of the third year after the current year', async (t) => {
  const card = simulateCard(Date.parse('2030-12-31T23:59:59Z'))
  t.match(card, { number: '4242424242424242', expiration_month: 6, expiration_year: 2033 })
  t.equal(new Date(endOfCard(card)).toISOString(), '2033-07-01T00:00:00.000Z')
  t.equal(endOfCard({ ...card, expiration_month: 12 }), Date.UTC(2034, 0))
})

t.test('a domain must be a host name, without port, path or wildcard', async (t) => {
  const long = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`
  for (const name of ['shop.example.com', 'localhost', 'xn--bcher-kva.example', '4you.example', 'A.B', long])
    t.ok(isDomainName(name), name)
  const wrong = ['', '.', 'a.', '.a', 'a..b', '*.example.com', 'a.example.com:443', 'https://a.example.com']
  wrong.push('a.example.com/x', 'a@b', 'a b', '-a.b', 'a-.b', '127.0.0.1', '[::1]', 'bücher.example', 'a_b.c')
  for (const name of [...wrong, `${'a'.repeat(64)}.b`, `${long}e`, 'a.example.com\n', '１.example'])
    t.notOk(isDomainName(name), name)
  t.ok(isSameDomain('Shop.Example', 'shop.example'))
  t.strictSame(addDomains(['a.b'], ['A.B', 'c.d', 'C.D', 'e.f']), ['a.b', 'c.d', 'e.f'])
})

t.test('a certificate file is base64 of one sequence that begins with the version of PKCS#12', async (t) => {
  const encode = (...bytes: number[]) => Buffer.from(bytes).toString('base64')
  const version = [0x02, 0x01, 0x03]
  const padding = Array.from({ length: 0x100 }, () => 0)
  const good = [
    encode(0x30, 3, ...version),
    encode(0x30, 0x81, 4, ...version, 0),
    encode(0x30, 0x82, 0x01, 0x03, ...version, ...padding),
    encode(0x30, 0x80, ...version, 0, 0),
  ]
  for (const text of good) t.equal(Buffer.from(readCertificateFile(text)).toString('base64'), text)
  const wrong = ['', 'MAMCAQM', 'MAMCAQM=\n', '!', encode(0x31, 3, ...version), encode(0x30, 4, ...version)]
  wrong.push(encode(0x30, 3, 2, 1, 2), encode(0x30), encode(0x30, 0x84, 0, 0, 0, 3, ...version))
  wrong.push(encode(0x30, 0x80, ...version, 0, 1), 'A'.repeat(200_000), '-----BEGIN CERTIFICATE-----')
  for (const text of wrong)
    t.throws(() => readCertificateFile(text), { code: 'validation', message: /^must be a PKCS#12 file/ })
})
