import '../support/cheap-scrypt.js'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type ApplicationType, permissionsOf } from '../../src/domain/access/permissions.js'
import { PROGRAM } from '../support/process.js'
import type { Answer } from './fake-process.js'
import { createHome, createVaultHome, ruleOf, testHome, testVault } from './home.js'

const PASSPHRASE = 'correct horse battery staple'

testHome('init creates a private vault, and says what to do next', async (t, home) => {
  const { stdout, stderr } = await home.run('init --name Acme')
  const made = JSON.parse(stdout)
  const directory = join(home.place, '.coffer')
  t.match(made, { vault: /^[\da-f]{32}$/, directory, tenant: { name: 'Acme', id: String } })
  t.equal(made.key_file, join(home.place, 'config', 'coffer', 'keys', `${made.vault}.key`))
  t.match(stderr, 'Keep a copy of the key file in a safe place')
  t.match(stderr, 'coffer token create')
  for (const [path, mode] of [
    ['.coffer', 0o700],
    ['.coffer/vault.json', 0o600],
    ['config/coffer/keys', 0o700],
    [`config/coffer/keys/${made.vault}.key`, 0o600],
  ] as const)
    t.equal(statSync(join(home.place, path)).mode & 0o777, mode, path)
  const quiet = await createHome(t).run('vault init --quiet')
  t.equal(quiet.stderr, '', 'vault init does the same and can be quiet')
})

testVault('init never changes an existing vault or key', async (t, home) => {
  const taken = {
    code: 5,
    stdout: '',
    stderr: `error: There is already a vault in ${home.place}/.coffer. Choose another directory: --vault DIRECTORY\n`,
  }
  const header = readFileSync(join(home.place, '.coffer/vault.json'), 'utf8')
  for (const line of ['init', 'vault init --name other', 'init --vault .coffer'])
    t.same(await home.run(line), taken)
  t.equal(readFileSync(join(home.place, '.coffer/vault.json'), 'utf8'), header)
  home.write('my.key', 'precious')
  const key = await home.run('init --vault second --key-file my.key')
  t.match(key, { code: 5, stderr: 'it may be the key of another vault' })
  t.equal(readFileSync(join(home.place, 'my.key'), 'utf8'), 'precious')
  t.equal(
    (await home.run('init --vault second')).code,
    0,
    'the refused init left no file that would prevent the next one',
  )
  for (const name of [' ', 'a\u001b[31mb']) {
    const refused = await home.run(['init', '--vault', 'third', '--name', name])
    t.match(refused, { code: 2, stderr: /^error: --name: / })
  }
})

testHome('a vault can be in another folder, and is found from the folders below it', async (t, home) => {
  t.equal((await home.json('init --vault not/yet/there')).directory, join(home.place, 'not/yet/there'))
  t.equal(statSync(join(home.place, 'not/yet')).mode & 0o777, 0o700, 'missing parent folders are created')
  const made = await home.run('init --vault safe --key-file own.key')
  const next = /^Store a card: +echo '(.*)' \| coffer (.*)$/m.exec(made.stderr) ?? []
  t.equal(next[2], 'token create --vault safe --key-file own.key')
  await home.json(next[2]!, { stdin: next[1]! })
  const own = await home.json('vault status --vault safe --key-file own.key')
  t.equal(own.directory, join(home.place, 'safe'))
  const env = { COFFER_VAULT: 'safe', COFFER_KEY_FILE: 'own.key' }
  const status = await home.json('vault status', { env })
  t.equal(status.tokens, 1, 'variables have the same effect as the flags, and the next step can be pasted')
  const here = await createVaultHome(t)
  cpSync(join(here.place, '.coffer'), join(here.place, 'deep/er/.none'), { recursive: true })
  const { directory } = await here.json('vault status', { cwd: join(here.place, 'deep/er') })
  t.equal(directory, join(here.place, '.coffer'))
})

