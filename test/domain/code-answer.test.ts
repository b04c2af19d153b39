import { Readable } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { passAnswerHeaders, passHeaders, readCodeAnswer } from '../../src/domain/proxy/code-answer.js'
import { collectBytes } from '../../src/domain/proxy/collect-bytes.js'

/** Returns the response that the code gave, or the error if the code gave an invalid response. */
function read(given: unknown): unknown {
  try {
    return readCodeAnswer(given, 'SVC')
  } catch (error) {
    return (error as Error).message
  }
}

t.test(
  'the status, headers and body of a response of code are read, and names of headers become lower case',
  async (t) => {
    const cases: [unknown, unknown][] = [
      [{}, { statusCode: 200, headers: {} }],
      [
        { statusCode: 402, headers: { 'X-A': ' b ' }, body: { c: 1 } },
        { statusCode: 402, headers: { 'x-a': 'b' }, body: { c: 1 } },
      ],
      [
        { statusCode: null, headers: null, body: null },
        { statusCode: 200, headers: {}, body: null },
      ],
      [
        { statusCode: 599, body: 'x', more: 1 },
        { statusCode: 599, headers: {}, body: 'x' },
      ],
      [5, 'res must be an object'],
      [[], 'res must be an object'],
      ...[199, 600, 200.5, '200', true].map((statusCode): [unknown, unknown] => [
        { statusCode },
        'res.statusCode must be an integer from 200 to 599',
      ]),
      [{ headers: [] }, 'res.headers must be an object'],
      [{ headers: { 'a b': 'c' } }, 'res.headers has a name that no header can have'],
      [{ headers: { '': 'c' } }, 'res.headers has a name that no header can have'],
      [{ headers: { a: 5, b: true } }, { statusCode: 200, headers: { a: '5', b: 'true' } }],
      ...[null, ['b'], 'b\r\nc: d', 'b\0', '€'].map((value): [unknown, unknown] => [
        { headers: { a: value } },
        'res.headers.a must be text without line breaks, in Latin-1',
      ]),
      [{ headers: { a: 'x'.repeat(8192) } }, 'res.headers must have at most 8192 characters'],
    ]
    for (const [given, expected] of cases) t.same(read(given), expected, JSON.stringify(given)?.slice(0, 60))
  },
)

const DROPPED = [
  ...'Connection Keep-Alive Proxy-Authenticate Proxy-Authorization Proxy-Connection TE Trailer'.split(' '),
  ...'Transfer-Encoding Upgrade Content-Length SVC-TRACE-ID svc-anything'.split(' '),
]
const OF_SERVER = [
  ...'Set-Cookie Service-Worker-Allowed Clear-Site-Data Strict-Transport-Security'.split(' '),
  ...'Access-Control-Allow-Origin Access-Control-Expose-Headers'.split(' '),
]

t.test('headers that code is not allowed to set are removed in every spelling', async (t) => {
  const lower = (names: string[]) => names.map((name) => name.toLowerCase())
  const mapOf = (names: string[]) => Object.fromEntries(names.map((name) => [name, 'x']))
  const names = [...DROPPED, ...OF_SERVER]
  for (const spelled of [names, lower(names), names.map((name) => name.toUpperCase())])
    t.strictSame(readCodeAnswer({ headers: { ...mapOf(spelled), kept: 'y' } }, 'SVC').headers, { kept: 'y' })
  t.strictSame(passAnswerHeaders(mapOf(lower(names)), 'svc'), {})
  t.strictSame(Object.keys(passHeaders(mapOf(lower(names)), 'svc')).sort(), lower(OF_SERVER).sort())
  t.strictSame(passHeaders({ connection: 'close, X-Hop', 'x-hop': '1', other: '2' }, 'svc'), { other: '2' })
  t.strictSame(
    passHeaders({ 'svc-key': '1', 'bt-key': '2' }, 'BT'),
    { 'svc-key': '1' },
    'the prefix decides which headers are removed',
  )
})

t.test('every accepted response of code can be sent', async (t) => {
  const name = fc.oneof(
    fc.string(),
    fc.constantFrom(...DROPPED, ...OF_SERVER, 'x-a', '__proto__', 'Content-Type'),
  )
  const headers = fc.dictionary(name, fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.integer()))
  const given = fc.record(
    { statusCode: fc.oneof(fc.integer(), fc.integer({ min: 199, max: 600 })), headers, body: fc.jsonValue() },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(given, (answer) => {
      let answered: ReturnType<typeof readCodeAnswer>
      try {
        answered = readCodeAnswer(answer, 'svc')
      } catch {
        return
      }
      const sent = new Headers(answered.headers)
      for (const dropped of [...DROPPED, ...OF_SERVER]) t.notOk(sent.has(dropped))
      t.ok(answered.statusCode >= 200 && answered.statusCode <= 599)
      t.strictSame(answered.body, answer.body)
    }),
    { numRuns: 300 },
  )
})

t.test('a response body is read up to the limit, and a longer body is not read to its end', async (t) => {
  const pieces = [Buffer.from('ab'), Buffer.from('c'), Buffer.from('d')]
  const read: string[] = []
  async function* give() {
    for (const piece of pieces) {
      read.push(piece.toString())
      yield piece
    }
  }
  t.equal((await collectBytes(give(), 4))?.toString(), 'abcd')
  t.equal((await collectBytes([], 0))?.length, 0)
  read.length = 0
  t.equal(await collectBytes(give(), 2), undefined)
  t.same(read, ['ab', 'c'])
  const stream = Readable.from(pieces)
  t.equal(await collectBytes(stream, 3), undefined)
  t.ok(stream.destroyed)
  const broken = Readable.from(pieces)
  broken.destroy(new Error('gone'))
  await t.rejects(collectBytes(broken, 9), { message: 'gone' })
})
