/**
 * YAML seeds: values that are read, values that are refused with their line and column, and the limits for hostile
 * files.
 */
import t from 'tap'
import { formatYaml, parseYaml } from '../../src/cli/input/yaml.js'

const read = (text: string) => parseYaml(text, 'seed.yaml')
const refused = (text: string): string => {
  try {
    read(text)
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    return `${code}: ${message}`
  }
  return 'accepted'
}

t.test('a seed in YAML gives the same values as the same seed in JSON', async (t) => {
  const text = `
# A comment
name: shop
tokens:
  - &card { id: card-1, type: card, data: { number: "4242424242424242", expiration_month: 12 } }
  - id: note
    type: token
    data: |
      two
      lines
    metadata: { on: "yes", answer: no }
settings: {}
`
  t.same(read(text), {
    name: 'shop',
    tokens: [
      { id: 'card-1', type: 'card', data: { number: '4242424242424242', expiration_month: 12 } },
      { id: 'note', type: 'token', data: 'two\nlines\n', metadata: { on: 'yes', answer: 'no' } },
    ],
    settings: {},
  })
  t.same(read('permissions: &p [a, b]\nrules: [*p, *p]'), {
    permissions: ['a', 'b'],
    rules: [
      ['a', 'b'],
      ['a', 'b'],
    ],
  })
  t.equal(read(''), null)
  t.same(read('1: x'), { '1': 'x' })
})

t.test('a value that JSON cannot express is refused, and the error names its line and column', async (t) => {
  const cases: [string, RegExp][] = [
    ['a: 1\na: 2', /line 2, column 1: this property occurs twice/],
    ['a: !secret x', /line 1, column 4: tags are not supported/],
    ['a: !!js/function "x"', /line 1, column 4: tags are not supported/],
    ['a: !!binary aGk=', /line 1, column \d+: tags are not supported/],
    ['a: 12345678901234567890', /line 1, column 4: this number would be changed/],
    ['a: 01234', /this number would be changed/],
    ['a: .inf', /this number would be changed/],
    ['a: 0x10', /this number would be changed/],
    ['a: *nothing', /line 1, column 4: this alias has no anchor/],
    ['a: b: c', /line 1, column \d/],
    ['a: "open', /line 1, column \d+: a character such as/],
    ['a: 1\n---\nb: 2', /more than one document/],
    ['? [a]\n: x', /a property name must be text/],
    ['__proto__: { a: 1 }', /prototypes/],
    ['a: "\\ud800"', /surrogate/],
  ]
  for (const [text, why] of cases) {
    t.match(refused(text), why, text)
    t.match(refused(text), /^validation: seed\.yaml is refused/, text)
  }
  t.notMatch(refused('card: "4242424242424242'), /4242/, 'a message does not contain the text')
})

t.test('hostile files end quickly with an error', async (t) => {
  const levels = Array.from({ length: 30 }, (_, at) => `l${at + 1}: &l${at + 1} [${`*l${at},`.repeat(9)}]`)
  t.match(refused(`l0: &l0 x\n${levels.join('\n')}`), /aliases repeat more than 100 values/)
  const repeated = `a: &a [${'x,'.repeat(9000)}]\nb: [${'*a,'.repeat(99)}]`
  t.match(refused(repeated), /more than 500000 values/)
  const long = `a: &a ${'x'.repeat(900_000)}\nb: [${'*a,'.repeat(99)}]`
  t.match(refused(long), /texts have more than/)
  t.match(refused(`a: &a [*a]`), /refused/, 'a value that contains itself')
  for (const [open, close] of [
    ['[', ']'],
    ['{a: ', '}'],
    ['- ', ''],
  ] as const) {
    t.match(refused(open.repeat(200_000) + close.repeat(200_000)), /nested more than 64 levels/, open)
    t.match(refused(open.repeat(90) + close.repeat(90)), /nested more than 64 levels/, open)
  }
  t.same(read('['.repeat(64) + ']'.repeat(64)), JSON.parse('['.repeat(64) + ']'.repeat(64)))
})

t.test('a seed that is written as YAML is read back unchanged', async (t) => {
  const texts = [
    '',
    'yes',
    'null',
    '1',
    '1e3',
    '0x1',
    '~',
    '- a',
    'a: b',
    '#',
    ' x ',
    '\u001b[31m',
    'a\nb',
    '<<',
    '*a',
    '!t',
  ]
  const value = {
    texts,
    numbers: [0, -1.5, 1e21],
    none: null,
    flag: true,
    ...Object.fromEntries(texts.map((each) => [each, each])),
  }
  t.same(read(formatYaml(value)), value)
})