testVault('vault status shows where the vault is, its keys and its contents', async (t, home) => {
  await home.createToken()
  t.match(await home.json('vault status'), {
    directory: join(home.place, '.coffer'),
    vault: /^[\da-f]{32}$/,
    ...{ format: 1, created: /^\d{4}-.*\+00:00$/, tenant: { name: 'default' }, tokens: 1, logs: 2 },
    key_slots: [{ id: String, kind: 'key-file', created: String }],
    storage: { journal_bytes: Number },
    reactor_sandbox: { node_permissions: true, no_new_descriptors: Boolean },
  })
  t.match((await home.run('vault status', { columns: 100 })).stdout, /^tokens: +1$/m)
})

t.test('starter applications are created on request, one of each type, with valid keys', async (t) => {
  const { stdout, stderr } = await createHome(t).run(['init', '--starter-apps'], { columns: 100 })
  t.match(stdout, /key_[1-9A-HJ-NP-Za-km-z]{22}/)
  t.match(stderr, 'The keys of the applications are shown only once.')
  const home = createHome(t)
  const { applications } = await home.json('init --starter-apps')
  t.same(Object.keys(applications), ['management', 'private', 'public'])
  for (const [type, { id, key }] of Object.entries<{ id: string; key: string }>(applications)) {
    const known = await home.json('app whoami', { env: { COFFER_API_KEY: key } })
    t.match(known, { id, type })
    const permissions = permissionsOf(type as ApplicationType, { withEffect: true })
    if (type === 'private') t.same(known.rules, [ruleOf('reveal', { permissions })])
    if (type === 'management') t.same(known.permissions, permissions)
    if (type === 'public')
      t.same(known.permissions, [
        'token:create',
        'token:update',
        'token-intent:create',
        '3ds:session:create',
        'apple-pay:create',
        'apple-pay:session',
        'google-pay:create',
        'documents:create',
      ])
  }
})

testHome(
  'init asks for a passphrase twice, and a command can then read it from every source',
  async (t, home) => {
    const type = (...answers: Answer[]) => home.run('init --passphrase', { columns: 100, answers })
    const made = await type(
      ['? New passphrase', 'short\r'],
      ['at least 8 characters', `\u0015${PASSPHRASE}\r`],
      ['? The same again', 'something else\r'],
      ['The two differ. New passphrase', `${PASSPHRASE}\r`],
      ['? The same again', `${PASSPHRASE}\r`],
    )
    t.equal(made.code, 0, made.stderr)
    t.notMatch(made.stdout + made.stderr, /correct|horse|something else/)
    t.match(made.stderr, 'Only the passphrase opens this vault')
    t.notMatch(made.stdout, 'key_file')

    const status = ['vault', 'status', '--fields', 'tokens']
    home.write('pass', `${PASSPHRASE}\nsecond line`)
    home.write('wrong', 'incorrect horse')
    const descriptor = openSync(join(home.place, 'pass'), 'r')
    for (const words of [
      ['--passphrase-file', 'pass'],
      ['--passphrase-fd', String(descriptor)],
      ['--passphrase-command', `cat ${home.place}/pass`],
    ])
      t.same(await home.json([...status, ...words]), { tokens: 0 })
    t.same(await home.json(status, { env: { COFFER_PASSPHRASE_FILE: 'pass' } }), { tokens: 0 })
    const person = (words: string[], ...answers: Answer[]) => home.run(words, { columns: 100, answers })
    const opened = { code: 0, stdout: /^tokens: 0\n$/, stderr: /^((?!horse).)*$/s }
    t.match(await person(status, ['? Passphrase', `${PASSPHRASE}\r`]), opened)
    const wrong: Answer[] = [
      ['? Passphrase', 'wrong horse one\r'],
      ['(tries left: 2)', 'wrong horse two\r'],
    ]
    const last = (text: string): Answer => ['(tries left: 1)', `${text}\r`]
    t.match(await person(status, ...wrong, last(PASSPHRASE)), opened)
    const passwd = ['vault', 'passwd', '--new-passphrase-file', 'pass']
    t.equal(
      (await person(passwd, ...wrong, last(PASSPHRASE))).code,
      0,
      'a wrong passphrase is asked for again, even by a command that does not open the vault',
    )
    const third = await person(status, ...wrong, last(PASSPHRASE))
    t.equal(
      third.stderr.match(/error: Wrong passphrase\.\n/g)?.length,
      2,
      'each failed try prints one error line',
    )
    t.notMatch(third.stderr, '✔', 'a failed question is not marked with a tick')
    const given = await person(status, ...wrong, last('wrong horse three'))
    t.match(given, { ...opened, code: 6, stdout: /^$/ }, 'twice')

    const needed = 'Give it with --passphrase-file, --passphrase-fd or --passphrase-command.'
    for (const [words, message, code = 6] of [
      [[], `This vault needs a passphrase. ${needed}`],
      [['--passphrase-file', 'wrong'], 'Wrong passphrase.'],
      [['--passphrase-command', 'echo horse; exit 3'], 'The passphrase command failed (exit 3).'],
      [['--passphrase-command', 'kill $$'], 'The passphrase command failed (SIGTERM).'],
      [['--passphrase-command', 'true'], 'The first line of output of the passphrase command is empty.', 2],
    ] as const)
      t.same(await home.run([...status, ...words]), { code, stdout: '', stderr: `error: ${message}\n` })
  },
)

