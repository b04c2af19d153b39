import t from 'tap'
import { computeHmac } from '../../src/crypto/hmac.js'
import { Budget } from '../../src/domain/expression/budget.js'
import { createExpressions } from '../../src/domain/expression/expression.js'
import type { TokenRecord } from '../../src/domain/records/records.js'
import { compileMask } from '../../src/domain/token/mask.js'
import { patchToken, prepareToken, type TokenDraft } from '../../src/domain/token/token.js'
import { checkTokenId } from '../../src/domain/token/token-id.js'
import { CofferError, type PropertyErrors } from '../../src/errors.js'
import { redactDuplicate, viewToken } from '../../src/operations/token/token-attributes.js'

const NOW = Date.UTC(2026, 10, 20)
let drawn = 0
const random = { bytes: (count: number) => Uint8Array.from({ length: count }, () => drawn++ % 250) }
const rules = {
  expressions: createExpressions(random, computeHmac),
  now: NOW,
  get budget() {
    return new Budget()
  },
}

const prepare = (input: Record<string, unknown>) => prepareToken(input, rules)
const patch = (record: TokenRecord, change: Record<string, unknown>) => patchToken(record, change, rules)

async function errorsOf(work: Promise<unknown>): Promise<PropertyErrors | string> {
  try {
    return `no refusal but ${JSON.stringify(await work)}`
  } catch (error) {
    return error instanceof CofferError && error.code === 'validation'
      ? (error.errors ?? 'no errors')
      : `not ours: ${error}`
  }
}

function recordOf(draft: TokenDraft): TokenRecord {
  return {
    ...draft.record,
    id: 'token-id',
    tenant_id: 'tenant',
    fingerprint: 'print',
    created_by: 'maker',
    created_at: '2026-11-20T00:00:00.000+00:00',
  }
}

const CARD = {
  type: 'card',
  data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' },
}
const CARD_MASK = {
  number: '{{ data.number | reveal_last: 4 }}',
  expiration_month: '{{ data.expiration_month }}',
  expiration_year: '{{ data.expiration_year }}',
}

t.test('a card is kept with the defaults of its type', async (t) => {
  t.strictSame(await prepare(CARD), {
    record: {
      type: 'card',
      data: CARD.data,
      mask: CARD_MASK,
      masked: { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 },
      containers: ['/pci/high/'],
      fingerprint_expression: '{{ data.number }}',
    },
    fingerprintText: '["card","4242424242424242"]',
    searchValues: [],
  })
})

t.test('a social security number is searchable in three spellings', async (t) => {
  const { record, searchValues, fingerprintText } = await prepare({
    type: 'social_security_number',
    data: '123-45-6789',
  })
  t.strictSame(searchValues, ['123-45-6789', '123456789', '6789'])
  t.equal(fingerprintText, '["social_security_number","123456789"]')
  t.equal(record.masked, 'XXX-XX-6789')
  t.strictSame(record.search_indexes, ['{{ data }}', "{{ data | remove: '-' }}", '{{ data | last4 }}'])
})

t.test('every attribute that is given is kept', async (t) => {
  const input = {
    id: 'my token',
    type: 'token',
    data: { name: 'Ada', age: 36 },
    mask: { name: '{{ data.name | slice: 0 }}…', fixed: [true, null, 3, 'x'] },
    containers: ['/people/', '/eu/', '/people/'],
    metadata: { Customer: '42' },
    search_indexes: ['{{ data.name }}', '{{ data.age }}', 'ADA'],
    fingerprint_expression: '{{ data.name }}/{{ metadata.Customer }}',
    deduplicate_token: false,
    expires_at: '8/27/2030 2:23:57 AM +02:00',
    unknown: 'ignored',
  }
  t.strictSame(await prepare(input), {
    record: {
      type: 'token',
      data: { name: 'Ada', age: 36 },
      mask: input.mask,
      masked: { name: 'A…', fixed: [true, null, 3, 'x'] },
      containers: ['/people/', '/eu/'],
      metadata: { Customer: '42' },
      search_indexes: input.search_indexes,
      fingerprint_expression: input.fingerprint_expression,
      deduplicate_token: false,
      expires_at: '2030-08-27T00:23:57.000+00:00',
    },
    id: { kind: 'given', id: 'my token' },
    fingerprintText: '["token","Ada/42"]',
    searchValues: ['ada', '36'],
    expires: Date.UTC(2030, 7, 27, 0, 23, 57),
  })
})

