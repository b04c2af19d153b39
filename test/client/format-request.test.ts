import fc from 'fast-check'
import t from 'tap'
import { formatRequest, formatTarget } from '../../src/client/format-request.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import { readQuery } from '../../src/http/input.js'
import { createRouter } from '../../src/http/router.js'
import { registry } from '../../src/operations/all.js'

const find = (name: string) => registry.find(name) as RoutedOperation

t.test(
  'the input of an operation is divided into path, query and body as the route of the operation says',
  async (t) => {
    const list = { type: ['card', 'bank'], metadata: { a: '1' }, page: 2, size: null }
    const patch = { contentType: 'application/merge-patch+json', body: '{"data":null}' }
    for (const [name, input, request] of [
      ['token get', { id: 'a/b c?' }, { method: 'GET', target: '/tokens/a%2Fb%20c%3F' }],
      ['token list', list, { method: 'GET', target: '/tokens?type=card&type=bank&metadata.a=1&page=2' }],
      ['token update', { id: 'x', data: null }, { method: 'PATCH', target: '/tokens/x', ...patch }],
      ['token delete', { id: 'x' }, { method: 'DELETE', target: '/tokens/x' }],
    ] as const)
      t.same(formatRequest(find(name), input), request)
    t.equal(formatRequest(find('token tokenize'), { payload: [1] }).body, '[1]')
    t.equal(formatRequest(find('token tokenize'), {}).body, 'null')
  },
)

t.test('an id is refused if a URL cannot contain it unchanged', async (t) => {
  for (const id of ['', '.', '..', 'a\ud800'])
    t.throws(() => formatTarget(find('token delete'), { id }), {
      code: 'validation',
      errors: { id: [/URL/] },
    })
  const missing = { code: 'validation', errors: { id: [/required, as in \{ id/] } }
  for (const input of [{}, 'an id' as never]) t.throws(() => formatTarget(find('token get'), input), missing)
  t.throws(() => formatTarget(find('token list'), { type: ['a\ud800'] }), { code: 'validation' })
})

t.test('the server parses every formatted id and filter to the value that was formatted', async (t) => {
  const router = createRouter(registry)
  const text = fc.string({ minLength: 1, unit: 'grapheme' })
  fc.assert(
    fc.property(text, fc.dictionary(text, text, { minKeys: 1, maxKeys: 3 }), (id, metadata) => {
      fc.pre(id !== '.' && id !== '..')
      const target = formatTarget(find('token children'), { parent_id: id, metadata })
      const { pathname, search } = new URL(target, 'http://localhost')
      const match = router.match('GET', pathname)
      if ('allow' in match) throw new Error('no route')
      t.same(match.parameters(), { parent_id: id })
      // Compares lists of entries, because the name of a property can be `__proto__`.
      const { input } = readQuery(match.operation.endpoint, search.slice(1))
      t.same(Object.entries(input.metadata!), Object.entries(metadata))
    }),
    { numRuns: 200, examples: [['id', JSON.parse('{ "__proto__": "a", "b": "c" }')]] },
  )
})
