/**
 * `coffer scan`: the command finds values in each encoding and place, however the input is split into chunks, and
 * never prints a value.
 */
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { scanChunks } from '../../src/cli/commands/scan.js'
import { SHORTEST_VALUE, ValueFinder } from '../../src/domain/text/value-finder.js'
import { ruleOf, testVault } from './home.js'

const CARD = '4242424242424242'

testVault(
  'values are found in files, folders and pipes, and are reported by token and line',
  async (t, home) => {
    await home.createToken({ id: 'card-1', type: 'card', data: { number: CARD } })
    await home.createToken({ id: 'note', data: 'a secret note' })
    t.same(await home.json('scan .coffer'), [], 'the files of a vault contain no value in plaintext')
    t.same(await home.json('scan -', { stdin: 'nothing\n' }), [])
    mkdirSync(join(home.place, 'logs/deep'), { recursive: true })
    home.write('logs/a.log', `one\ntwo a secret note, twice: a secret note\n4242 4242 4242 4242`)
    const deep = { long: 'x'.repeat(700_000), url: encodeURIComponent('a secret note') }
    home.write('logs/deep/b.json', JSON.stringify(deep))
    symlinkSync(join(home.place, 'logs'), join(home.place, 'logs/deep/again'))
    const { code, stdout, stderr } = await home.run('scan logs')
    t.equal(code, 10)
    t.same(JSON.parse(stdout), [
      { id: 'note', file: 'logs/a.log', line: 2 },
      { id: 'card-1', file: 'logs/a.log', line: 3 },
      { id: 'note', file: 'logs/deep/b.json', line: 1 },
    ])
    t.match(stderr, 'Values of tokens are in plaintext in 3 places.')
    t.notMatch(stdout + stderr, /secret|4242/)
    const piped = `\n\n${base64(`{"n":"${CARD}"}`)}`
    const found = { code: 10, stdout: '[{"id":"card-1","line":3,"file":"-"}]\n', stderr: 'in 1 place.' }
    t.match(await home.run('scan -', { stdin: piped }), found)
    t.equal((await home.json('log reveals card-1')).count, 4, 'the log has one record for each scan')
    const shown = await home.run('scan logs/a.log', { columns: 80 })
    t.match(shown.stdout, /^id +file +line\nnote +logs\/a\.log +2\ncard-1 +logs\/a\.log +3\n/)
  },
)

testVault(
  'values that are too short to search for, and files that cannot be read, are reported',
  async (t, home) => {
    const long = `${'long '.repeat(400)}end`
    home.write('long', long)
    await home.createToken({ id: 'short', data: ['12345', 'x', 'a secret'] })
    await home.createToken({ id: 'long', data: long })
    const { code, stdout, stderr } = await home.run('scan long -', { stdin: long.slice(0, 1023) })
    t.same([code, JSON.parse(stdout)], [10, [{ id: 'long', file: 'long', line: 1 }]])
    t.match(stderr, 'Skipped 2 values shorter than 6 bytes.\n')
    home.write('empty', '')
    for (const [line, message] of [
      ['scan nowhere empty', /nowhere\) does not exist[\s\S]*Files that could not be read: 1\./],
      ['scan', /Missing required argument 'path'/],
    ] as const)
      t.match(await home.run(line), { code: 2, stderr: message })
    if (process.getuid?.() === 0) return
    chmodSync(home.write('closed', 'x'), 0)
    t.equal((await home.run('scan closed')).code, 2)
  },
)

const base64 = (text: string) => Buffer.from(text).toString('base64')
const escapeAll = (text: string) =>
  text.replace(/./gs, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)

const ENCODINGS: ((text: string) => string)[] = [
  String,
  (text) => JSON.stringify(text),
  escapeAll,
  encodeURIComponent,
  (text) => new URLSearchParams({ q: text }).toString(),
  base64,
  (text) => Buffer.from(`{${text}`).toString('base64url'),
  (text) => (/^\d+$/.test(text) ? text.replace(/\d{4}(?=\d)/g, '$& ') : text),
]

const value = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 6, maxLength: 14 }),
  fc.string({ unit: fc.constantFrom('1', '2', '3'), minLength: 8, maxLength: 19 }),
  fc.string({ unit: fc.constantFrom('a', ' ', '+', '%', '"', 'ë', '\\', '4'), minLength: 6, maxLength: 30 }),
)
const encoding = fc.constantFrom(...ENCODINGS)

