/** Output for scripts and shells: errors and commands as JSON, completion, and the variables that `serve` prints. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { TERMINAL_COMMANDS } from '../../src/cli/commands/terminal-commands.js'
import { PERMISSIONS, TRANSFORMS } from '../../src/domain/access/permissions.js'
import { SETTINGS } from '../../src/global-flags.js'
import { registry } from '../../src/operations/all.js'
import { createMachine, createPath } from '../support/process.js'
import { testVault } from './home.js'

t.setTimeout(400_000)

testVault('help --json has every command with its flags, types, examples and output', async (t, home) => {
  const tree = await home.json('help --json')
  const byName = new Map(tree.commands.map((each: { words: string[] }) => [each.words.join(' '), each]))
  for (const { name, examples, cli, access, output } of registry.operations) {
    // The entry of the main command also describes the other form of the command.
    if (cli?.isInternal || cli?.form !== undefined) continue
    const found = byName.get(name) as { output?: object }
    t.match(found, { examples, permissions: access.permissions, summary: String }, name)
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

t.test('if another process has the vault open, a command names this process without a delay', async (t) => {
  const machine = await createMachine(t)
  const server = machine.start(['serve', '--port', '0', '--quiet'])
  await once(server.stdout!, 'data')
  const begin = Date.now()
  const stderr = `Process ${server.pid} on `
  t.match(await machine.coffer(['serve', '--port', '0']), { code: 9, stderr })
  t.ok(Date.now() - begin < 8000, 'the command did not wait for the lock')
  t.match(await machine.coffer(['vault', 'rekey', '--yes']), { code: 9, stderr })
  t.match(await machine.coffer(['init']), { code: 5, stderr: /already a vault/ })
  server.kill('SIGTERM')
  await once(server, 'close')
})

testVault('completion offers words, flags, values, names and ids', async (t, home) => {
  const { place } = home
  const create = (name: string) => home.createApp({ name, permissions: ['token:read'] })
  const { id } = await create('support')
  const described: string[] = []
  const offered = async (line: string | readonly string[], env: Record<string, string> = {}) => {
    const words = typeof line === 'string' ? line.split(' ') : line
    const { stdout, ...rest } = await home.run(['completion', 'words', '--', ...words], { env })
    t.same(rest, { code: 0, stderr: '' }, words.join(' '))
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
    ['log list --entity-type ca', ['card']],
    ['token list --after --type ca', ['card', 'card_number']],
    // The words in this row are split as bash splits `--type=ca`.
    ['token create --type = ca', ['card', 'card_number']],
    ['token list -o n', ['ndjson']],
    ['app get s', ['support']],
    ['--vault .coffer reactor create --application sup', ['support']],
    ['app get ', ['support', id]],
    // Token ids are not offered, because listing tokens logs a read of each token.
    ['token get ', ['']],
    ['tenant use defau', ['default']],
    ['config set logs', ['logs.keep']],
    ['help acc', ['access-rules', 'access']],
    ['help token cr', ['create', 'create-child']],
    ['completion b', ['bash']],
    ['frob ', ['']],
  ] as const)
    t.same(await offered(line), words, line)
  for (const line of ['create\tStore a value and return its token.', '--reveal\tshow data in plaintext'])
    t.ok(described.includes(line), line)
  const ofRule = ['app', 'create', '--rule']
  for (const [words, rules] of [
    [
      [...ofRule, '/pc'],
      ['/pci/', '/pci/high/'],
    ],
    [
      [...ofRule, '/pci/'],
      ['/pci/', '/pci/high/', ...TRANSFORMS.map((each) => `/pci/ ${each}`)],
    ],
    [[...ofRule, '3: /pci/ '], TRANSFORMS.map((each) => `3: /pci/ ${each}`)],
    // If completion added only the transform, the shell would close the quotes of the rule.
    [[...ofRule, '/pci/ ma'], Object.keys(PERMISSIONS).map((each) => `/pci/ mask ${each}`)],
    [[...ofRule, '/pci/ mask token:read,token:se'], ['/pci/ mask token:read,token:search']],
    [[...ofRule, '/pci/ mask token:read, token:rea'], ['']],
    [
      ['session', 'authorize', '--rule', 'id=card-* re'],
      ['redact', 'reveal'].map((each) => `id=card-* ${each}`),
    ],
    [[...ofRule, '/pci/ mask token:read', '--type', 'pr'], ['private']],
    [['app', 'update', '--rule', '/pci/ mask token:read', 'sup'], ['support']],
    [['app', 'create', '--permission', 'token:rea'], ['token:read']],
  ] as const)
    t.same(await offered(words), rules, words.join(' '))
  t.ok(described.includes('/pci/ mask token:read\tRead tokens'))
  t.same(await offered('app get s', { COFFER_VAULT: '/nowhere' }), [''], 'completion prints no errors')
  t.same(
    await offered('app get s', { COFFER_PASSPHRASE_FILE: '/nowhere' }),
    ['support'],
    'the key file opens the vault',
  )
  const asking = { XDG_CONFIG_HOME: '/nowhere', COFFER_PASSPHRASE_COMMAND: `touch ${place}/asked` }
  t.same(await offered('app get s', asking), [''])
  t.notOk(existsSync(join(place, 'asked')), 'completion does not ask for a passphrase')
  home.write('pass', 'correct horse battery staple')
  await home.json('vault passwd --new-passphrase-file pass')
  const byFile = { XDG_CONFIG_HOME: '/nowhere', COFFER_PASSPHRASE_FILE: join(place, 'pass') }
  t.same(
    await offered('app get s', byFile),
    ['support'],
    'with a passphrase file, completion works without asking',
  )
  t.same(await offered('app get s', { XDG_CONFIG_HOME: '/nowhere' }), [''])

  const options = { encoding: 'utf8', env: { ...home.env, PATH: createPath(place) }, cwd: place } as const
  const scriptOf = async (shell: string) => (await home.run(['completion', shell])).stdout
  home.write('coffer', 'a file')
  const ofFish = ['app get s', 'completion ', 'scan coff'].map((line) => `complete -C 'coffer ${line}'`)
  for (const [shell, flags, probe] of [
    ['bash', '--norc', 'COMP_WORDS=(coffer app get s); COMP_CWORD=3; _coffer; echo "${COMPREPLY[@]}"'],
    ['zsh', '-f', 'words=(coffer app get s); CURRENT=4; _coffer'],
    ['fish', '-N', ofFish.join('; ')],
  ] as const) {
    const script = await scriptOf(shell)
    t.match(script, 'coffer completion words --', shell)
    if (spawnSync('sh', ['-c', `command -v ${shell}`]).status !== 0) continue
    const before = shell === 'zsh' ? 'compdef() { : }; compadd() { print -r -- ${(P)5} }; ' : ''
    const { stdout, stderr } = spawnSync(shell, [flags, '-c', before + script + probe], options)
    const lines = stdout.trim().split('\n')
    t.equal(lines[0], 'support', `${shell}: ${stderr}`)
    // In fish, an empty word counts as a word. If completion has no words to offer, the shell offers files.
    if (shell === 'fish') t.same(lines.slice(1), ['bash', 'fish', 'zsh', 'coffer'])
  }

  // These words are split as bash splits them: bash also splits at a colon, except between quotes.
  const bash = await scriptOf('bash')
  for (const [words, inserted] of [
    ['--permission token : rea', 'read'],
    [
      `--rule "'/pci/ ma"`,
      Object.keys(PERMISSIONS)
        .map((each) => `/pci/ mask ${each}`)
        .join('|'),
    ],
    [`--rule "'/pci/ mask token:rea"`, '/pci/ mask token:read'],
    ['--rule /pci/\\\\\\ mask\\\\\\ token : rea', 'read'],
  ] as const) {
    const line = `COMP_WORDS=(coffer app create ${words}); COMP_CWORD=$(( ${'${#COMP_WORDS[@]}'} - 1 )); _coffer; IFS='|'; echo "${'${COMPREPLY[*]}'}"`
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', `${bash}\n${line}`], options)
    t.equal(stdout.trim(), inserted, `${words} ${stderr}`)
  }

  const evil = "my $(touch made)'s *"
  for (const name of [evil, 'my \u202eapp']) await create(name)
  t.same(await offered('app get my'), [evil], 'names with invisible characters are not offered')
  const probe = `COMP_WORDS=(coffer app get 'my\\ $'); COMP_CWORD=3; _coffer; echo "\${COMPREPLY[@]}"; eval "printf %s \${COMPREPLY[@]}"`
  const { stdout } = spawnSync('bash', ['--norc', '-c', (await scriptOf('bash')) + probe], options)
  const [inserted, read] = stdout.split('\n')
  t.match(inserted, 'my\\ \\$\\(touch', 'names are escaped for bash')
  t.equal(read, evil)
  t.notOk(existsSync(join(place, 'made')), 'the shell executes no part of a name')
  // Between quotes, bash inserts a completed word without escaping it.
  for (const [word, inserted] of [
    [`'"my'`, ''],
    [`"'my"`, ''],
    [`'"s'`, 'support'],
    [`"'s"`, 'support'],
  ]) {
    const line = `COMP_WORDS=(coffer app get ${word}); COMP_CWORD=3; _coffer; echo "\${COMPREPLY[*]}"`
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', `${bash}\n${line}`], options)
    t.equal(stdout.trim(), inserted, `${word} ${stderr}`)
  }
})

t.test(
  'a command fails if standard output is closed, and succeeds if standard output is discarded',
  async (t) => {
    if (process.platform !== 'linux')
      return t.comment('other systems cannot distinguish a closed output from a discarded output')
    const machine = await createMachine(t)
    await machine.bash('coffer init')
    const closed = { code: 1, stdout: '', stderr: 'error: Standard output is closed, so nothing was done.\n' }
    const create = 'coffer app create --name a --type private --permission token:read'
    // The command `exit` at the end keeps bash as the parent process. Without `exit`, bash would replace itself by the
    // last command.
    for (const line of [`${create} >&-`, `(exec >&-; ${create})`, 'coffer token list >&-'])
      t.match(await machine.bash(`${line}; exit $?`), closed, line)
    t.match((await machine.bash('coffer app list')).stdout, '"total_items":0')
    const spawn = `require('node:child_process').spawnSync('coffer', ['token', 'list'], { stdio: 'ignore' }).status`
    for (const [line, code] of [
      ['coffer token list >/dev/null', 0],
      ['(exec >/dev/null; coffer token list)', 0],
      ['coffer token list --all | true', 0],
      ['coffer token delete nobody --yes >&-', 3],
      [`node -e "process.exit(${spawn})"`, 0],
    ] as const)
      t.match(await machine.bash(`${line}; exit $?`), { code, stdout: '' }, line)
  },
)

t.test('a pipeline of commands and jq succeeds only if all of its commands succeed', async (t) => {
  const machine = await createMachine(t)
  if ((await machine.bash('command -v jq')).code !== 0) return t.comment('jq is not installed')
  const rowsOf = (program: string) => `jq -nc --arg long "$(printf %0350d 1)" '${program}'`
  const many = rowsOf('range(2100) | {id: "\\($long)\\(.)", type: "token", data: $long}')
  const beside = 'echo 1 | coffer token create --type token --data - --id beside --quiet >/dev/null'
  const load = 'token import - --quiet | jq .created'
  const told = 'Showing 20 of 300. Add --all to list all.\n'
  const first =
    "token list --all -o id | { read -r id; coffer token get $id | jq '.id | length'; cat >/dev/null; }"
  for (const [line, stdout, stderr = '', code = 0] of [
    [`${rowsOf('range(300) | {id: "row-\\(.)", type: "token", data: {n: .}}')} | coffer ${load}`, '300\n'],
    ['coffer token list --all -o ndjson | jq -r .id | sort | uniq | wc -l', '300\n'],
    ['coffer token list -o id | head -1 | xargs -n1 echo', 'row-299\n', told],
    ["coffer token list --size 3 | jq -r '.data[].id' | coffer token delete - --yes --quiet", ''],
    // The deletion reads ids from the pipe. It must not lock the vault while it waits, because the list that writes
    // the ids needs the vault.
    ['{ sleep 1; coffer token list --size 1 -o id; } | coffer token delete - --yes --quiet', ''],
    ['coffer token export | jq -s length', '296\n'],
    // An import that waits for more rows must not block other commands.
    [`{ ${many}; sleep 1; ${beside}; } | coffer ${load}`, '2100\n'],
    // A list whose output nobody reads yet must not block other commands. An export must not block an import that reads
    // the output of this export.
    [`coffer ${first}`, '354\n'],
    [`coffer token export --reveal | jq -c --unbuffered '.id |= "again" + .' | coffer ${load}`, '2397\n'],
    ['coffer token get nobody 2>/dev/null | jq -r .id', '', '', 3],
  ] as const)
    t.match(
      await machine.bash(`set -o pipefail; ${line}`),
      { code, signal: null, stdout: new RegExp(`^${stdout}$`), stderr: new RegExp(`^${stderr}$`) },
      line,
    )
})