t.test('null counts as absent, but a null mask is no mask', async (t) => {
  const nulls = Object.fromEntries(
    [
      'id',
      'containers',
      'metadata',
      'search_indexes',
      'fingerprint_expression',
      'deduplicate_token',
      'expires_at',
    ].map((name) => [name, null]),
  )
  t.strictSame(await prepare({ ...CARD, ...nulls }), await prepare(CARD))
  const { record } = await prepare({ ...CARD, mask: null })
  t.notOk('mask' in record)
  t.notOk('masked' in record)
})

t.test('any value but null is data', async (t) => {
  for (const data of ['', 0, false, [], {}, [null]]) {
    const draft = await prepare({ type: 'token', data })
    t.strictSame(draft.record.data, data)
    t.equal(
      draft.fingerprintText,
      JSON.stringify(['token', typeof data === 'string' ? data : JSON.stringify(data)]),
    )
  }
  t.strictSame(await errorsOf(prepare({ type: 'token', data: null })), {
    data: ['must not be null; a token holds a value'],
  })
})

t.test('all complaints come at once, each under its own path', async (t) => {
  const errors = await errorsOf(
    prepare({
      id: 'a/b',
      type: 'cards',
      data: null,
      mask: { a: '{{ data | no }}', b: ['{% if %}', { c: '{{' }] },
      containers: ['/ok/', 'bad'],
      metadata: { fine: 'x', bad: 1 },
      search_indexes: ['{{ other }}', 3],
      fingerprint_expression: 7,
      deduplicate_token: 'true',
      expires_at: '2/30/2030',
    }),
  )
  const paths = [
    'type',
    'expires_at',
    'data',
    'containers[1]',
    'metadata.bad',
    'deduplicate_token',
    'id',
    'mask.a',
    'mask.b[0]',
    'mask.b[1].c',
    'fingerprint_expression',
    'search_indexes[0]',
    'search_indexes[1]',
  ]
  t.strictSame(Object.keys(errors), paths)
  t.strictSame(await errorsOf(prepare({})), { type: ['is required'], data: ['is required'] })
  t.strictSame(await errorsOf(prepare({ type: 3, data: 1, expires_at: 5 })), {
    type: ['must be a string'],
    expires_at: ['must be a string'],
  })
  const message = await prepare({ ...CARD, data: { number: '1', cvc: '1' } }).catch((error) => error.message)
  t.equal(message, 'data.number: must be a string of 12 to 19 digits, no separators (and 1 more)')
})

t.test('expressions that cannot work on the data are named', async (t) => {
  const takes = 'this filter takes text, a number or a boolean; use stringify or json on objects and arrays'
  const input = {
    type: 'token',
    data: { o: {}, s: 'x' },
    mask: { s: '{{ data.s }}', o: ['{{ data.o | last4 }}'] },
    search_indexes: ['{{ data.s }}', '{{ data.o | last4 }}'],
    fingerprint_expression: '{{ data.o | last4 }}',
  }
  t.strictSame(await errorsOf(prepare(input)), {
    'mask.o[0]': [`${takes} (at column 13)`],
    fingerprint_expression: [`${takes} (at column 13)`],
    'search_indexes[1]': [`${takes} (at column 13)`],
  })
})

