/**
 * The response to a call must not contain the data of the call or parts of this data, even in pieces or encoded.
 */
import { deflateSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { Secrets, WITHHELD } from '../../src/domain/text/secrets.js'

const NUMBER = '4242424242424242'
const KEY = 'sk_live_Zoë&"51H/xx+YY=='

function secretsOf(...data: unknown[]): Secrets {
  const secrets = new Secrets()
  for (const each of data) secrets.add(each)
  return secrets
}

const hex = (text: string) => Buffer.from(text).toString('hex')
const base64 = (text: string) => Buffer.from(text).toString('base64')
const reversed = (text: string) => [...text].reverse().join('')
const bytesOf = (text: string, base: number, width: number, before: string) =>
  [...Buffer.from(text)].map((byte) => before + byte.toString(base).padStart(width, '0')).join('')
const entities = (text: string) => [...text].map((each) => `&#${each.codePointAt(0)};`).join('')

const ENCODED: Record<string, (text: string) => unknown> = {
  raw: (text) => text,
  inside: (text) => `before${text}after`,
  number: (text) => Number(text),
  json: (text) => JSON.stringify({ text }),
  'json in json': (text) => JSON.stringify({ inner: JSON.stringify({ text }) }),
  escapes: (text) =>
    [...text].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  url: (text) => `?q=${encodeURIComponent(text)}`,
  'url of every byte': (text) => hex(text).replaceAll(/../g, '%$&'),
  'quoted printable': (text) => hex(text).toUpperCase().replaceAll(/../g, '=$&'),
  base64,
  'base64 with something before it': (text) => base64(`user:${text}`),
  'base64 twice': (text) => base64(base64(text)),
  base64url: (text) => Buffer.from(`ab${text}`).toString('base64url'),
  hex,
  'hex, upper case': (text) => hex(text).toUpperCase(),
  'hex with colons': (text) => hex(text).replaceAll(/..(?=.)/g, '$&:'),
  'hex of base64': (text) => hex(base64(text)),
  'hex as in code': (text) => hex(text).replaceAll(/../g, '0x$&, '),
  'hex of base64 as in code': (text) => hex(base64(text)).replaceAll(/../g, '0x$&, '),
  'hex escapes': (text) => hex(text).replaceAll(/../g, '\\x$&'),
  entities,
  'entities without semicolons': (text) => entities(text).replaceAll(';', ' '),
  'utf-16 in base64': (text) => Buffer.from(text, 'utf16le').toString('base64'),
  'gzip in base64': (text) => gzipSync(text).toString('base64'),
  'deflate in base64': (text) => deflateSync(text).toString('base64'),
  'octal escapes': (text) => bytesOf(text, 8, 3, '\\'),
  octal: (text) => bytesOf(text, 8, 3, ' '),
  decimal: (text) => bytesOf(text, 10, 1, ', '),
  'a line for each byte': (text) => hex(text).replaceAll(/../g, '$&\n'),
  'decimal with dashes': (text) => [...Buffer.from(text)].join('-'),
  'an object for each byte': (text) => [...Buffer.from(text)].map((code) => ({ code })),
  binary: (text) => bytesOf(text, 2, 8, ' '),
  'code points': (text) => [...text].map((each) => `\\u{${each.codePointAt(0)?.toString(16)}}`).join(''),
  reversed,
  'base64, reversed': (text) => reversed(base64(text)),
  'hex, reversed': (text) => reversed(hex(text)),
  'reversed, in base64': (text) => base64(reversed(text)),
  'upper case': (text) => text.toUpperCase(),
  'full width': (text) =>
    text.replaceAll(/[!-~]/g, (each) => String.fromCharCode(each.charCodeAt(0) + 0xfee0)),
  'in fours': (text) => text.replaceAll(/....(?=.)/g, '$& '),
  'with dots': (text) => [...text].join('.'),
  'with words between': (text) => [...text].join(' - '),
  characters: (text) => [...text],
  'object of pieces': (text) => ({ a: text.slice(0, 5), b: text.slice(5, 10), c: text.slice(10) }),
  'pieces of base64': (text) => base64(text).match(/.{1,7}/g),
  'pieces of hex': (text) => hex(text).match(/.{1,7}/g),
  bytes: (text) => [...Buffer.from(text)],
  'node buffer': (text) => Buffer.from(text).toJSON(),
  'name of a property': (text) => ({ [text]: true }),
  'the first ten': (text) => text.slice(0, 10),
  'all but the first': (text) => text.slice(1),
  deep: (text) => ({ a: [{ b: [[text]] }] }),
}

for (const [how, encode] of Object.entries(ENCODED))
  t.test(`a value in a response is withheld: ${how}`, async (t) => {
    for (const value of how === 'number' ? [NUMBER] : [NUMBER, KEY, '123-45-6789']) {
      const scrubbed = secretsOf({ value }).scrub({ kept: 'kept', told: encode(value) })
      t.match(JSON.stringify(scrubbed), 'withheld', value)
    }
  })

t.test('the names of properties in a response cannot reveal a value in pieces', async (t) => {
  const pieces = KEY.match(/.{1,7}/g)!.map((piece, at) => [piece, at])
  t.equal(secretsOf(KEY).scrub(Object.fromEntries(pieces)), WITHHELD)
})

t.test('a response that contains no data of the call is not changed', async (t) => {
  const answer = {
    id: 'ch_3MmlLrLkdIwHu7ix0snN0B15',
    uuid: '550e8400-e29b-41d4-a716-446655440000',
    created: '2026-11-24T16:42:05.000Z',
    amount: 2000,
    text: 'The charge was declined: insufficient funds.',
    list: [1, true, null, ''],
  }
  t.same(secretsOf({ number: NUMBER }, KEY, 'ada@example.org').scrub(answer), answer)
  t.same(new Secrets().scrub({ number: NUMBER }), { number: NUMBER })
})

t.test('a response that is nested more than 64 levels deep is withheld at once', async (t) => {
  const nested = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth))
  t.same(secretsOf(KEY).scrub(nested(64)), nested(64))
  for (const depth of [65, 16_000]) t.equal(secretsOf(KEY).scrub(nested(depth)), WITHHELD)
})

