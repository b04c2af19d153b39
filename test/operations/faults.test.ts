/**
 * A response names all faults of the input. A patch is validated only after the caller's access to the containers is
 * checked.
 */
import t from 'tap'
import type { Permission } from '../../src/domain/access/permissions.js'
import { openTestVault } from '../support/test-vault.js'
import type { Input } from './documented.js'

t.test(
  "the caller's access to the old and new containers of a token is checked before a patch is validated",
  async (t) => {
    const { app, ask, askAs, createApplication } = await openTestVault()
    t.teardown(() => app.close())
    for (const id of ['open', 'closed'])
      await ask('token create', {
        id,
        type: 'card_number',
        data: '4242424242424242',
        containers: [`/${id}/`],
      })
    const permissions: Permission[] = ['token:update']
    const rules = [{ priority: 1, container: '/open/', transform: 'reveal' as const, permissions }]
    const { key } = await createApplication('private', { rules })
    const patch = (input: Input) => askAs(key, 'token update', { data: 'no number', ...input })
    await t.rejects(patch({ id: 'open' }), { code: 'validation' })
    await t.rejects(patch({ id: 'open', containers: ['/closed/'] }), { code: 'forbidden' })
    await t.rejects(patch({ id: 'closed' }), { code: 'forbidden' })
  },
)

/** Each row has an operation, its input, and all properties that the response must name. */
const COMPLAINTS: [name: string, input: Input, paths: string][] = [
  [
    'token create',
    {
      id: 'x',
      type: 'card',
      data: { number: '1', cvc: 7, more: 1 },
      containers: ['bad', 1],
      mask: { a: '{{ x', b: ['{{ data.number | nope }}'] },
      metadata: { 'a/b': 1, '\n': 'x' },
      search_indexes: ['{{', 2],
      fingerprint_expression: '{{ other }}',
      expires_at: '2/30/2031',
      deduplicate_token: 'yes',
    },
    'id data.number data.cvc data.more containers[0] containers[1] mask.a mask.b[0] metadata.a/b metadata search_indexes[0] search_indexes[1] fingerprint_expression expires_at deduplicate_token',
  ],
  [
    'token create',
    { type: 'token', data: { a: 'x' }, mask: { a: '{{ no }}', b: '{{ data.a | to_number }}' } },
    'mask.a mask.b',
  ],
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
  [
    'token tokenize',
    { payload: { a: [{ type: 'x', data: null }], b: { type: 'card', data: {}, mask: '{{' } } },
    'a[0].type a[0].data b.data.number b.mask',
  ],
  [
    'app create',
    {
      type: 'x',
      rules: [{ priority: 0, container: 'x', transform: 1, permissions: ['y', 1], more: 1 }, 'z'],
    },
    'name type rules[0].priority rules[0].container rules[0].transform rules[0].permissions[0] rules[0].permissions[1] rules[0].more rules[1]',
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
  ['reactor react', { id: 'unknown', args: { a: '{{', b: ['{{ x | nope }}'] } }, 'args.a args.b[0]'],
]

t.test('a response names at most a hundred faults of an input', async (t) => {
  const { app, textOf } = await openTestVault()
  t.teardown(() => app.close())
  const complaintsOf = async (name: string, input: Input) => {
    const [, errors] = JSON.parse(await textOf(() => app.owner({ reveal: true }), name, input)) as [
      string,
      object,
    ]
    return Object.keys(errors).sort()
  }
  for (const [name, input, paths] of COMPLAINTS)
    t.strictSame(await complaintsOf(name, input), paths.split(' ').sort(), name)
  const args = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`a${at}`, `{{ x${at} | nope }}`]))
  const payload = Array.from({ length: 900 }, () => ({ type: 'x', data: 1 }))
  t.equal((await complaintsOf('reactor react', { id: 'unknown', args })).length, 100)
  t.equal((await complaintsOf('token tokenize', { payload })).length, 100)
  t.equal((await complaintsOf('token detokenize', { payload: args })).length, 100)
})