t.test('a search index yields text, a number or a boolean, and something', async (t) => {
  const message = 'the expression must yield a number, a boolean or text that is not empty'
  for (const text of ['{{ data.missing }}', '{{ data }}', '{{ data.list }}', '', '{{ data.empty }}']) {
    const input = { type: 'token', data: { list: [1], empty: '' }, search_indexes: [text] }
    t.strictSame(await errorsOf(prepare(input)), { 'search_indexes[0]': [message] }, text)
  }
  const { searchValues } = await prepare({
    type: 'token',
    data: { no: false, zero: 0, name: 'ÉVE' },
    search_indexes: ['{{ data.no }}', '{{ data.zero }}', '{{ data.name }}', '{{ data.name | downcase }}'],
  })
  t.strictSame(searchValues, ['false', '0', 'éve'])
  const many = Array.from({ length: 21 }, () => '{{ data }}')
  const shape = 'must be an array of at most 20 expressions'
  t.strictSame(await errorsOf(prepare({ type: 'token', data: 1, search_indexes: many })), {
    search_indexes: [shape],
  })
  t.strictSame(await errorsOf(prepare({ type: 'token', data: 1, search_indexes: 'x' })), {
    search_indexes: [shape],
  })
})

t.test('a fingerprint of nothing is refused', async (t) => {
  const input = { type: 'token', data: { a: 1 }, fingerprint_expression: '{{ data.missing }}' }
  t.strictSame(await errorsOf(prepare(input)), {
    fingerprint_expression: ['the expression must yield a value, not null'],
  })
})

t.test('given ids have 3 to 400 characters and none that addresses or logs could trip over', async (t) => {
  for (const id of ['abc', 'a'.repeat(400), '😀'.repeat(400), 'it\'s (a) :;,.!$*@~`"-_ é']) checkTokenId(id)
  for (const id of ['', 'ab', 'a'.repeat(401), 'a'.repeat(1_000_000)]) {
    t.strictSame(await errorsOf(prepare({ type: 'token', data: 1, id })), {
      id: ['must have 3 to 400 characters'],
    })
  }
  const forbidden = 'must not contain # / \\ + ? [ ] | & = % < > { } ^ or control characters'
  for (const character of [...'#/\\+?[]|&=%<>{}^', '\0', '\n', '\x7f', '\x85', '\ud800']) {
    const id = `ab${character}c`
    t.strictSame(
      await errorsOf(prepare({ type: 'token', data: 1, id })),
      { id: [forbidden] },
      JSON.stringify(id),
    )
  }
  t.strictSame(await errorsOf(prepare({ type: 'token', data: 1, id: 123 })), { id: ['must be a string'] })
})

t.test('an alias is drawn again for every collision', async (t) => {
  const { id } = await prepare({
    type: 'token',
    data: '123-45-6789',
    id: '{{ data | alias_preserve_format: 0, 4 }}',
  })
  if (id?.kind !== 'alias') throw new Error('no alias')
  const first = id.draw()
  const second = id.draw()
  for (const alias of [first, second]) t.match(alias, /^\d{3}-\d{2}-6789$/)
  t.not(first, second)
})

t.test('what an alias yields must be an id', async (t) => {
  const errorOf = (id: string, data: unknown = 'ab/cd') => errorsOf(prepare({ type: 'token', data, id }))
  const forbidden = 'must not contain # / \\ + ? [ ] | & = % < > { } ^ or control characters'
  t.strictSame(await errorOf('{{ data }}'), { id: [`what the expression yields ${forbidden}`] })
  t.strictSame(await errorOf('{{ data | slice: 0 }}'), {
    id: ['what the expression yields must have 3 to 400 characters'],
  })
  t.strictSame(await errorOf('{{ data.missing }}', {}), {
    id: ['the expression must yield text that can be an id'],
  })
  t.strictSame(await errorOf('{{ data }}', [1, 2, 3]), {
    id: ['the expression must yield text that can be an id'],
  })
  const { id } = await prepare({ type: 'token', data: 12345, id: '{{ data }}' })
  t.equal(id?.kind === 'alias' && id.draw(), '12345')
})

