/** Errors about missing records: every command names the noun and the id that was given. */
import t from 'tap'
import type { CommandContext } from '../../src/cli/context.js'
import { explainMissing } from '../../src/cli/missing.js'
import { isControl } from '../../src/framework/declaration.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import { registry } from '../../src/operations/all.js'
import { faultyInputsOf, type Input } from '../operations/documented.js'
import { openTestVault } from '../support/test-vault.js'
import { testVault } from './home.js'

const UUID = '1ec69f2a-3f0c-4f5e-8d6d-0f4c7f3a2b10'
const CARD = '4242424242424242'

/** Returns the path parameters that are arguments of the command. */
const idsOf = ({ endpoint, positionals }: RoutedOperation) =>
  endpoint.parameters.filter((parameter) => positionals.includes(parameter))

const takesId = (definition: RoutedOperation) => idsOf(definition).length > 0 && !isControl(definition)

t.test(
  'for every operation with an id in its path, the error has the id, the noun, and the command to run next',
  async (t) => {
    const { ask } = await openTestVault()
    const named = (input: Input): Input => JSON.parse(JSON.stringify(input).replaceAll(/\$[a-z]+/g, 'nope'))
    const context = { config: {} } as CommandContext
    const definitions = registry.routed.filter(takesId)
    t.ok(definitions.length > 25, `${definitions.length} operations`)
    for (const definition of definitions) {
      const { name } = definition
      const { tenant_id: _, ...good } = faultyInputsOf(definition).good
      // The ids of a parent and its child must differ.
      const ids = Object.fromEntries(idsOf(definition).map((parameter, at) => [parameter, `nope${at || ''}`]))
      const input = { ...named(good), ...ids }
      const error = await ask(name, input).then(
        () => undefined,
        (error: unknown) => error,
      )
      t.match(error, { code: 'not_found' }, name)
      const explained = (await explainMissing({ context, definition, input }, error)) as Error
      t.match(
        explained.message,
        /^(No|.* has no|The) [A-Za-z\d ]+:? "nope.*coffer [a-z\d-]+ [a-z -]+$/,
        `${name}: ${explained}`,
      )
    }
  },
)

testVault('the error about a missing record names the id that does not exist', async (t, home) => {
  for (const id of ['card-1', 'card-2']) await home.createToken({ id })
  const { id: app } = await home.createApp({ name: 'front', permissions: ['token:read'] })
  for (const [line, message] of [
    ['token get nope', 'No token "nope". List them: coffer token list'],
    ['token delete nope --yes', 'No token "nope". List them: coffer token list'],
    [
      'token unlink card-1 card-2',
      'The tokens "card-1" and "card-2" are not linked. See: coffer token children --help',
    ],
    [
      'token link card-1 card-3',
      'No token with one of these ids: "card-1", "card-3". List them: coffer token list',
    ],
    [
      'token get 1ec69',
      'No token "1ec69". The beginning of an id has at least 8 characters. List them: coffer token list',
    ],
    [`reactor get ${UUID}`, `No reactor "${UUID}". List them: coffer reactor list`],
    [`app key get ${app} nope`, `This application has no key "nope". List them: coffer app key list ${app}`],
    ['token list --explain-as nope', 'No app "nope". Run: coffer app list'],
    [
      'invite outbox nope',
      'No mail "nope", and no mail for an invitation with this id. List them: coffer invite outbox',
    ],
    ['tenant get --tenant nope', 'No tenant "nope". List them: coffer tenant list'],
    ['vault keys remove nope --yes', 'No slot "nope". See: coffer vault keys list'],
  ] as const)
    t.match(await home.run(line), { code: 3, stdout: '', stderr: `error: ${message}\n` }, line)
  const { code, stderr } = await home.run(['token', 'get', 'a\u001b[31m\nb'])
  t.equal(code, 3)
  t.notMatch(stderr, /\u001b|\n./, 'control characters of the id are not printed')
})

testVault('the error does not repeat an id that may be a secret', async (t, home) => {
  const { key } = await home.createApp({ name: 'front', permissions: ['token:read'] })
  for (const secret of [CARD, '4242 4242 4242 4242', key])
    t.match(
      await home.run(['token', 'get', secret]),
      { code: 3, stderr: 'error: There is no token with this id. List them: coffer token list\n' },
      secret,
    )
})

testVault('output as JSON has the same error text as the API', async (t, home) => {
  const { code, stderr } = await home.run('token get nope --json')
  t.equal(code, 3)
  t.equal(JSON.parse(stderr).detail, 'There is no token with this id.')
})
