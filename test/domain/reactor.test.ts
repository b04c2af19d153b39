import t from 'tap'
import { checkReactor, readConfiguration } from '../../src/domain/reactor/reactor.js'
import { errorsOf } from '../support/refusals.js'

t.test('the size of code is counted in bytes', async (t) => {
  t.equal(
    errorsOf(() => checkReactor({ code: 'é'.repeat(131_072) })),
    undefined,
  )
  t.match(
    errorsOf(() => checkReactor({ code: `${'é'.repeat(131_072)}x` })),
    { code: [/at most 262144 bytes/] },
  )
})

t.test('what a patch adds counts with what there was', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`k${at}`, '1']))
  const runtime = { dependencies: many, resolutions: many }
  t.match(
    errorsOf(() => checkReactor({ runtime })),
    {
      'runtime.dependencies': [/at most 100/],
      'runtime.resolutions': [/at most 100/],
    },
  )
  t.match(
    errorsOf(() => readConfiguration(many)),
    { configuration: [/at most 100/] },
  )
})

t.test('a configuration without a contract is text, under names that code can use', async (t) => {
  t.strictSame(readConfiguration({ a: 1, b: true, c: 'x', d: null, e: undefined }), {
    a: '1',
    b: 'true',
    c: 'x',
  })
  for (const name of ['a b', 'a.b', '', '__proto__', 'é'])
    t.match(
      errorsOf(() => readConfiguration({ [name]: 1 })),
      { [`configuration.${name}`]: [/letters/] },
      name,
    )
})