t.test('metadata is a bounded map of text to text', async (t) => {
  const errorOf = (metadata: unknown) => errorsOf(prepare({ type: 'token', data: 1, metadata }))
  const entries = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']))
  for (const metadata of [
    entries(50),
    { ['n'.repeat(100)]: 'v'.repeat(2000), toString: 'x', constructor: 'y' },
  ]) {
    t.strictSame(
      JSON.stringify((await prepare({ type: 'token', data: 1, metadata })).record.metadata),
      JSON.stringify(metadata),
    )
  }
  t.strictSame(await errorOf(entries(51)), { metadata: ['must have at most 50 entries'] })
  const shape = 'must be an object whose values are strings'
  for (const metadata of ['x', ['x'], 3]) t.strictSame(await errorOf(metadata), { metadata: [shape] })
  const names = 'names must have 1 to 100 characters, none a control character'
  for (const name of ['', 'n'.repeat(101), 'a\nb'])
    t.strictSame(await errorOf({ [name]: 'x' }), { metadata: [names] })
  const value = 'must be a string of at most 2000 characters'
  for (const bad of [1, null, {}, 'v'.repeat(2001)])
    t.strictSame(await errorOf({ a: bad }), { 'metadata.a': [value] })
  t.notOk(
    'metadata' in (await prepare({ type: 'token', data: 1, metadata: {} })).record,
    'an empty map is no metadata',
  )
})

t.test('a mask is bounded in depth and size, and its expressions in work together', async (t) => {
  const deep = (levels: number): unknown => (levels === 0 ? '{{ data }}' : [deep(levels - 1)])
  t.equal(
    JSON.stringify(await (await compileMask(deep(64), rules.expressions, {}, rules.budget)).render(1)),
    `${'['.repeat(64)}1${']'.repeat(64)}`,
  )
  const limits = 'a mask has at most 2000 values, 64 levels deep'
  const errorOf = (mask: unknown, data: unknown = 1) => errorsOf(prepare({ type: 'token', data, mask }))
  t.strictSame(await errorOf(deep(65)), { mask: [limits] })
  t.strictSame(await errorOf(Array.from({ length: 2000 }, () => 1)), { mask: [limits] })
  await compileMask(
    Array.from({ length: 1999 }, () => 1),
    rules.expressions,
    {},
    rules.budget,
  )
  const many = Array.from({ length: 1500 }, () => '{{ data }}')
  const costly = prepare({
    type: 'token',
    data: 'x'.repeat(100_000),
    mask: many.map(() => '{{ data | reveal }}'),
  })
  await t.rejects(costly, { code: 'too_much_work' })
  await t.resolves(prepare({ type: 'token', data: 'x'.repeat(100_000), mask: many }), 'no work but a copy')
})

t.test('a mask that is text, a constant, or nothing to show', async (t) => {
  const masked = async (mask: unknown, data: unknown = { a: 1 }) =>
    (await prepare({ type: 'token', data, mask })).record.masked
  t.equal(await masked('***'), '***')
  t.equal(await masked(5), 5)
  t.equal(await masked(false), false)
  t.equal(await masked('{{ data.missing }}'), null)
  t.strictSame(
    await masked({ '{{ data.a }}': '{{ data.a }}' }),
    { '{{ data.a }}': 1 },
    'names are not expressions',
  )
})

t.test('a patch merges data, mask and metadata, and replaces the rest', async (t) => {
  const before = recordOf(await prepare({ ...CARD, metadata: { a: '1', b: '2' }, deduplicate_token: true }))
  const kept = JSON.stringify(before)
  const draft = await patch(before, {
    id: 'another',
    type: 'bank',
    data: { number: '5555555555554444', cvc: null },
    mask: { expiration_year: null, cvc: '{{ data.cvc }}' },
    metadata: { a: null, c: '3' },
    containers: ['/eu/'],
    search_indexes: ['{{ data.number }}'],
    fingerprint_expression: '{{ data | stringify }}',
    deduplicate_token: false,
  })
  t.strictSame(draft, {
    record: {
      type: 'card',
      data: { number: '5555555555554444', expiration_month: 12, expiration_year: 2030 },
      mask: {
        number: '{{ data.number | reveal_last: 4 }}',
        expiration_month: '{{ data.expiration_month }}',
        cvc: '{{ data.cvc }}',
      },
      masked: { number: 'XXXXXXXXXXXX4444', expiration_month: 12, cvc: null },
      containers: ['/eu/'],
      metadata: { b: '2', c: '3' },
      search_indexes: ['{{ data.number }}'],
      fingerprint_expression: '{{ data | stringify }}',
      deduplicate_token: false,
    },
    fingerprintText:
      '["card","{\\"expiration_month\\":12,\\"expiration_year\\":2030,\\"number\\":\\"5555555555554444\\"}"]',
    searchValues: ['5555555555554444'],
  })
  t.equal(JSON.stringify(before), kept, 'the record is left alone')
})