testVault(
  'before a key slot is removed, the command asks a person and says what the removal does not do',
  async (t, home) => {
    await home.json('vault keys add --new-key-file second.key --quiet')
    const [own, second] = (await home.json('vault keys list')) as { id: string }[]
    const remove = (id: string, ...words: string[]) => ['vault', 'keys', 'remove', id, ...words]
    const limit = /older vault\.json or backup can still read the files: only `coffer vault rekey`/
    const [mine, other] = [
      `This command opens the vault with slot ${own!.id}`,
      `Remove the key-file slot ${second!.id}?`,
    ]
    const refused = await home.run(remove(second!.id))
    t.match(refused, { code: 2, stderr: '--yes is missing' })
    const declined = await home.run(remove(second!.id), { columns: 500, answers: [[other, 'n\r']] })
    t.equal(declined.code, 130)
    for (const text of [mine, limit]) t.match(declined.stderr, text)
    t.equal((await home.json('vault keys list')).length, 2, 'no slot was removed')
    const inUse = `Remove the key-file slot ${own!.id}, which is in use?`
    const kept = await home.run(remove(own!.id), { columns: 500, answers: [[inUse, 'n\r']] })
    t.match(kept.stderr, `${mine}, so use another key from now on.`)
    const removed = await home.run(remove(second!.id), { columns: 500, answers: [[other, 'y\r']] })
    t.equal(removed.code, 0)
    t.match(await home.run('token list --key-file second.key'), { code: 7, stderr: 'its slot was removed' })
    t.match(
      await home.run(remove(own!.id)),
      { code: 5, stderr: /last key slot/ },
      'no question is asked if the removal is impossible',
    )
    await home.json('vault keys add --new-key-file third.key --quiet')
    const [, third] = (await home.json('vault keys list')) as { id: string }[]
    const told = await home.run(remove(third!.id, '--yes'))
    t.match(told, { code: 0, stderr: limit }, '--yes prints the warning too')
  },
)

