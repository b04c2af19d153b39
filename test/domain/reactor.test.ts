/** Behaviour of formulas and reactors that the cases in `fixtures/operations` do not cover. */
import fc from 'fast-check'
import t from 'tap'
import {
  castArguments,
  castValue,
  checkContract,
  checkFormula,
  type FormulaBody,
} from '../../src/domain/reactor/formula.js'
import { checkReactor, readConfiguration } from '../../src/domain/reactor/reactor.js'
import { matchesName } from '../../src/domain/text/display-name.js'
import type { PropertyErrors } from '../../src/errors.js'
import { errorsOf } from '../support/refusals.js'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
;('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkM+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')
const JPEG = '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP8='

const checkBody = (change: Partial<FormulaBody>) =>
  errorsOf(() =>
    checkFormula({
      name: 'a',
      type: 'private',
      code: 'x',
      configuration: [],
      request_parameters: [],
      ...change,
    }),
  )

t.test(
  'an argument of a formula is converted to the declared type only if its text is JSON of that type',
  async (t) => {
    t.same(
      ['-0.5e2', 7].map((value) => castValue(value, 'number')),
      [-50, 7],
    )
    t.same(
      ['FALSE', 'true', false].map((value) => castValue(value, 'boolean')),
      [false, true, false],
    )
    for (const value of [7, true, 1.5e300, '']) t.equal(castValue(value, 'string'), String(value))
    const refused = {
      number: ['', ' 5', '05', '0x5', '1e999', 'NaN', '+5', '5.', true, [5], {}],
      boolean: ['1', 1, 'yes', '', 'constructor'],
      string: [[], {}, null, undefined],
    }
    for (const [type, values] of Object.entries(refused))
      for (const value of values)
        t.equal(castValue(value, type as 'number'), undefined, `${JSON.stringify(value)} as ${type}`)
    const double = fc.double({ noNaN: true, noDefaultInfinity: true })
    fc.assert(
      fc.property(
        double,
        (value) => castValue(JSON.stringify(value), 'number') === JSON.parse(JSON.stringify(value)),
      ),
    )
  },
)

t.test('arguments of a formula are found by their exact names, with dots for nested objects', async (t) => {
  const parameters = [
    { name: 'card.number', type: 'string' },
    { name: 'card.expiration.month', type: 'number' },
    { name: 'test', type: 'boolean', optional: true },
  ] as const
  const args = { card: { number: 4242, expiration: { month: '7' }, holder: 'Ada' }, more: [1, { a: null }] }
  const declared = { number: '4242', expiration: { month: 7 } }
  const forwarded = { card: { ...declared, holder: 'Ada' }, more: args.more }
  t.same(castArguments(parameters, args, 'forward'), forwarded)
  t.same(args.card.number, 4242, 'the input is not changed')
  t.same(castArguments(parameters, { ...args, test: null }, 'forward'), forwarded, 'null counts as missing')
  t.same(castArguments(parameters, { ...args, test: 'true' }, 'strip'), { card: declared, test: true })
})

t.test(
  'names of parameters have valid characters and are unique, and no parameter is inside another parameter',
  async (t) => {
    const check = (configuration: string[], parameters: string[]) => {
      const errors: PropertyErrors = {}
      const element = (name: string) => ({ name, type: 'string' as const })
      checkContract(errors, configuration.map(element), parameters.map(element))
      return errors
    }
    t.same(check(['A-b_9', 'constructor'], ['a.b.c', 'a.b.d', 'ab', 'x']), {})
    const spelling = 'must be letters, digits, _ and -'
    t.same(check(['a.b', 'ä', '__proto__'], []), {
      'configuration[0].name': [spelling],
      'configuration[1].name': [spelling],
      'configuration[2].name': ['cannot be __proto__'],
    })
    const inside = 'is inside another parameter'
    t.same(check([], ['a.b', 'a', 'a..b', 'x', 'x', 'y.__proto__']), {
      'request_parameters[0].name': [inside],
      'request_parameters[2].name': [`${spelling}, with dots between levels`, inside],
      'request_parameters[4].name': ['occurs twice'],
      'request_parameters[5].name': ['cannot be __proto__'],
    })
  },
)

t.test(
  'the icon of a formula must be a data URL in base64 that contains an image of the declared type',
  async (t) => {
    for (const icon of [`png;base64,${PNG}`, `jpg;base64,${JPEG}`, `jpeg; base64 , ${JPEG}`])
      t.equal(checkBody({ icon: `data:image/${icon}` }), undefined, icon.slice(0, 12))
    const bad = [
      PNG,
      `data:image/gif;base64,${PNG}`,
      `data:image/png;base64,${JPEG}`,
      `data:image/png,${PNG}`,
      `data:image/png;base64,${PNG}=`,
      `data:image/png;base64,${PNG}!`,
      'data:image/png;base64,',
      `data:image/png;base64,${btoa('GIF89a')}`,
      `data:image/svg+xml;base64,${PNG}`,
    ]
    for (const icon of bad) t.ok(checkBody({ icon })?.icon, icon.slice(0, 30))
  },
)

t.test(
  'the size of code is measured in bytes, and a patch is measured together with the existing code',
  async (t) => {
    const code = 'é'.repeat(128 * 1024)
    const tooLarge = { code: ['must have at most 262144 bytes'] }
    t.same([checkBody({ code }), errorsOf(() => checkReactor({ code }))], [undefined, undefined])
    t.same(checkBody({ code: `${code}x` }), tooLarge)
    t.same(
      errorsOf(() => checkReactor({ code: `${code}x` })),
      tooLarge,
    )
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`k${at}`, '1.0.0']))
    const runtime = { dependencies: many, resolutions: many }
    const most = ['must have at most 100 entries']
    t.same(
      errorsOf(() => checkReactor({ runtime })),
      { 'runtime.dependencies': most, 'runtime.resolutions': most },
    )
    t.same(
      errorsOf(() => readConfiguration(many)),
      { configuration: most },
    )
  },
)

t.test(
  'without a contract, the configuration of a reactor is text, and code can use each name in it',
  async (t) => {
    const given = { a: 1, b: true, c: 'x', d: null, e: undefined }
    t.strictSame(readConfiguration(given), { a: '1', b: 'true', c: 'x' })
    for (const name of ['a b', '', '__proto__', 'é'])
      t.match(
        errorsOf(() => readConfiguration({ [name]: 1 })),
        { [`configuration.${name}`]: [/letters/] },
        name,
      )
  },
)

t.test(
  'a search term, with or without stars, finds names and is never used as a regular expression',
  async (t) => {
    const found = [
      'Card Alias ALIAS',
      'Card Alias c*d*s',
      'abab ab*ab',
      'a **',
      'aa a*a',
      'a.b a.b',
      '(x) (x*',
      'a\\ \\',
    ]
    const others = ['Card Alias cardalias', 'Card Alias alias*', 'ab ab*ab', 'a a*a', 'axb a.b', 'x [x]']
    const matches = (row: string) =>
      matchesName(row.slice(0, row.lastIndexOf(' ')), row.slice(row.lastIndexOf(' ') + 1))
    for (const row of found) t.ok(matches(row), row)
    for (const row of others) t.notOk(matches(row), row)
    t.notOk(matchesName('a'.repeat(200), `${'a*'.repeat(100)}b`), 'a term may have any number of stars')
  },
)