t.test('a patch that names nothing changes nothing', async (t) => {
  const draft = await prepare({
    type: 'token',
    data: { a: [1] },
    mask: 'x',
    expires_at: '2030-01-01',
    search_indexes: ['y'],
  })
  t.strictSame(await patch(recordOf(draft), {}), draft)
})

t.test('null in a patch takes an attribute away', async (t) => {
  const given = {
    ...CARD,
    metadata: { a: '1' },
    containers: ['/eu/'],
    search_indexes: ['x'],
    fingerprint_expression: 'x',
    deduplicate_token: true,
    expires_at: '2030-01-01',
  }
  const before = recordOf(await prepare(given))
  const names = Object.keys(given).filter((name) => !['type', 'data', 'containers'].includes(name))
  const nulls = Object.fromEntries(names.map((name) => [name, null]))
  const usual = await prepare({ ...CARD, containers: ['/eu/'] })
  t.strictSame(await patch(before, nulls), usual, 'the default of the fingerprint applies again')
  const { record } = await patch(before, { mask: null })
  t.notOk('mask' in record)
  t.notOk('masked' in record)
  t.strictSame(await errorsOf(patch(before, { data: null })), {
    data: ['must not be null; a token holds a value'],
  })
})

t.test('a patched token is checked like a new one', async (t) => {
  const before = recordOf(await prepare({ ...CARD, search_indexes: ['{{ data.cvc }}'] }))
  t.strictSame(await errorsOf(patch(before, { data: { number: '4242424242424241', extra: 1 } })), {
    'data.number': ['must be a card number with a valid check digit (Luhn)'],
    'data.extra': ['only these properties are allowed: number, expiration_month, expiration_year, cvc'],
  })
  t.strictSame(await errorsOf(patch(before, { data: { number: null } })), { 'data.number': ['is required'] })
  t.strictSame(await errorsOf(patch(before, { data: { cvc: null } })), {
    'search_indexes[0]': ['the expression must yield a number, a boolean or text that is not empty'],
  })
  t.strictSame(await errorsOf(patch(before, { containers: [], metadata: 'x' })), {
    containers: ['must name at least one container'],
    metadata: ['must be an object whose values are strings'],
  })
})

t.test('data of a patch that is no object replaces the whole', async (t) => {
  const before = recordOf(await prepare({ type: 'token', data: { a: 1 } }))
  for (const data of ['x', [1], 0, false]) t.strictSame((await patch(before, { data })).record.data, data)
  t.strictSame(
    (await patch(recordOf(await prepare({ type: 'token', data: 'x' })), { data: { a: 1 } })).record.data,
    { a: 1 },
  )
})

t.test('an expiry is kept by a patch that says nothing of it, even when it is over', async (t) => {
  const before = recordOf(await prepare({ type: 'token', data: 1, expires_at: '2026-11-21' }))
  const later = { ...rules, now: Date.UTC(2027, 0, 1) }
  t.equal((await patchToken(before, { metadata: { a: 'b' } }, later)).expires, Date.UTC(2026, 10, 21))
  const { record, expires } = await patchToken(before, { expires_at: '1/2/2028' }, later)
  t.equal(record.expires_at, '2028-01-02T00:00:00.000+00:00')
  t.equal(expires, Date.UTC(2028, 0, 2))
  const never = await patchToken(before, { expires_at: null }, later)
  t.notOk('expires' in never || 'expires_at' in never.record)
  t.match(await errorsOf(patchToken(before, { expires_at: '11/21/2026' }, later)), {
    expires_at: [/^must be in the future/],
  })
})

