import t from 'tap'
import { registry } from '../../src/operations/all.js'
import { describeName, formKindOf, readField, type Schema, textOf } from '../../src/page/schema-text.js'

const schemaOf = (operation: string, name: string) =>
  registry.operations.find((each) => each.name === operation)!.input.properties![name] as Schema

t.test('the schema of a property decides the kind of its field', async (t) => {
  const table: [operation: string, name: string, kind: string][] = [
    ['webhook create', 'name', 'text'],
    ['webhook update', 'status', 'choice'],
    ['webhook create', 'events', 'lines'],
    ['proxy create', 'require_auth', 'flag'],
    ['proxy create', 'application', 'reference'],
    ['proxy create', 'configuration', 'pairs'],
    ['proxy create', 'request_transforms', 'json'],
    ['tenant update', 'settings', 'group'],
    ['token update', 'expires_at', 'date'],
    ['token update', 'metadata', 'pairs'],
    ['token update', 'mask', 'json'],
    ['invite create', 'role', 'choice'],
    ['token list', 'size', 'number'],
  ]
  for (const [operation, name, kind] of table)
    t.equal(formKindOf(name, schemaOf(operation, name)), kind, `${operation} ${name}`)
  t.equal(formKindOf('events', schemaOf('webhook create', 'events'), true), 'choices')
  t.equal(describeName('destination_url'), 'Destination URL')
  t.equal(describeName('expires_at'), 'Expires')
})

const LIST = { type: ['array', 'null'], items: { type: 'string' } }
const PAIRS = { type: ['object', 'null'], additionalProperties: { type: 'string' } }
const TEXT = { type: ['string', 'null'] }

t.test('a patch has only what a person changed', async (t) => {
  const table: [kind: 'lines' | 'pairs' | 'text' | 'date' | 'json', Schema, unknown, string, unknown][] = [
    ['lines', LIST, ['a', 'b'], 'a\r\nb', undefined],
    ['lines', LIST, ['a', 'b'], 'b\n\n c ', ['b', 'c']],
    ['lines', LIST, ['a'], '', null],
    ['lines', { type: 'array' }, ['a'], '', []],
    ['pairs', PAIRS, { a: '1', b: '2' }, 'a=1=1', { a: '1=1', b: null }],
    ['text', TEXT, 'a', 'a', undefined],
    ['text', TEXT, 'a', '', null],
    ['date', TEXT, '2030-01-02T03:04:05Z', '2030-01-02T03:04:05', undefined],
    ['date', TEXT, undefined, '2030-01-02T03:04', '2030-01-02T03:04:00.000Z'],
    ['json', {}, undefined, '{"a": 1}', { a: 1 }],
    ['json', {}, undefined, '{{ data | reveal_last: 4 }}', '{{ data | reveal_last: 4 }}'],
    ['json', {}, { a: 1 }, '', null],
  ]
  for (const [kind, schema, value, text, expected] of table) {
    const data = new FormData()
    data.set('x', text)
    const asked = { name: 'x', kind, schema, value, isText: false, isPatch: true }
    t.strictSame(readField(data, asked)?.value, expected, `${kind} ${JSON.stringify(text)}`)
  }
})

t.test('a field that is not in the form keeps its value, and data that is text stays text', async (t) => {
  const asked = { name: 'x', schema: {}, value: undefined, isText: false, isPatch: false } as const
  t.equal(readField(new FormData(), { ...asked, kind: 'json' }), undefined)
  const data = new FormData()
  data.set('x', '4242424242424242')
  t.same(readField(data, { ...asked, kind: 'json' }), { value: 4242424242424242 })
  t.same(readField(data, { ...asked, kind: 'json', isText: true }), { value: '4242424242424242' })
  data.set('x', '[1,')
  t.throws(() => readField(data, { ...asked, kind: 'json' }), { message: /^is not JSON/ })
  data.set('x', 'no pair')
  t.throws(() => readField(data, { ...asked, kind: 'pairs' }), { message: /needs NAME=value/ })
  t.equal(textOf('pairs', { a: 1, b: 'c' }), 'a=1\nb=c')
})
