/** Values are found in every encoding, wherever they stand, and nothing else is. */
import fc from 'fast-check'
import t from 'tap'
import { SHORTEST_VALUE, ValueFinder } from '../../src/domain/text/value-finder.js'

const latin1 = (text: string) => Buffer.from(text).toString('latin1')

t.test('values in their encodings', async (t) => {
  const finder = new ValueFinder()
  finder.add('card', { number: '4242424242424242', expiration_year: 2030, cvc: '123' })
  finder.add('ssn', '123-45-6789')
  finder.add('number', { deep: [{ account: 98765432 }] })
  finder.add('name', { name: 'Zoë "Z" O/Hara' })
  finder.add('same', 'Zoë "Z" O/Hara')
  finder.add('key', '-----BEGIN-----\r\nMIIEvQIBADANBgkqhkiG9w0\n-----END-----')
  finder.add('short', 'short')
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  for (const [text, ids] of [
    ['nothing 4242424242424241 to see, 2030, 123, short', []],
    ['x4242424242424242y', ['card']],
    ['card 4242 4242 4242 4242.', ['card']],
    ['4242-4242-4242-4242', ['card']],
    ['4242  4242 4242 4242', []],
    ['123456789 or 123-45-6789', ['ssn']],
    ['account=98765432', ['number']],
    ['Zoë "Z" O/Hara', ['name', 'same']],
    [JSON.stringify({ a: 'Zoë "Z" O/Hara' }), ['name', 'same']],
    ['"Zo\\u00EB \\u0022Z\\" O\\/Hara"', ['name', 'same']],
    [`?q=${encodeURIComponent('Zoë "Z" O/Hara')}`, ['name', 'same']],
    [new URLSearchParams({ q: 'Zoë "Z" O/Hara' }).toString(), ['name', 'same']],
    [`Basic ${base64('user:4242424242424242')}`, ['card']],
    [Buffer.from('ab{"n":"4242 4242 4242 4242"}').toString('base64url'), ['card']],
    [encodeURIComponent(base64('a 4242424242424242')), ['card']],
    ['key MIIEvQIBADANBgkqhkiG9w0', ['key']],
  ] as const)
    t.same([...finder.find(latin1(text))].sort(), ids, text)
})

t.test('the limits that its help tells', async (t) => {
  const finder = new ValueFinder()
  finder.add('name', 'Zoë & Söhne')
  finder.add('iban', 'DE89370400440532013000')
  for (const text of [
    'zoë & söhne',
    'Zoë & Söhne'.normalize('NFD'),
    'Zo&euml; &amp; S&ouml;hne',
    'Zoë &amp; Söhne',
    'DE89 3704 0044 0532 0130 00',
  ])
    t.same([...finder.find(latin1(text))], [], text)
  t.same([...finder.find(Buffer.from('DE89370400440532013000', 'utf16le').toString('latin1'))], [])
  t.same([...finder.find(latin1('Zoë & Söhne, DE89370400440532013000'))], ['name', 'iban'])
})

t.test('any value is found in any encoding', async () => {
  const value = fc.string({ unit: 'binary', minLength: 6, maxLength: 40 }).filter((text) => {
    const [longest = ''] = text.split(/[\r\n]+/).sort((a, b) => b.length - a.length)
    return Buffer.from(longest).length >= 6 && Buffer.from(text, 'utf8').toString() === text
  })
  const around = fc.string({ unit: 'grapheme-ascii', maxLength: 8 })
  const encodings: ((text: string) => string)[] = [
    String,
    (text) => JSON.stringify({ text }),
    (text) =>
      JSON.stringify(text).replace(
        /[^ -~]/g,
        (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
      ),
    (text) => encodeURIComponent(text),
    (text) => Buffer.from(text).toString('base64'),
    (text) => Buffer.from(`{${text}`).toString('base64url'),
  ]
  fc.assert(
    fc.property(value, around, fc.constantFrom(...encodings), (text, before, encode) => {
      const finder = new ValueFinder()
      finder.add('id', { text })
      // Letters before base64 would belong to it.
      return finder.find(latin1(`${before} ${encode(text)} ${before}`)).has('id')
    }),
    { numRuns: 500 },
  )
})

t.test('values that end alike are looked for no longer than one of them is', async (t) => {
  const finder = new ValueFinder()
  const lengths = Array.from({ length: 1000 }, (_, index) => index + SHORTEST_VALUE)
  for (const length of lengths) finder.add(String(length), 'a'.repeat(length))
  // Comparing all of them at each place takes minutes, which no test is given.
  t.equal(finder.find('a'.repeat(50_000)).size, lengths.length)
  t.equal(finder.find('a'.repeat(20)).size, 20 - SHORTEST_VALUE + 1, 'each call begins anew')
})