t.test('a token is shown in the order of the specification, without what has no value', async (t) => {
  const full: TokenRecord = {
    ...recordOf(
      await prepare({
        ...CARD,
        metadata: { a: '1' },
        search_indexes: ['x'],
        deduplicate_token: true,
        expires_at: '1/1/2030',
      }),
    ),
    modified_by: 'changer',
    modified_at: '2026-11-20T00:00:01.000+00:00',
  }
  const order = [
    'id',
    'tenant_id',
    'type',
    'data',
    'mask',
    'fingerprint',
    'containers',
    'metadata',
    'created_by',
    'created_at',
    'modified_by',
    'modified_at',
    'search_indexes',
    'fingerprint_expression',
    'expires_at',
    'card',
  ]
  t.strictSame(Object.keys(viewToken(full, 'reveal')), order)
  const plain = viewToken(recordOf(await prepare({ type: 'token', data: 1 })), 'reveal')
  t.strictSame(Object.keys(plain), [
    'id',
    'tenant_id',
    'type',
    'data',
    'fingerprint',
    'containers',
    'created_by',
    'created_at',
    'fingerprint_expression',
  ])
})

t.test('a transform decides how much of the data is shown', async (t) => {
  const card = recordOf(await prepare(CARD))
  t.strictSame(viewToken(card, 'reveal').data, CARD.data)
  t.strictSame(viewToken(card, 'mask').data, {
    number: 'XXXXXXXXXXXX4242',
    expiration_month: 12,
    expiration_year: 2030,
  })
  t.notOk('data' in viewToken(card, 'redact'))
  t.strictSame(viewToken(card, 'redact').mask, CARD_MASK)
  t.notOk('data' in viewToken(recordOf(await prepare({ ...CARD, mask: null })), 'mask'), 'no mask, no data')
  const hidden = recordOf(await prepare({ type: 'token', data: { a: 1 }, mask: '{{ data.b }}' }))
  t.equal(viewToken(hidden, 'mask').data, null)
  const zero = recordOf(await prepare({ type: 'token', data: 'x', mask: 0 }))
  t.equal(viewToken(zero, 'mask').data, 0)
})

t.test('a redacted duplicate lacks exactly what only readers may see', async (t) => {
  const record = recordOf(
    await prepare({ ...CARD, metadata: { a: '1' }, search_indexes: ['x'], expires_at: '1/1/2030' }),
  )
  const view = viewToken(record, 'mask')
  const lost = Object.keys(view).filter((name) => !(name in redactDuplicate(view)))
  t.strictSame(lost, ['data', 'mask', 'metadata', 'search_indexes', 'fingerprint_expression', 'card'])
})

t.test('no complaint shows a value', async (t) => {
  const secret = 'S3CRET-4242424242424242'
  const inputs = [
    { type: secret, data: secret },
    { type: 'card', data: { number: secret, cvc: secret, expiration_month: secret, [secret]: secret } },
    { type: 'bank', data: secret },
    {
      type: 'token',
      data: secret,
      id: `${secret}/`,
      containers: [secret],
      expires_at: secret,
      metadata: { a: [secret] },
    },
    {
      type: 'token',
      data: secret,
      mask: '{{ data | to_number }}',
      search_indexes: ['{{ data | to_boolean }}'],
    },
    { type: 'token', data: secret, id: '{{ data }}/', fingerprint_expression: '{{ data | json: data }}' },
  ]
  for (const input of inputs) {
    const error = await prepare(input).then(String, (refused: CofferError) =>
      JSON.stringify([refused.message, refused.errors]),
    )
    t.match(error, /must|cannot|takes|not a JSONPath/)
    t.notMatch(error, /S3CRET/)
  }
})