testVault(
  'a new key file is removed if its slot is refused, and an existing key file is kept',
  async (t, home) => {
    home.write('pass', PASSPHRASE)
    await home.json('vault passwd --new-passphrase-file pass --quiet')
    const [key = ''] = readdirSync(join(home.place, 'config/coffer/keys'), { encoding: 'utf8' })
    const other = `'${process.execPath}' '${PROGRAM}' vault keys add --new-key-file other.key`
    // The passphrase command changes the header of the vault after the tested command has read the header.
    const command = `cd '${home.place}' && ${other} --key-file 'config/coffer/keys/${key}' >&2 && cat pass`
    const env = { COFFER_PASSPHRASE_COMMAND: command, HOME: home.place, PATH: process.env.PATH ?? '' }
    const refused = await home.run('vault keys add --new-key-file mine.key', { env })
    t.match(refused, { code: 5, stderr: 'Another process changed the key slots meanwhile' })
    t.notMatch(refused.stderr, 'The new key file is')
    t.same(
      readdirSync(home.place).filter((name) => name.endsWith('.key')),
      ['other.key'],
    )
    t.equal((await home.run('vault keys add --new-key-file other.key')).code, 5)
    t.equal((await home.run('token list --key-file other.key')).code, 0, 'an existing key file is kept')
  },
)

testVault('vault passwd lists the keys that still open the vault after the change', async (t, home) => {
  home.write('pass', PASSPHRASE)
  const [slot] = (await home.json('vault keys list')) as { id: string }[]
  const { code, stderr } = await home.run('vault passwd --new-passphrase-file pass')
  t.equal(code, 0)
  t.equal(
    stderr,
    `These keys still open the vault too: key-file ${slot!.id}. To remove one: coffer vault keys remove SLOT\n`,
  )
})

testHome(
  'a new vault takes its passphrase from a file, and refuses a passphrase that is too short',
  async (t, home) => {
    home.write('short', 'seven77')
    for (const [line, stderr] of [
      ['init --passphrase-file short', 'A passphrase has 8 to 1024 characters.'],
      ['init --passphrase', '--passphrase-file'],
    ] as const)
      t.match(await home.run(line), { code: 2, stderr })
    t.same(readdirSync(home.place), ['short'], 'no vault was created')
  },
)

