import * as fc from 'fast-check'
import t from 'tap'
import {
  castArguments,
  castValue,
  checkContract,
  checkFormula,
  type FormulaBody,
  matchesName,
} from '../../src/domain/reactor/formula.js'
import type { PropertyErrors } from '../../src/errors.js'
import { errorsOf } from '../support/refusals.js'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const JPEG = '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP8='

const formula = (change: Partial<FormulaBody> = {}): FormulaBody => ({
  name: 'a',
  type: 'private',
  code: 'x',
  configuration: [],
  request_parameters: [],
  ...change,
})

t.test('values are cast where JSON text says what they are, and nowhere else', async (t) => {
  const cast = {
    number: { '5': 5, '-0.5e2': -50, '0': 0 },
    boolean: { true: true, FALSE: false, True: true },
  }
  for (const [type, values] of Object.entries(cast))
    for (const [text, value] of Object.entries(values))
      t.equal(castValue(text, type as 'number'), value, text)
  for (const value of [7, 5, true, 1.5e300, '']) t.equal(castValue(value, 'string'), String(value))
  t.equal(castValue(7, 'number'), 7)
  t.equal(castValue(false, 'boolean'), false)
  const refused = {
    number: ['', ' 5', '05', '0x5', '1e999', 'NaN', 'Infinity', '+5', '5.', true, [5], {}],
    boolean: ['1', 1, 'yes', '', 'constructor'],
    string: [[], {}, null, undefined],
  }
  for (const [type, values] of Object.entries(refused))
    for (const value of values)
      t.equal(castValue(value, type as 'number'), undefined, `${JSON.stringify(value)} as ${type}`)
})

t.test('what JSON prints of a number is cast back to it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.double({ noNaN: true, noDefaultInfinity: true }), async (value) => {
      const text = JSON.stringify(value)
      return castValue(text, 'number') === JSON.parse(text)
    }),
  )
})

t.test('arguments are matched by their exact names, into objects by dots', async (t) => {
  const parameters = [
    { name: 'card.number', type: 'string' },
    { name: 'card.expiration.month', type: 'number' },
    { name: 'test', type: 'boolean', optional: true },
  ] as const
  const args = { card: { number: 4242, expiration: { month: '7' }, holder: 'Ada' }, more: [1, { a: null }] }
  t.same(castArguments(parameters, args, 'forward'), {
    card: { number: '4242', expiration: { month: 7 }, holder: 'Ada' },
    more: [1, { a: null }],
  })
  t.same(args.card.number, 4242, 'what was given is left as it was')
  t.same(castArguments(parameters, { ...args, test: null }, 'strip'), {
    card: { number: '4242', expiration: { month: 7 } },
  })
  t.same(castArguments(parameters, { ...args, test: 'true' }, 'strip').test, true)
  t.notOk('test' in castArguments(parameters, { ...args, test: null }, 'forward'), 'null counts as missing')
  t.same(castArguments([], { a: { b: 1 } }, 'forward'), { a: { b: 1 } })
  t.same(castArguments([], { a: { b: 1 } }, 'strip'), {})
})

t.test('the names of a contract are spelled, unique, and none is inside another', async (t) => {
  const check = (configuration: string[], parameters: string[]) => {
    const errors: PropertyErrors = {}
    const element = (name: string) => ({ name, type: 'string' as const })
    checkContract(errors, configuration.map(element), parameters.map(element))
    return errors
  }
  t.same(check(['A-b_9', 'constructor'], ['a.b.c', 'a.b.d', 'ab', 'x']), {})
  const spelling = 'must be letters, digits, _ and -'
  t.same(check(['a.b', '', 'ä', 'A', 'A'], []), {
    'configuration[0].name': [spelling],
    'configuration[1].name': [spelling],
    'configuration[2].name': [spelling],
    'configuration[4].name': ['occurs twice'],
  })
  const inside = 'is inside another parameter'
  t.same(check([], ['a.b', 'a', 'a.b.c', 'a..b', '.a', 'x', 'x', '__proto__', 'y.__proto__']), {
    'request_parameters[0].name': [inside],
    'request_parameters[2].name': [inside],
    'request_parameters[3].name': [`${spelling}, with dots between levels`, inside],
    'request_parameters[4].name': [`${spelling}, with dots between levels`],
    'request_parameters[6].name': ['occurs twice'],
    'request_parameters[7].name': ['cannot be __proto__'],
    'request_parameters[8].name': ['cannot be __proto__'],
  })
})

t.test('an icon is base64 of the image that it says it is', async (t) => {
  const good = [
    `data:image/png;base64,${PNG}`,
    `data:image/jpg;base64,${JPEG}`,
    `data:image/jpeg; base64 , ${JPEG}`,
    'data:image/png;base64,AAAA',
  ]
  for (const icon of good)
    t.equal(
      errorsOf(() => checkFormula(formula({ icon }))),
      undefined,
      icon.slice(0, 30),
    )
  const bad = [
    '',
    PNG,
    `data:image/gif;base64,${PNG}`,
    `data:image/png;base64,${JPEG}`,
    `data:image/jpeg;base64,${PNG}`,
    `data:image/png,${PNG}`,
    `data:image/png;base64,${PNG}=`,
    `data:image/png;base64,${PNG}!`,
    'data:image/png;base64,',
    `data:image/png;base64,${btoa('GIF89a')}`,
    `data:image/svg+xml;base64,${PNG}`,
    `DATA:image/png;base64,${PNG}`,
  ]
  for (const icon of bad) t.ok(errorsOf(() => checkFormula(formula({ icon })))?.icon, icon.slice(0, 30))
})

t.test('code is measured in bytes', async (t) => {
  t.equal(
    errorsOf(() => checkFormula(formula({ code: 'é'.repeat(128 * 1024) }))),
    undefined,
  )
  t.same(
    errorsOf(() => checkFormula(formula({ code: `${'é'.repeat(128 * 1024)}x` }))),
    { code: ['must have at most 262144 bytes'] },
  )
})

t.test('names are found by a term with and without stars, and never by a regular expression', async (t) => {
  const cases: [string, string, boolean][] = [
    ['Card Alias', 'card', true],
    ['Card Alias', 'ALIAS', true],
    ['Card Alias', 'cardalias', false],
    ['Card', '', true],
    ['Card Alias', 'card*', true],
    ['Card Alias', 'alias*', false],
    ['Card Alias', '*alias', true],
    ['Card Alias', 'c*d*s', true],
    ['Card Alias', 'c*d*x*s', false],
    ['ab', 'ab*ab', false],
    ['abab', 'ab*ab', true],
    ['a', '*', true],
    ['a', '**', true],
    ['aa', 'a*a', true],
    ['a', 'a*a', false],
    ['a.b', 'a.b', true],
    ['axb', 'a.b', false],
    ['(x)', '(x*', true],
    ['x', '[x]', false],
    ['a\\', '\\', true],
  ]
  for (const [name, term, matches] of cases) t.equal(matchesName(name, term), matches, `${term} in ${name}`)
  t.equal(matchesName('a'.repeat(200), `${'a*'.repeat(100)}b`), false, 'however many stars there are')
})