/** Yields a text in chunks that end at these places. */
async function* cut(text: string, places: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  for (const [at, end] of [...ends, bytes.length].entries()) yield bytes.subarray(ends[at - 1] ?? 0, end)
}

const places = fc.array(fc.nat(4000), { maxLength: 6 })

t.test(
  'a value in a long line is found once, even across the pieces into which the line is split',
  async () => {
    const cases = fc.tuple(value, encoding, encoding, fc.nat(3000), fc.nat(3000), places)
    await fc.assert(
      fc.asyncProperty(cases, async ([text, inner, outer, before, after, ends]) => {
        const finder = new ValueFinder()
        finder.add('id', text)
        const line = `one\n${'~'.repeat(before)} ${outer(inner(text))} ${'~'.repeat(after)}`
        const found: unknown[] = []
        for await (const each of scanChunks(cut(line, ends), finder, { piece: 1300, overlap: 1200 }))
          found.push(each)
        return JSON.stringify(found) === '[{"id":"id","line":2}]'
      }),
      { numRuns: 150 },
    )
  },
)

const latin1 = (text: string) => Buffer.from(text).toString('latin1')

t.test('values are found in each encoding that the help names', async (t) => {
  const finder = new ValueFinder()
  finder.add('card', { number: '4242424242424242', expiration_year: 2030, cvc: '123' })
  finder.add('ssn', '123-45-6789')
  finder.add('number', { deep: [{ account: 98765432 }] })
  finder.add('name', { name: 'Zoë "Z" O/Hara' })
  finder.add('same', 'Zoë "Z" O/Hara')
  finder.add('key', '-----BEGIN-----\r\nMIIEvQIBADANBgkqhkiG9w0\n-----END-----')
  finder.add('short', 'short')
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

t.test('values are not found in the encodings that the help excludes', async (t) => {
  const finder = new ValueFinder()
  finder.add('name', 'Zoë & Söhne')
  finder.add('iban', 'DE89370400440532013000')
  const other = [
    'zoë & söhne',
    'Zoë & Söhne'.normalize('NFD'),
    'Zo&euml; &amp; S&ouml;hne',
    'Zoë &amp; Söhne',
  ]
  for (const text of [...other, 'DE89 3704 0044 0532 0130 00'])
    t.same([...finder.find(latin1(text))], [], text)
  t.same([...finder.find(Buffer.from('DE89370400440532013000', 'utf16le').toString('latin1'))], [])
  t.same([...finder.find(latin1('Zoë & Söhne, DE89370400440532013000'))], ['name', 'iban'])
})

t.test(
  'a search for 1,000 values with a common ending does not compare every value at each place',
  async (t) => {
    const finder = new ValueFinder()
    const lengths = Array.from({ length: 1000 }, (_, index) => index + SHORTEST_VALUE)
    for (const length of lengths) finder.add(String(length), 'a'.repeat(length))
    // Comparing every value at each place would take minutes and exceed the time limit of the test.
    t.equal(finder.find('a'.repeat(50_000)).size, lengths.length)
    t.equal(
      finder.find('a'.repeat(20)).size,
      20 - SHORTEST_VALUE + 1,
      'each call of find starts from the beginning',
    )
  },
)

testVault('values that a mask shows are not searched for', async (t, home) => {
  const data = { name: 'Ada Lovelace', iban: 'GB33BUKB20201555555555' }
  await home.createToken({ id: 'ada', data, mask: { greeting: 'Dear {{ data.name }}' } })
  await home.createToken({
    type: 'bank',
    data: { routing_number: '021000021', account_number: '1234567890' },
  })
  const scan = async (stdin: string, env = {}) => (await home.run('scan -', { stdin, env })).code
  t.equal(await scan('Ada Lovelace banks at 021000021'), 0)
  t.equal(await scan('GB33BUKB20201555555555'), 10)
  t.equal(await scan('1234567890'), 10)
  const { key } = await home.createApp({ rules: [ruleOf('mask')] })
  t.equal(await scan('Dear Ada Lovelace', { COFFER_API_KEY: key }), 0, 'masked data is not searched for')
})
