import fc from 'fast-check'
import t from 'tap'
import { neutralize, pickFields, readField, toCsvCell, toCsvLine } from '../../src/cli/output/fields.js'

const token = {
  id: 'a',
  data: { number: '4242', exp: { month: 12 } },
  metadata: { 'a.b': 'dotted', a: 'plain', env: 'test' },
  containers: ['/pci/high/'],
  rules: [{ container: '/a/', priority: 1 }, { container: '/b/' }],
  mask: null,
}

t.test('a field is read by its path', async (t) => {
  const rows: [string, unknown][] = [
    ['id', 'a'],
    ['data.number', '4242'],
    ['data.exp.month', 12],
    ['data.exp', { month: 12 }],
    ['metadata.a.b', 'dotted'],
    ['metadata.a', 'plain'],
    ['rules.container', ['/a/', '/b/']],
    ['rules.priority', [1]],
    ['mask', null],
    ['nothing', undefined],
    ['id.length', undefined],
    ['data.', undefined],
    ['', undefined],
    ['containers.length', undefined],
    ['toString', undefined],
    ['__proto__', undefined],
    ['mask.deeper', undefined],
  ]
  for (const [path, value] of rows) t.strictSame(readField(token, path), value, JSON.stringify(path))
})

t.test('picked fields keep their place, in the order asked for', async (t) => {
  const pick = (...paths: string[]) => JSON.stringify(pickFields(token, paths))
  t.equal(pick('data.number', 'id'), '{"data":{"number":"4242"},"id":"a"}')
  t.equal(pick('data.exp.month', 'data.number'), '{"data":{"exp":{"month":12},"number":"4242"}}')
  t.equal(pick('data', 'data.number'), '{"data":{"number":"4242","exp":{"month":12}}}')
  t.equal(pick('metadata.a.b'), '{"metadata":{"a.b":"dotted"}}')
  t.equal(pick('rules.container'), '{"rules":[{"container":"/a/"},{"container":"/b/"}]}')
  t.equal(pick('mask', 'missing', 'data.missing'), '{"mask":null}')
  t.equal(JSON.stringify(pickFields([token, 1], ['id'])), '[{"id":"a"},1]')
})

t.test('picking a field gives what reading it gives', async (t) => {
  const key = fc.constantFrom('a', 'b', 'a.b', 'constructor')
  const tree = fc.dictionary(key, fc.oneof(fc.integer(), fc.dictionary(key, fc.integer())))
  const path = fc.array(key, { minLength: 1, maxLength: 3 }).map((keys) => keys.join('.'))
  fc.assert(
    fc.property(tree, path, (value, wanted) => {
      const found = readField(value, wanted)
      const picked = pickFields(value, [wanted])
      if (found === undefined) return JSON.stringify(picked) === '{}'
      return JSON.stringify(readField(picked, wanted)) === JSON.stringify(found)
    }),
    { numRuns: 500 },
  )
  t.pass('holds')
})

t.test('CSV quotes everything and disarms what a spreadsheet would run', async (t) => {
  t.equal(toCsvLine(['a', 'b "c"', 'd,e', 'f\ng', '']), '"a","b ""c""","d,e","f\ng",""')
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1', '＠x']) {
    t.equal(neutralize(text), `'${text}`, JSON.stringify(text))
  }
  for (const text of ['', 'a=b', '1', ' =1', "'a"]) t.equal(neutralize(text), text, JSON.stringify(text))
  t.equal(neutralize("'=1"), "''=1", 'so that it can be told from =1')
  t.equal(toCsvCell('-1'), "'-1")
  t.equal(toCsvCell(-1), '-1')
  t.equal(toCsvCell(undefined), '')
  t.equal(toCsvCell(null), '')
  t.equal(toCsvCell(true), 'true')
  t.equal(toCsvCell({ a: ['=1'] }), '{"a":["=1"]}')
})
