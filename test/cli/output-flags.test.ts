/**
 * Every command prints in the format that its output flags request. A command that does not support a flag fails
 * before it does anything else.
 */
import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { hasCommand } from '../../src/cli/command-tree.js'
import { TERMINAL_COMMANDS } from '../../src/cli/commands/terminal-commands.js'
import { listArgs } from '../../src/cli/input/flags.js'
import { findPresentation } from '../../src/cli/nouns/all.js'
import { itemOutput } from '../../src/framework/page.js'
import type { Schema } from '../../src/framework/schema.js'
import { registry } from '../../src/operations/all.js'
import { createHome, type Home, testHome, testVault } from './home.js'

/** `result` is the schema of the printed result. `result` is undefined if the command prints other text or nothing. */
interface Command {
  name: string
  words: readonly string[]
  result?: Schema | undefined
  printsText: boolean
}

const requiredOf = (specs: readonly (readonly [string, string])[]) =>
  specs.filter(([spec]) => spec.startsWith('<')).map(() => 'x')

const COMMANDS: readonly Command[] = [
  ...registry.operations.filter(hasCommand).map((definition) => {
    const { arguments: specs = listArgs(definition), result = definition.output } =
      findPresentation(definition)
    const { name } = definition
    return { name, words: [...name.split(' '), ...requiredOf(specs)], result, printsText: false }
  }),
  ...TERMINAL_COMMANDS.map(({ name, arguments: specs = [], prints }) => ({
    name,
    words: [...name.split(' '), ...requiredOf(specs)],
    result: typeof prints === 'object' && 'result' in prints ? prints.result : undefined,
    printsText: typeof prints === 'object' && 'text' in prints,
  })),
]

/**
 * Runs a command and asserts that the command is refused. The folder has no vault, so a command that is not refused
 * fails with another code or creates a file.
 */
async function refuse(t: Test, home: Home, words: readonly string[], message: RegExp): Promise<void> {
  const { code, stdout, stderr } = await home.run([...words, '--yes'])
  t.match({ code, stdout, stderr }, { code: 2, stdout: '', stderr: message }, words.join(' '))
  t.same(readdirSync(home.place), [], 'no file was created')
}

t.test('a command refuses an impossible output format before it does anything', async (t) => {
  const home = createHome(t)
  const find = (isWanted: (command: Command) => boolean) => COMMANDS.filter(isWanted)
  const results = find(({ printsText }) => !printsText)
  t.ok(results.length > 90)
  for (const { words } of results) {
    await refuse(t, home, [...words, '-o', 'value'], /prints one field/)
    await refuse(t, home, [...words, '-o', 'value', '--fields', 'a,b'], /prints one field/)
  }
  const isObject = ({ result }: Command) => result !== undefined && itemOutput(result).type === 'object'
  for (const { words } of find(isObject))
    await refuse(t, home, [...words, '--fields', 'no_such'], /There is no field "no_such"/)
  const hasNoId = (command: Command) => isObject(command) && !('id' in propertiesOf(command))
  const withoutIds = find(hasNoId)
  t.ok(withoutIds.length > 15)
  for (const { words } of withoutIds) await refuse(t, home, [...words, '-o', 'id'], /have no id/)
  for (const { words } of find(({ printsText }) => printsText))
    for (const format of ['value', 'id'])
      await refuse(t, home, [...words, '-o', format], /prints text, and cannot print --output/)
})

function propertiesOf({ result }: Command): object {
  const item = itemOutput(result!)
  return (item.type === 'object' && item.properties) || {}
}

testVault(
  'a command with a refused format changes nothing, even if a variable sets the format',
  async (t, home) => {
    const { id, key } = await home.createApp({ name: 'one', permissions: ['token:create', 'token:read'] })
    const twoFields = { COFFER_OUTPUT: 'value', COFFER_FIELDS: 'id,name' }
    for (const [line, options] of [
      ['app regenerate one -o value --yes', {}],
      ['app regenerate one --yes', { env: twoFields }],
      ['app create --name two --type private --permission token:read -o value --fields id,key', {}],
      ['app key create one -o value', {}],
      ['app key create one -o value --fields kye', {}],
      ['token create -o value', { stdin: '{"type":"token","data":"x"}' }],
      ['token generate -o value', {}],
    ] as const)
      t.match(await home.run(line, options), { code: 2, stdout: '', stderr: /field/ }, line)
    const env = { COFFER_API_KEY: key }
    t.equal((await home.json('app whoami', { env })).id, id, 'the key has not changed')
    const { data } = await home.json('app list')
    t.match(data, [{ name: 'one', keys: [{ id: /./ }] }])
    t.same([data.length, data[0].keys.length], [1, 1])
    t.equal((await home.json('token list')).pagination.total_items, 0)
  },
)

testVault(
  'a command is refused if COFFER_FIELDS leaves out a key that is shown only once',
  async (t, home) => {
    const env = { COFFER_FIELDS: 'id,name' }
    const { id, key } = await home.createApp({ name: 'one', permissions: ['token:read'] })
    for (const line of ['app regenerate one --yes', 'app key create one'])
      t.match(await home.run(line, { env }), {
        code: 2,
        stderr:
          'COFFER_FIELDS leaves out key, which is shown only once. Say what to print: --fields id,key\n',
      })
    t.equal((await home.json('app whoami', { env: { COFFER_API_KEY: key } })).id, id)
    t.same(await home.json('app get one', { env }), { id, name: 'one' }, 'the output has no key')
    t.same(
      Object.keys(await home.json('app regenerate one --yes --fields id', { env })),
      ['id'],
      'fields that are given to this command are respected',
    )
  },
)

testVault(
  'if the answer to a change cannot be printed, the error says what was done and what to do',
  async (t, home) => {
    const { id } = await home.createApp({ name: 'one', permissions: ['token:read'] })
    const full = { stdoutFailure: 'ENOSPC' }
    const another = `Create another: coffer app key create ${id}`
    const disk = 'The output could not be written (ENOSPC).'
    for (const [line, message, options] of [
      [
        'app regenerate one --yes',
        `coffer app regenerate was carried out. ${disk} The key is lost. ${another}\n`,
        full,
      ],
      ['app key create one', `${another}, and delete the lost one: coffer app key delete ${id} `, full],
      [
        'app key create one',
        'coffer app key create was carried out. The output of the command was not read. The key is lost.',
        {
          stdoutFailure: 'EPIPE',
        },
      ],
      [
        'token create --type token --data x --id made',
        `${disk} Show the result: coffer token get made\n`,
        full,
      ],
      ['token generate', `${disk} Show the results: coffer token list\n`, full],
      ['config set search.masked_data false', `coffer config set was carried out. ${disk}\n`, full],
      ['token list', `error: ${disk}\n`, full],
    ] as const) {
      const { code, stderr } = await home.run(line, options)
      t.equal(code, 1, line)
      t.match(stderr, message, line)
    }
    t.equal((await home.json('app get one')).keys.length, 3)
    t.equal((await home.run('token create --type token --data x', { stdoutFailure: 'EPIPE' })).code, 0)
  },
)

testHome('if the keys of a new vault cannot be printed, the error says so', async (t, home) => {
  const { code, stderr } = await home.run('init --starter-apps', { stdoutFailure: 'ENOSPC' })
  t.equal(code, 1)
  t.match(
    stderr,
    `The vault was created in ${home.place}/.coffer. The output could not be written (ENOSPC). The keys`,
  )
  t.equal((await home.json('app list')).pagination.total_items, 3)
})
