import fc from 'fast-check'
import t from 'tap'
import { findTexts } from '../../src/domain/json/find-texts.js'
import { readJsonBody } from '../../src/domain/proxy/code-answer.js'
import { findTemplate, leadsElsewhere, type ProxyRequest } from '../../src/domain/proxy/proxy-request.js'
import { MASK_PROGRAM } from '../../src/operations/proxy/proxy-transforms.js'

const request = (change: Partial<ProxyRequest> = {}): ProxyRequest => ({
  method: 'POST',
  path: '/a',
  query: '',
  headers: {},
  body: new Uint8Array(),
  ...change,
})
const body = (text: string, type?: string) =>
  request({ body: Buffer.from(text), headers: type === undefined ? {} : { 'content-type': type } })
const fill = (given: ProxyRequest, value: unknown) => {
  const { document, fill } = findTemplate(given)
  if (document === undefined) return given
  const { path, query, headers, body } = document
  const same = <T>(list: readonly T[]) => list.map(() => value)
  const named = Object.fromEntries(Object.keys(headers).map((name) => [name, value]))
  return fill({ path: same(path), query: same(query), headers: named, body: same(body) })
}
const textOf = ({ body }: ProxyRequest) => Buffer.from(body).toString()

t.test('a proxy request without an expression is not changed', async (t) => {
  const bytes = fc.uint8Array({ maxLength: 60 })
  const text = fc.string({ maxLength: 30 }).filter((each) => !/(?:\{|%7b){2}/i.test(each))
  const type = fc.constantFrom(
    'application/json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'image/png',
  )
  const property = fc.property(bytes, text, text, type, (body, path, query, type) => {
    if (Buffer.from(body).includes('{{')) return
    const given = request({ body, path, query, headers: { 'content-type': type } })
    t.equal(findTemplate(given).document, undefined)
    t.equal(findTemplate(given).fill({ path: [], query: [], headers: {}, body: [] }), given)
  })
  fc.assert(property, { numRuns: 300 })
})

t.test(
  'an expression in JSON is replaced by one value, and the rest of the text is not changed',
  async (t) => {
    const property = fc.property(fc.jsonValue(), fc.string(), (value, name) => {
      const text = `{ "a" : [ "{{ x }}" , 1.50 ],\n ${JSON.stringify(`${name}{{`)} : "\\"{{ y }}\\"" }`
      const filled = textOf(fill(body(text, 'application/json'), value))
      const plain = JSON.stringify(value)
      t.equal(filled, `{ "a" : [ ${plain} , 1.50 ],\n ${JSON.stringify(`${name}{{`)} : ${plain} }`)
    })
    fc.assert(property, { numRuns: 200 })
  },
)

t.test(
  'expressions are found in JSON that is nested 64 levels deep, and a deeper body is refused',
  async (t) => {
    const nested = (depth: number) =>
      body(`${'['.repeat(depth)}"{{ x }}"${']'.repeat(depth)}`, 'application/json')
    t.match(textOf(fill(nested(64), 'v')), '[["v"]]')
    const errors = { body: ['is nested more than 64 levels deep'] }
    for (const depth of [65, 16_000])
      t.throws(() => findTemplate(nested(depth)), { code: 'validation', errors })
  },
)

t.test(
  'an expression in JSON is also found if its braces are escaped, and names of properties are not changed',
  async (t) => {
    const escaped = '"\\u007b\\u007B x \\u007d\\u007D"'
    const text = `{"a":[${escaped},"{\\u007b x }}","\\\\u007b{ x }}","\\u007b"],${escaped}:1}`
    const filled = `{"a":["v","v","\\\\u007b{ x }}","\\u007b"],${escaped}:1}`
    t.equal(textOf(fill(body(text, 'application/json'), 'v')), filled)
    const plain = body('\\u007b\\u007b x', 'text/plain')
    t.equal(fill(plain, 'v'), plain)
  },
)

t.test('an error about an expression names its place in the request as the caller wrote it', async (t) => {
  const placesOf = (change: Partial<ProxyRequest>) => Object.fromEntries(findTemplate(request(change)).places)
  const json = Buffer.from('{"a":{"b":["x","{{ 1 }}"]},"c":"{{ 2 }}","d":"{{ 1 }}"}')
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  t.same(
    placesOf({
      path: '/a=b/{{ 3 }}',
      query: 'p=1&q={{+4+}}-{{+5+}}&{{+6+}}',
      headers: { x: '{{ 7 }}' },
      body: json,
    }),
    {
      '{{ 3 }}': 'path',
      '{{ 4 }}': 'query.q',
      '{{ 5 }}': 'query.q',
      '{{ 6 }}': 'query',
      '{{ 7 }}': 'headers.x',
      '{{ 1 }}': 'body.a.b[1]',
      '{{ 2 }}': 'body.c',
    },
  )
  t.same(placesOf({ headers: form, body: Buffer.from('card={{ 1 }}') }), { '{{ 1 }}': 'body.card' })
  t.same(placesOf({ body: Buffer.from('Dear {{ 1 }}') }), { 'Dear {{ 1 }}': 'body' })
})

t.test('a value in a URL or a form is percent-encoded, and decoding gives the same value', async (t) => {
  const property = fc.property(fc.string({ unit: 'grapheme' }), (value) => {
    const given = request({ path: '/x/{{a}}/y', query: 'b=%7B%7B+c+%7D%7D&d=e%20f' })
    const { path, query } = fill(given, value)
    const segments = path.split('/')
    t.equal(segments.length, 4)
    t.equal(decodeURIComponent(segments[2]!), value)
    t.equal(new URLSearchParams(query).get('b'), value)
    t.ok(query.endsWith('&d=e%20f'))
    const form = textOf(fill(body('a=%7B%7Bx%7D%7D&b={{y}}', 'application/x-www-form-urlencoded'), value))
    t.same(Object.fromEntries(new URLSearchParams(form)), { a: value, b: value })
  })
  fc.assert(property, { numRuns: 200 })
  t.throws(() => fill(request({ path: '/{{a}}' }), '\ud800'), { code: 'validation' })
  t.throws(() => findTemplate(request({ path: '/{{%ff}}' })), { code: 'validation' })
})

t.test('expressions are found in every kind of text, and not in bytes that are no text', async (t) => {
  const read = (change: Partial<ProxyRequest>) => findTemplate(request(change)).document
  t.strictSame(read({ path: '/a%7b{x+y}%7D/{{ b' })?.path, ['{{x+y}}', '{{ b'])
  t.strictSame(read({ query: 'a={{x+y%2Bz}}&{{n}}=1' })?.query, ['{{x y+z}}', '{{n}}'])
  t.strictSame(read({ headers: { a: 'Bearer {{ x }}', b: '{ {' } })?.headers, { a: 'Bearer {{ x }}' })
  const texts = (text: string, type?: string) => findTemplate(body(text, type)).document?.body
  t.strictSame(texts('<a>{{ x }}</a>', 'text/xml'), ['<a>{{ x }}</a>'])
  t.strictSame(texts('["{{ x }}"]'), ['{{ x }}'], 'JSON is recognized without a content type')
  t.strictSame(texts('[{{ x }}]'), ['[{{ x }}]'], 'text is recognized without a content type')
  t.equal(texts('{"{{ x }}" \n : 1}', 'application/json'), undefined, 'a name')
  t.throws(() => texts('[{{ x }}]', 'application/problem+json'), { code: 'validation' })
  const binary = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('{{ x }}')])
  t.equal(
    findTemplate(request({ body: binary })).document,
    undefined,
    'no expression is found in bytes that are not text',
  )
  const packed = request({ body: Buffer.from('{{ x }}'), headers: { 'content-encoding': 'gzip' } })
  t.equal(findTemplate(packed).document, undefined)
})

t.test('a value that an expression inserts in a header must be one line of ASCII', async (t) => {
  const header = (value: unknown) => fill(request({ headers: { a: '{{ x }}' } }), value).headers.a
  t.strictSame(['x', 1, null, { b: [1] }].map(header), ['x', '1', '', '{"b":[1]}'])
  for (const value of ['a\nb', 'a\rb', 'a\0b', 'ü', '\u2028', { a: 'ü' }])
    t.throws(() => header(value), { code: 'validation' })
})

t.test('a proxy path that leads to another host or to a parent folder is refused', async (t) => {
  const paths = '/.. /a/../b /a/. /%2e%2E/a /a%2f..%2fb /a\\..\\b /a/.%2e /..;a=b/c /%2e%2e%3Ba/c'
  for (const path of paths.split(' ')) t.ok(leadsElsewhere(path), path)
  for (const path of ['', '/', '/a..b', '/...', '/.well-known/x', '/a/..b', '/a;../b..'])
    t.notOk(leadsElsewhere(path), path)
  t.same(readJsonBody({ 'content-type': 'application/vnd.a+json; charset=utf-8' }, '1'), 1)
  t.equal(readJsonBody({ 'content-type': 'text/json-like' }, '{}'), undefined)
})

t.test('a mask transform covers everything that the groups of its expression match', async (t) => {
  const module: { exports?: (given: object) => Promise<{ body: string }> } = {}
  new Function('module', MASK_PROGRAM)(module)
  const mask = async (text: string, expression?: string) =>
    (await module.exports!({ args: { body: text }, configuration: { expression, replacement: '*' } })).body
  for (const [text, expression, masked] of [
    ['a 1234 b 5678', '([0-9]+)', 'a **** b ****'],
    ['ab-cd', '(a)(b)-(?:c)(d)', '**-c*'],
    ['abcd', '((b)(c))', 'a**d'],
    ['é😀', '(é)', '*😀'],
    ['a😀', 'a(.)', 'a*'],
    ['aabbccaabbccaa', '^(aa).*?$', '**bbcc**bbcc**'],
    ['4242424242424242', '([0-9]{12})[0-9]{4}', '************4242'],
    ['x1 x', '(x)[0-9](y)?', '*1 x'],
    ['aaa', '(?=(aa))', '***'],
    ['a1'.repeat(200_000), '([0-9])', 'a*'.repeat(200_000)],
  ] as const)
    t.equal(await mask(text, expression), masked, expression)
  const record = (pan: string) => `T74V${'0'.repeat(40)}${pan}`
  const number = '4111111111111111   '
  const lines = (pan: string) => [
    record(pan),
    `${record(pan)}tail`,
    ` ${record(number)}`,
    record(number).slice(0, 62),
    number,
  ]
  for (const end of ['\n', '\r', '\r\n'])
    t.equal(await mask(lines(number).join(end)), lines('*'.repeat(19)).join(end), JSON.stringify(end))
})

t.test('the search for expressions in a body takes about as long as parsing the body', async (t) => {
  const text = `["{{ x }}",${'[],'.repeat(340_000)}{"a":["{{ y }}"]}]`
  const value = JSON.parse(text)
  const measure = (work: () => unknown) => {
    const times = [1, 2, 3, 4, 5].map(() => {
      const before = process.cpuUsage()
      work()
      const { user, system } = process.cpuUsage(before)
      return user + system
    })
    return Math.min(...times)
  }
  const parsing = measure(() => JSON.parse(text))
  const searching = measure(() => findTexts(value, 'body', new Map()))
  t.ok(searching < 4 * parsing, `searching took ${searching} µs, parsing took ${parsing} µs`)
  const found = [...findTexts(value, 'body', new Map())]
  t.same(found, [
    ['{{ x }}', 'body[0]'],
    ['{{ y }}', 'body[340001].a[0]'],
  ])
})

t.test('a request with too many expressions is refused before its expressions are parsed', async (t) => {
  const texts = Array.from({ length: 5_001 }, (_, index) => `{{ ${index} }}`)
  for (const [type, text] of [
    ['application/json', JSON.stringify(texts)],
    ['application/x-www-form-urlencoded', '{{a}}'.repeat(5_001)],
  ] as const)
    t.throws(
      () => findTemplate(body(text, type)),
      { code: 'too_much_work', message: /5,000 expressions/ },
      type,
    )
})

t.test('expressions can insert values with at most 2 Mi characters in total in a form', async (t) => {
  const form = () => body('a={{a}}&b={{b}}', 'application/x-www-form-urlencoded')
  t.equal(textOf(fill(form(), 'x'.repeat(1024 * 1024))).length, 2 * 1024 * 1024 + 5)
  t.throws(() => fill(form(), 'x'.repeat(1024 * 1024 + 1)), { code: 'validation' })
})