t.test('each reason why a vault cannot be opened has a specific message and exit code', async (t) => {
  type Spoil = (key: string, header: string, vault: string) => void
  const edit = (path: string, from: RegExp, to: string) =>
    writeFileSync(path, readFileSync(path, 'utf8').replace(from, to))
  const aKeyFileIs =
    /the key file \(.*\.key\) is not a key file\. A key file is one line of text that starts with coffer-key-1\. `coffer init` creates one/
  const isNewer = 'has format 3, and this version of Coffer reads format 1. Use a newer version.'
  for (const [message, code, spoil] of [
    ['Give its path with --key-file FILE.', 6, (key) => renameSync(key, `${key}.bak`)],
    [/This key file is for vault [\da-f]{32}, not for/, 6, (key) => edit(key, /[\da-f]{32}/, 'a'.repeat(32))],
    ['It is the only key of this vault: if it is lost, and', 6, (key) => renameSync(key, `${key}.bak`)],
    ['This is not a key file. A key file is one line', 6, (key) => writeFileSync(key, 'hello\n')],
    [aKeyFileIs, 6, (key) => writeFileSync(key, Buffer.from([0x80, 0xff, 0, 1]))],
    [aKeyFileIs, 6, (key) => writeFileSync(key, '')],
    [aKeyFileIs, 6, (key) => writeFileSync(key, 'x'.repeat(10_000))],
    [/Other users may read .*\.coffer\. Run `chmod 700/, 6, (_, __, vault) => chmodSync(vault, 0o755)],
    [/chmod 600 .*vault\.json/, 6, (_, header) => chmodSync(header, 0o640)],
    [isNewer, 6, (_, header) => edit(header, /"format": ?1/, '"format":3')],
    ['is not readable as JSON', 7, (_, header) => writeFileSync(header, '{')],
    ['changed without the root key', 7, (_, header) => edit(header, /("created": ?")\d{4}/, '$11999')],
  ] as [string | RegExp, number, Spoil][]) {
    const home = createHome(t)
    const { key_file, directory } = await home.json('init')
    spoil(key_file, join(directory, 'vault.json'), directory)
    const { stderr, ...outcome } = await home.run('token list')
    t.same(outcome, { code, stdout: '' }, String(message))
    t.match(stderr, message)
    t.equal(stderr.trimEnd().split('\n').length, 1, `${message} is printed on one line`)
  }
  const home = createHome(t)
  const elsewhere = `${home.place}/nowhere. Create one with: coffer init --vault ${home.place}/nowhere\n`
  for (const [line, place] of [
    ['token list', 'this or a parent directory. Create one with: coffer init\n'],
    ['token list --vault nowhere', elsewhere],
  ] as const)
    t.same(await home.run(line), { code: 6, stdout: '', stderr: `error: There is no vault in ${place}` })
})

testVault('the error about a missing key file lists the keys that can open the vault', async (t, home) => {
  const [own] = readdirSync(join(home.place, 'config/coffer/keys'))
  const lines = ['token list', 'token list --key-file missing.key']
  renameSync(join(home.place, 'config/coffer/keys', own!), join(home.place, 'own.key'))
  const only = 'It is the only key of this vault: if it is lost, and there is no copy, the data is lost.'
  for (const line of lines) t.match((await home.run(line)).stderr, only, line)
  await home.json('vault keys add --key-file own.key --new-key-file second.key --quiet')
  const any = 'If it is lost: each of the 2 key files of this vault opens it.'
  for (const line of lines) t.match((await home.run(line)).stderr, any, line)
  home.write('pass', PASSPHRASE)
  await home.json('vault passwd --key-file own.key --new-passphrase-file pass --quiet')
  const { code, stderr } = await home.run(lines[1]!)
  t.equal(code, 2)
  t.match(stderr, '(missing.key) does not exist. If it is lost: a passphrase opens this vault too')
})

testVault('advice quotes the names of files and columns, so that no shell executes them', async (t, home) => {
  const place = join(home.place, "it's $(x)")
  mkdirSync(place)
  await home.json(['init'], { cwd: place })
  const vault = join(place, '.coffer')
  chmodSync(vault, 0o755)
  const quoted = `'${vault.replace("'", `'\\''`)}'`
  t.match((await home.run('token list', { cwd: place })).stderr, `Run \`chmod 700 ${quoted}\` first.`)
  t.match((await home.run(['doctor'], { cwd: place })).stdout, JSON.stringify(`Run: chmod -R go= ${quoted}`))
  chmodSync(vault, 0o700)
  const { stderr } = await home.run(['token', 'list', '--vault', join(place, 'none')])
  t.match(stderr, `coffer init --vault ${quoted.replace('.coffer', 'none')}`)
  const columns = home.write('columns.csv', "it's $(x),data\n1,2\n")
  const imported = `token import ${columns} --type token`
  const advice = `\n  coffer ${imported} --map 'it'\\''s $(x)='\n`
  t.match((await home.run(imported, { cwd: place })).stderr, advice)
})

testVault('the command that rekey advises for a dropped slot can be pasted', async (t, home) => {
  home.write('pass', PASSPHRASE)
  const env = { COFFER_PASSPHRASE_FILE: 'pass' }
  const add = ['vault', 'keys', 'add', '--passphrase', '--new-passphrase-file', 'pass']
  t.equal((await home.run(add)).code, 0)
  const paste = async (stderr: string, options: object) => {
    const [, words = ''] = /again: coffer (.*)/.exec(stderr) ?? []
    return home.run(words.trim().split(' '), { columns: 200, ...options })
  }
  const byPassphrase = await home.run('vault rekey --yes', { env })
  t.match(await paste(byPassphrase.stderr, { env }), { code: 0, stdout: /key-file/ })
  const [key = ''] = readdirSync(home.place).filter((name) => name.endsWith('.key'))
  const byKey = await home.run(['vault', 'rekey', '--yes', '--key-file', key])
  const answers = ['? New passphrase', '? The same again'].map((asked): Answer => [asked, `${PASSPHRASE}\r`])
  const added = await paste(byKey.stderr, { env: { COFFER_KEY_FILE: key }, answers })
  t.match(added, { code: 0, stdout: /passphrase/ })
})
