/** All complaints about an input come in one answer, nested ones included. */
import t from 'tap'
import { openTestVault, requireOperation } from '../support/test-vault.js'
import type { Input } from './documented.js'

/** Operation, input, and every property that is complained of; each over whatever door. */
const COMPLAINTS: [name: string, input: Input, paths: string][] = [
  [
    'token create',
    {
      id: 'x',
      type: 'card',
      data: { number: '1', cvc: 7, more: 1 },
      containers: ['bad', 1],
      mask: { a: '{{ x', b: ['{{ data.number | nope }}'] },
      metadata: { a: 1, '\n': 'x' },
      search_indexes: ['{{', 2],
      fingerprint_expression: '{{ other }}',
      expires_at: '2/30/2031',
      deduplicate_token: 'yes',
    },
    'id data.number data.cvc data.more containers[0] containers[1] mask.a mask.b[0] metadata.a metadata search_indexes[0] search_indexes[1] fingerprint_expression expires_at deduplicate_token',
  ],
  [
    'token create',
    { type: 'token', data: { a: 'x' }, mask: { a: '{{ no }}', b: '{{ data.a | to_number }}' } },
    'mask.a mask.b',
  ],
  ['token create', { data: 1, mask: '{{' }, 'type mask'],
  [
    'token update',
    { id: 'unknown', data: null, containers: [7, 'bad'], mask: ['{{'], metadata: { a: 1 }, expires_at: 'x' },
    'data containers[0] containers[1] mask[0] metadata.a expires_at',
  ],
  [
    'token list',
    { size: 0, page: 'x', id: [''], types: ['a,'], metadata: {} },
    'size page id[0] types metadata',
  ],
  ['token search', { size: 0, query: 'created_at:x' }, 'size query'],
  [
    'token create-child',
    { parent_id: 'unknown', type: 'bank', data: { routing_number: 1 }, containers: 'x' },
    'data.routing_number data.account_number containers',
  ],
  [
    'token tokenize',
    { payload: { a: [{ type: 'x', data: null }], b: { type: 'card', data: {}, mask: '{{' } } },
    'a[0].type a[0].data b.data.number b.mask',
  ],
  ['token detokenize', { payload: { a: '{{', b: ['{{ x | nope }}'] } }, 'a b[0]'],
  [
    'app create',
    {
      type: 'x',
      rules: [{ priority: 0, container: 'x', transform: 1, permissions: ['y', 1], more: 1 }, 'z'],
    },
    'name type rules[0].priority rules[0].container rules[0].transform rules[0].permissions[0] rules[0].permissions[1] rules[0].more rules[1]',
  ],
  [
    'app update',
    { id: 'unknown', permissions: ['x'], rules: [{ container: 'x' }], expires_at: '1/1/2001' },
    'name permissions[0] rules[0].priority rules[0].container rules[0].transform rules[0].permissions expires_at',
  ],
  [
    'formula create',
    {
      type: 'x',
      icon: 'x',
      configuration: [{ name: 'a b' }, 1],
      request_parameters: [{ name: 'a..b', type: 'string', optional: 1 }],
    },
    'name type code icon configuration[0].name configuration[0].type configuration[1] request_parameters[0].name request_parameters[0].optional',
  ],
  ['reactor create', { formula: {}, configuration: { a: [] }, code: 1 }, 'name configuration.a code'],
  ['reactor update', { id: 'unknown', application: 'x', runtime: 1 }, 'name application runtime'],
  ['reactor react', { id: 'unknown', args: { a: '{{', b: ['{{ x | nope }}'] } }, 'args.a args.b[0]'],
  ['log list', { size: 0, start_date: 'x', end_date: 'y' }, 'size start_date end_date'],
  ['tenant update', { name: '\t', settings: { a: 1 } }, 'name settings.a'],
  ['token link', { parent_id: 'same', child_id: 'same' }, 'child_id'],
]

t.test('all complaints about an input come in one answer, nested ones included', async (t) => {
  const { app, textOf } = await openTestVault()
  t.teardown(() => app.close())
  for (const [name, input, paths] of COMPLAINTS) {
    requireOperation(name)
    const text = await textOf(() => app.owner({ reveal: true }), name, input)
    const [, errors] = JSON.parse(text) as [string, object | null]
    t.strictSame(Object.keys(errors ?? {}).sort(), paths.split(' ').sort(), `${name}: ${text}`)
  }
})

t.test('of many faulty parts a bounded number is complained of', async (t) => {
  const { app, textOf } = await openTestVault()
  t.teardown(() => app.close())
  const owner = () => app.owner({ reveal: true })
  const args = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`a${at}`, `{{ x${at} | nope }}`]))
  const payload = Array.from({ length: 900 }, () => ({ type: 'x', data: 1 }))
  for (const text of [
    await textOf(owner, 'reactor react', { id: 'unknown', args }),
    await textOf(owner, 'token tokenize', { payload }),
    await textOf(owner, 'token detokenize', { payload: args }),
  ]) {
    const [, errors] = JSON.parse(text) as [string, object]
    t.equal(Object.keys(errors).length, 100)
  }
})