t.test('a part of the data that the mask shows does not count as secret', async (t) => {
  const secrets = new Secrets()
  const data = { number: NUMBER, expiration_year: 2030, tags: ['a', 'b'] }
  secrets.add(data, { number: 'XXXXXXXXXXXX4242', expiration_year: 2030, tags: ['a', 'X'] })
  t.same(secrets.scrub({ year: 2030, last4: '4242', tags: ['a', 'b'] }), {
    year: 2030,
    last4: '4242',
    tags: ['a', WITHHELD],
  })
})

t.test(
  'short secret texts are withheld only as whole words, and every number with as many digits as a secret number is withheld',
  async (t) => {
    const secrets = secretsOf('123', 'Ada')
    t.same(secrets.scrub(['cvc=123', 'x123', 'ADA', 'Adam', base64('cvc: 123')]), [
      WITHHELD,
      'x123',
      WITHHELD,
      'Adam',
      WITHHELD,
    ])
    const guesses = Array.from({ length: 900 }, (_, at) => at + 100)
    t.ok((secrets.scrub(guesses) as unknown[]).every((each) => each === WITHHELD))
    t.equal(secrets.scrubStatus(423), 400)
    const numbers = guesses.map((guess) => `4242424${guess}24242`)
    t.ok((secretsOf(NUMBER).scrub(numbers) as unknown[]).every((each) => each === WITHHELD))
    t.equal(secretsOf(NUMBER).scrubStatus(423), 423)
  },
)

t.test('a response that is too large or that is not text is withheld without a search', async (t) => {
  const secrets = secretsOf(NUMBER)
  t.equal(secrets.scrub('a '.repeat(40_000)), WITHHELD)
  t.equal(secrets.scrub(gzipSync('x'.repeat(5000) + Math.random()).toString('base64')), WITHHELD)
  t.equal(secretsOf('ab '.repeat(100_000)).scrub('x'), WITHHELD)
  const blob = Buffer.from(Array.from({ length: 300 }, (_, at) => (at * 37) % 251)).toString('base64')
  t.equal(secrets.scrub(blob), WITHHELD)
})

t.test(
  'a text is withheld if it contains any 48 consecutive characters of a long secret value',
  async (t) => {
    const letters = Array.from({ length: 3000 }, (_, at) => String.fromCharCode(97 + ((at * at * 7) % 26)))
    const text = letters.map((letter, at) => letter + (at % 97)).join('')
    const secrets = secretsOf(text)
    for (const at of [0, 500, 2311, text.length - 48])
      t.equal(secrets.scrub(`x${text.slice(at, at + 48)}y`), WITHHELD)
  },
)

t.test(
  'the time to search a response for secret values is limited by the size of the response',
  async (t) => {
    const text = Array.from({ length: 1000 }, (_, at) => base64(`row ${at} of a list`)).join(' ')
    const began = performance.now()
    secretsOf(NUMBER, KEY).scrub({ text })
    t.ok(performance.now() - began < 2000, `the search took ${Math.round(performance.now() - began)} ms`)
    t.comment(`${text.length} characters in ${Math.round(performance.now() - began)} ms`)
  },
)
