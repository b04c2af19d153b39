/** What scripts and shells use: errors as JSON, the tree of commands as JSON, completion, variables of `serve`. */
import { spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
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
  t.match(JSON.parse(second.stderr).detail, `Process ${server.pid} on `)
  const rekey = await machine.coffer(['vault', 'rekey', '--yes'])
  t.equal(rekey.code, 9)
  t.match(
    JSON.parse(rekey.stderr).detail,
    `Process ${server.pid} on `,
    'and so is what needs the vault for itself',
  )
  const again = await machine.coffer(['init'])
  t.match(again, { code: 5, stderr: /already a vault/ }, 'nor does another vault in its place wait for it')
  server.kill('SIGTERM')
  await new Promise((resolve) => server.once('close', resolve))
})

t.test('completion offers words, flags, values, names and ids', async (t) => {
  const machine = await createMachine()
  t.teardown(() => machine.remove())
  const { coffer } = machine
  const { code } = await coffer('app create --name support --type private --permission token:read'.split(' '))
  t.equal(code, 0)
  const offered = async (line: string, env: Record<string, string> = {}) => {
    Object.assign(machine.env, env)
    const { code, stdout, stderr } = await coffer(['completion', 'words', '--', ...line.split(' ')])
    for (const name of Object.keys(env)) delete machine.env[name]
    t.same([code, stderr], [0, ''], line)
    return stdout.trimEnd().split('\n')
  }
  t.same(await offered('to'), ['token'])
  t.same(await offered('token cr'), ['create', 'create-child'])
  t.same(await offered('app key '), ['create', 'list', 'get', 'delete'])
  t.same(await offered('token create --fing'), ['--fingerprint-expression'])
  t.same(await offered('token get my-id --rev'), ['--reveal'])
  t.same(await offered('token create --type ca'), ['card', 'card_number'])
  t.same(await offered('token create --type = ca'), ['card', 'card_number'], 'as bash splits it')
  t.same(await offered('app create --type '), ['public', 'private', 'management'])
  t.same(await offered('app create --type ='), ['public', 'private', 'management'])
  t.same(await offered('token list -o n'), ['ndjson'])
  t.same(await offered('--color '), ['auto', 'always', 'never'])
  t.same(await offered('app get s'), ['support'])
  t.same(await offered('--vault .coffer reactor create --application sup'), ['support'])
  t.match((await offered('app get ')).join(' '), /^support [0-9a-f-]{36}$/)
  t.same(await offered('token get '), [''], 'there is no token yet')
  for (const id of ['first', 'second', 'gone'])
    t.equal((await coffer(['token', 'create'], JSON.stringify({ id, type: 'token', data: 'x' }))).code, 0)
  t.equal((await coffer(['token', 'delete', 'gone', '--yes'])).code, 0)
  const logged = async () =>
    JSON.parse((await coffer(['log', 'list', '-o', 'json'])).stdout).pagination.total_items
  const records = await logged()
  t.same(await offered('token get '), ['second', 'first'], 'the newest first')
  t.same(await offered('token delete first s'), ['second'], 'each of several')
  t.same(await offered('token link first se'), ['second'])
  t.same(await offered('log reveals fi'), ['first'])
  t.equal(await logged(), records, 'nothing is read for it')
  t.same(await offered('tenant use defau'), ['default'])
  t.same(await offered('help acc'), ['access-rules'])
  t.same(await offered('completion b'), ['bash'])
  t.same(await offered('frob '), [''])
  t.same(await offered('app get s', { COFFER_VAULT: '/nowhere' }), [''], 'what fails is silent')
  t.same(
    await offered('app get s', { XDG_CONFIG_HOME: '/nowhere', COFFER_PASSPHRASE_COMMAND: 'touch asked' }),
    [''],
  )
  t.equal(spawnSync('test', ['-e', join(machine.place, 'asked')]).status, 1, 'no passphrase is asked for')

  symlinkSync(PROGRAM, join(machine.place, 'coffer'))
  const env = { ...machine.env, PATH: [machine.place, dirname(process.execPath), machine.env.PATH].join(':') }
  for (const [shell, probe] of Object.entries({
    bash: (script: string) =>
      `${script}COMP_WORDS=(coffer app get s); COMP_CWORD=3; _coffer; echo "\${COMPREPLY[@]}"`,
    zsh: (script: string) =>
      `compdef() { : }; compadd() { print -r -- \${(P)2} }; ${script}words=(coffer app get s); CURRENT=4; _coffer`,
    fish: (script: string) =>
      `${script}complete -C 'coffer app get s'; complete -C 'coffer completion '; complete -C 'coffer scan coff'`,
  })) {
    const script = (await coffer(['completion', shell])).stdout
    t.ok(script.length > 100 && script.length < 20_000, `${shell}: ${script.length} bytes`)
    if (spawnSync('sh', ['-c', `command -v ${shell}`]).status !== 0) continue
    const words = shell === 'fish' ? ['-N'] : shell === 'zsh' ? ['-f'] : ['--norc']
    const { stdout, stderr } = spawnSync(shell, [...words, '-c', probe(script)], {
      encoding: 'utf8',
      env,
      cwd: machine.place,
    })
    const lines = stdout.trim().split('\n')
    t.equal(lines[0], 'support', `${shell}: ${stderr}`)
    // An empty word is a word, and files are offered where nothing else is.
    if (shell === 'fish') t.same(lines.slice(1), ['bash', 'fish', 'zsh', 'coffer'])
  }

  const evil = "my $(touch made)'s *"
  for (const name of [evil, 'my \u202eapp', 'my app\nsecond'])
    await coffer(['app', 'create', '--name', name, '--type', 'private', '--permission', 'token:read'])
  t.same(await offered('app get my'), [evil], 'what would not be seen as it is, is left out')
  const script = (await coffer(['completion', 'bash'])).stdout
  const probe = `${script}COMP_WORDS=(coffer app get 'my\\ $'); COMP_CWORD=3; _coffer; echo "\${COMPREPLY[@]}"; eval "printf %s \${COMPREPLY[@]}"`
  const { stdout } = spawnSync('bash', ['--norc', '-c', probe], { encoding: 'utf8', env, cwd: machine.place })
  const [inserted, read] = stdout.split('\n')
  t.match(inserted, 'my\\ \\$\\(touch', 'as bash has to read it')
  t.equal(read, evil)
  t.equal(spawnSync('test', ['-e', join(machine.place, 'made')]).status, 1, 'a name runs nothing')
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
