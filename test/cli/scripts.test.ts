/** What scripts and shells use: errors as JSON, the tree of commands as JSON, completion, variables of `serve`. */
import { spawnSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { TERMINAL_COMMANDS } from '../../src/cli/commands/terminal-commands.js'
import { SETTINGS } from '../../src/global-flags.js'
import { registry } from '../../src/operations/all.js'
import { createMachine, PROGRAM } from './binary.js'
import { createVaultHome } from './home.js'

t.setTimeout(400_000)

t.test('help --json has every command with its flags, types, examples, permissions and output', async (t) => {
  const home = await createVaultHome(t)
  const tree = await home.json('help --json')
  const byName = new Map(tree.commands.map((each: { words: string[] }) => [each.words.join(' '), each]))
  for (const { name, examples, isInternal, form, permissions, output } of registry.operations) {
    // A form of another command is described there.
    if (isInternal || form !== undefined) continue
    const found = byName.get(name) as { output?: object }
    t.match(found, { examples, permissions, summary: String }, name)
    t.equal(found.output !== undefined, output !== undefined, name)
  }
  for (const { name } of TERMINAL_COMMANDS) t.ok(byName.has(name), name)
  t.match(byName.get('token create'), {
    http: 'POST /tokens',
    flags: [
      { names: ['--id'], type: 'string' },
      { names: ['--type'], enum: ['token', String], required: true },
    ],
  })
  const variables = tree.global_flags.map(({ variable }: { variable?: string }) => variable)
  for (const { variable } of Object.values(SETTINGS)) t.ok(variables.includes(variable), variable)
  const one = await home.json('help --json token get')
  t.same(one.commands, [byName.get('token get')])
  t.equal((await home.run('help --json tokn')).code, 2)
})

t.test('a second server of a vault is refused at once, and told who has it', async (t) => {
  const machine = await createMachine()
  t.teardown(() => machine.remove())
  const server = machine.start(['serve', '--port', '0', '--quiet'])
  await new Promise((resolve) => server.stdout?.once('data', resolve))
  const begin = Date.now()
  const second = await machine.coffer(['serve', '--port', '0'])
  t.ok(Date.now() - begin < 8000, 'without waiting for the lock')
  t.equal(second.code, 9)
  t.match(second.stderr, `Process ${server.pid} on `)
  const rekey = await machine.coffer(['vault', 'rekey', '--yes'])
  t.equal(rekey.code, 9)
  t.match(rekey.stderr, `Process ${server.pid} on `, 'and so is what needs the vault for itself')
  const again = await machine.coffer(['init'])
  t.match(again, { code: 5, stderr: /already a vault/ }, 'nor does another vault in its place wait for it')
  server.kill('SIGTERM')
  await new Promise((resolve) => server.once('close', resolve))
})

t.test('completion offers words, flags, values, names and ids', async (t) => {
  const home = await createVaultHome(t)
  const { place, json } = home
  const create = (name: string) =>
    json(['app', 'create', '--name', name, '--type', 'private', '--permission', 'token:read'])
  const { id } = await create('support')
  const described: string[] = []
  const offered = async (line: string, env: Record<string, string> = {}) => {
    const { stdout, ...rest } = await home.run(['completion', 'words', '--', ...line.split(' ')], { env })
    t.same(rest, { code: 0, stderr: '' }, line)
    const lines = stdout.trimEnd().split('\n')
    described.push(...lines.filter((each) => each.includes('\t')))
    return lines.map((each) => each.split('\t')[0])
  }
  for (const [line, words] of [
    ['to', ['token']],
    ['token cr', ['create', 'create-child']],
    ['app key ', ['create', 'list', 'get', 'delete']],
    ['token create --fing', ['--fingerprint-expression']],
    ['token get my-id --rev', ['--reveal']],
    ['token create --type ca', ['card', 'card_number']],
    ['token list --type ca', ['card', 'card_number']],
    ['token list --after --type ca', ['card', 'card_number']],
    ['token import --type ca', ['card', 'card_number']],
    ['token export --type ca', ['card', 'card_number']],
    // As bash splits it.
    ['token create --type = ca', ['card', 'card_number']],
    ['app create --type ', ['public', 'private', 'management']],
    ['app create --type =', ['public', 'private', 'management']],
    ['token list -o n', ['ndjson']],
    ['--color ', ['auto', 'always', 'never']],
    ['app get s', ['support']],
    ['app get other s', ['support']],
    ['--vault .coffer reactor create --application sup', ['support']],
    ['app get ', ['support', id]],
    // The ids of tokens are not looked for, because a list of tokens is logged as a read of each.
    ['token get ', ['']],
    ['tenant use defau', ['default']],
    ['help acc', ['access-rules']],
    ['help token cr', ['create', 'create-child']],
    ['completion b', ['bash']],
    ['frob ', ['']],
  ] as const)
    t.same(await offered(line), words, line)
  for (const line of ['create\tStore a value and return its token.', '--reveal\tshow data in the clear'])
    t.ok(described.includes(line), line)
  t.same(await offered('app get s', { COFFER_VAULT: '/nowhere' }), [''], 'what fails is silent')
  const asking = { XDG_CONFIG_HOME: '/nowhere', COFFER_PASSPHRASE_COMMAND: `touch ${place}/asked` }
  t.same(await offered('app get s', asking), [''])
  t.notOk(existsSync(join(place, 'asked')), 'no passphrase is asked for')

  symlinkSync(PROGRAM, join(place, 'coffer'))
  const path = [place, dirname(process.execPath), process.env.PATH].join(':')
  const options = { encoding: 'utf8', env: { ...home.env, PATH: path }, cwd: place } as const
  const scriptOf = async (shell: string) => (await home.run(['completion', shell])).stdout
  for (const [shell, flags, probe] of [
    ['bash', '--norc', 'COMP_WORDS=(coffer app get s); COMP_CWORD=3; _coffer; echo "${COMPREPLY[@]}"'],
    ['zsh', '-f', 'words=(coffer app get s); CURRENT=4; _coffer'],
    [
      'fish',
      '-N',
      "complete -C 'coffer app get s'; complete -C 'coffer completion '; complete -C 'coffer scan coff'",
    ],
  ] as const) {
    const script = await scriptOf(shell)
    t.match(script, 'coffer completion words --', shell)
    if (spawnSync('sh', ['-c', `command -v ${shell}`]).status !== 0) continue
    const before = shell === 'zsh' ? 'compdef() { : }; compadd() { print -r -- ${(P)5} }; ' : ''
    const { stdout, stderr } = spawnSync(shell, [flags, '-c', before + script + probe], options)
    const lines = stdout.trim().split('\n')
    t.equal(lines[0], 'support', `${shell}: ${stderr}`)
    // An empty word is a word, and files are offered where nothing else is.
    if (shell === 'fish') t.same(lines.slice(1), ['bash', 'fish', 'zsh', 'coffer'])
  }

  const evil = "my $(touch made)'s *"
  for (const name of [evil, 'my \u202eapp', 'my app\nsecond']) await create(name)
  t.same(await offered('app get my'), [evil], 'what would not be seen as it is, is left out')
  const probe = `COMP_WORDS=(coffer app get 'my\\ $'); COMP_CWORD=3; _coffer; echo "\${COMPREPLY[@]}"; eval "printf %s \${COMPREPLY[@]}"`
  const { stdout } = spawnSync('bash', ['--norc', '-c', (await scriptOf('bash')) + probe], options)
  const [inserted, read] = stdout.split('\n')
  t.match(inserted, 'my\\ \\$\\(touch', 'as bash has to read it')
  t.equal(read, evil)
  t.notOk(existsSync(join(place, 'made')), 'a name runs nothing')
})

t.test('pipelines with jq end well, and fail when a command in them does', async (t) => {
  const machine = await createMachine()
  t.teardown(() => machine.remove())
  if ((await machine.bash('command -v jq')).code !== 0) return t.comment('jq is not installed')
  const bash = async (line: string) => {
    const { code, stdout, stderr } = await machine.bash(`set -o pipefail; ${line}`)
    return [code, stdout, stderr]
  }
  const rows = `jq -nc 'range(300) | {id: "row-\\(.)", type: "token", data: {n: .}}'`
  t.same(await bash(`${rows} | coffer token import - --quiet | jq .created`), [0, '300\n', ''])
  t.same(await bash(`coffer token list --all -o ndjson | jq -r .id | sort | uniq | wc -l`), [0, '300\n', ''])
  const told = 'These are the first 20 of 300: --all has all.\n'
  t.same(await bash(`coffer token list -o id | head -1 | xargs -n1 echo`), [0, 'row-299\n', told])
  t.same(
    await bash(`coffer token list --size 3 | jq -r '.data[].id' | coffer token delete - --yes --quiet`),
    [0, '', ''],
  )
  t.same(
    await bash(`{ sleep 1; coffer token list --size 1 -o id; } | coffer token delete - --yes --quiet`),
    [0, '', ''],
    'what reads ids does not keep the vault from what writes them',
  )
  t.same(await bash(`coffer token export | jq -s length`), [0, '296\n', ''])
  const many = `jq -nc --arg long "$(printf %0350d 1)" 'range(2100) | {id: "\\($long)\\(.)", type: "token", data: $long}'`
  t.same(await bash(`${many} | coffer token import - --quiet | jq .created`), [0, '2100\n', ''])
  t.same(
    await bash(
      `coffer token list --all -o id | { read -r id; coffer token get "$id" | jq '.id | length'; cat >/dev/null; }`,
    ),
    [0, '354\n', ''],
    'a list that waits for its reader keeps no other command from the vault',
  )
  t.same(
    await bash(
      `coffer token export --reveal | jq -c --unbuffered '.id |= "again" + .' | coffer token import - --quiet | jq .created`,
    ),
    [0, '2396\n', ''],
    'nor does an export keep an import of it',
  )
  const [code, stdout] = await bash(`coffer token get nobody 2>/dev/null | jq -r .id`)
  t.same([code, stdout], [3, ''], 'the exit code is that of the command')
})
