/** One run of the program: the output, the questions, the failures, and the caller whose rights the program uses. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Run, runProcess } from './fake-process.js'
import { createVaultHome, type Home, ruleOf, testHome, testVault } from './home.js'

const CARD = '4242424242424242'

/** Creates a vault with `count` tokens. `tok-1` is the oldest token. */
async function createFilledHome(t: Test, count: number): Promise<Home> {
  const home = await createVaultHome(t)
  for (let n = 1; n <= count; n++)
    await home.createToken({ id: `tok-${n}`, type: 'card', data: { number: CARD } })
  return home
}

t.test('without a terminal, a command prints its answer as one line of JSON and nothing else', async (t) => {
  const home = await createFilledHome(t, 1)
  const { code, stdout, stderr } = await home.run('token get tok-1')
  t.same([code, stderr], [0, ''])
  t.equal(stdout.split('\n').length, 2)
  t.match(JSON.parse(stdout), { id: 'tok-1', data: { number: 'XXXXXXXXXXXX4242' } })
  t.equal((await home.run('token delete tok-1 --yes')).stdout, '', 'a result without content prints nothing')
})

t.test('data is shown in plaintext only on request, in every output format', async (t) => {
  const home = await createFilledHome(t, 1)
  for (const words of ['token get tok-1', 'token list'])
    for (const output of ['json', 'ndjson', 'table', 'csv']) {
      const line = `${words} --output ${output}`
      const masked = await home.run(line)
      t.notMatch(masked.stdout + masked.stderr, CARD, line)
      t.match(masked.stdout, line === 'token list --output table' ? 'visa •••• 4242' : 'XXXXXXXXXXXX4242')
      t.match((await home.run(`${line} --reveal`)).stdout, CARD, 'revealed')
    }
})

t.test('if there are more pages, a notice follows the first page, unless notices are hidden', async (t) => {
  const home = await createFilledHome(t, 21)
  for (const format of ['id', 'ndjson', 'csv']) {
    const list = (...more: string[]) => home.run(['token', 'list', '-o', format, ...more])
    t.equal((await list()).stderr, 'Showing 20 of 21. Add --all to list all.\n', format)
    for (const more of [['--all'], ['--size', '5'], ['--page', '2'], ['--quiet'], ['--type', 'bank']])
      t.equal((await list(...more)).stderr, '', more.join(' '))
  }
})

t.test(
  'on a terminal, --quiet prints ids only, except if the user asks for one record or creates a key',
  async (t) => {
    const home = await createFilledHome(t, 2)
    const print = async (line: string) => (await home.run(line, { columns: 80 })).stdout
    const ids = (await home.run('token list -o id')).stdout
    t.equal(await print('token list -q'), ids)
    t.equal(await print('token search -q'), ids)
    t.equal(await print('token create --type token --data 1 --id one-more -q'), 'one-more\n')
    t.match(await print('token get one-more -q'), /type: +token/)
    t.match(await print('token list -q -o table'), 'token')
    t.match(await print('app create --name a --type private --permission token:read -q'), 'key:')
  },
)

t.test(
  'the notice for an empty list says what to do next, and mentions filters only if filters were given',
  async (t) => {
    const home = await createVaultHome(t)
    const say = async (line: string) => (await home.run(line, { columns: 80 })).stderr.replaceAll('\n', ' ')
    t.equal(await say('token list'), 'No tokens yet. Create one: coffer token create --help ')
    await home.createToken({ id: 'card-1', type: 'card', data: { number: CARD } })
    const search = 'No token matches. Search finds data by search indexes only: coffer help search '
    for (const [line, notice] of [
      ['token list --type bank', 'No token matches these filters. '],
      ['token search data:4242', search],
      ['app list', 'No apps yet. Create one: coffer app create --help '],
      ['token list --quiet --type bank', ''],
    ] as const)
      t.equal(await say(line), notice, line)
    t.match(await say('token children card-1'), 'Link one: coffer token link PARENT CHILD')
  },
)

testVault('for a token without a mask, a notice says how to show its data', async (t, home) => {
  const say = async (line: string, options = {}) => (await home.run(line, { columns: 80, ...options })).stderr
  home.write('body.json', '{"id":"bare","type":"token","data":"text"}')
  const made = 'The data has no mask, so it is not shown. Show it with:\ncoffer token get bare --reveal\n'
  t.equal(await say('token create --file body.json'), made)
  t.match(await say('token get bare'), 'Show it with --reveal.')
  t.equal((await home.run('token get bare')).stderr, '', 'programs get no notice')
})

testVault('a notice says how to show plaintext only if the caller may see plaintext', async (t, home) => {
  const stdin = (id: string) =>
    home.write(`${id}.json`, `{"id":"${id}","type":"card","data":{"number":"${CARD}"}}`)
  const keyOf = async (name: string, transform: 'reveal' | 'mask') => {
    const rule = ruleOf(transform, { permissions: ['token:create', 'token:read', 'token:update'] })
    return { COFFER_API_KEY: (await home.createApp({ name, rules: [rule] })).key }
  }
  const [reveals, masks] = [await keyOf('reveals', 'reveal'), await keyOf('masks', 'mask')]
  for (const [id, env, told] of [
    ['by-owner', {}, '• masked. Show it with: coffer token get by-owner --reveal'],
    ['by-agent', { COFFER_NO_REVEAL: '1' }, '• masked.'],
    ['by-one', reveals, '• masked. Show it with: coffer token get by-one'],
    ['by-other', masks, '• masked.'],
  ] as const) {
    const options = { columns: 100, env }
    const create = ['token', 'create', '--file', stdin(id)]
    t.equal((await home.run(create, options)).stderr, `${told}\n`, id)
    const update = ['token', 'update', id, '--metadata', 'a=b']
    t.equal((await home.run(update, options)).stderr, `${told}\n`, `${id} has the same notice after a change`)
  }
  t.equal((await home.run('token get by-other', { columns: 100, env: masks })).stderr, '• masked.\n')
  t.equal((await home.run('token get by-one', { columns: 100, env: reveals })).stderr, '! in plaintext\n')
  await home.json('config set no_reveal true')
  t.equal(
    (await home.run('token get by-owner', { columns: 100 })).stderr,
    '• masked.\n',
    'the setting no_reveal removes the advice',
  )
})

t.test('--all reads all pages, in every output format', async (t) => {
  const home = await createFilledHome(t, 7)
  const ids = [7, 6, 5, 4, 3, 2, 1].map((n) => `tok-${n}`)
  const all = ['token', 'list', '--all', '--size', '3']
  t.equal((await home.run([...all, '--output', 'id'])).stdout, `${ids.join('\n')}\n`)
  const lines = (await home.run([...all, '--output', 'ndjson', '--fields', 'id'])).stdout
  t.equal(lines, ids.map((id) => `{"id":"${id}"}\n`).join(''))
  const list = await home.json(all)
  t.same(
    list.data.map(({ id }: { id: string }) => id),
    ids,
  )
  t.same(list.pagination, { total_items: 7, page_number: 1, page_size: 7, total_pages: 1 })
  t.match((await home.run([...all, '--output', 'table'])).stdout, /tok-7[\s\S]*tok-1/)
  t.same((await home.json('token list --all --type bank')).data, [])
})

t.test(
  'if the reader closes the output, the command ends silently, and other errors of the output are reported',
  async (t) => {
    const home = await createFilledHome(t, 2)
    const lines = 'token list,token list --all -o ndjson,token --help,--version,completion bash'
    for (const line of lines.split(','))
      t.same(await home.run(line, { stdoutFailure: 'EPIPE' }), { code: 0, stdout: '', stderr: '' }, line)
    const full = await home.run('token list', { stdoutFailure: 'ENOSPC' })
    t.match(full, { code: 1, stderr: 'error: The output could not be written (ENOSPC).\n' })
    t.match(await home.run('token get no-such', { stderrFailure: 'ENOSPC' }), { code: 3, stderr: '' })
  },
)

t.test('a command that deletes asks first, and its question names what is lost', async (t) => {
  const home = await createFilledHome(t, 2)
  const answer = (keys: string) =>
    home.run('token delete tok-1', { columns: 100, answers: [['Continue?', keys]] })
  const nobody = await home.run('token delete tok-1')
  t.match(nobody, { code: 2, stderr: 'error: --yes is missing, and prompts are not possible here.\n' })
  const refused = await answer('n\r')
  t.match(refused, { code: 130, stderr: 'This deletes the data of token tok-1. Continue?' })
  t.match(refused.stderr, /Nothing was changed\.\n$/)
  t.notMatch(refused.stderr, 'error:', 'declining is not an error')
  t.equal((await answer('\r')).code, 130, 'no is the default')
  t.equal((await home.json('token list')).pagination.total_items, 2)
  t.equal((await answer('y\r')).code, 0)
  t.equal((await home.run('token delete tok-2', { env: { COFFER_YES: '1' } })).code, 0)
  t.equal((await home.json('token list')).pagination.total_items, 0)
})

t.test('with a key, a command acts as the application of the key', async (t) => {
  const home = await createFilledHome(t, 1)
  const { key, id } = await home.createApp({ permissions: ['token:read'] })
  const env = { COFFER_API_KEY: key }
  t.equal((await home.json('app whoami', { env })).id, id)
  t.equal((await home.json('app whoami --api-key-stdin', { stdin: `${key}\n` })).id, id)
  const masked = await home.json('token get tok-1 --reveal', { env })
  t.equal(masked.data.number, 'XXXXXXXXXXXX4242', 'only the owner can use --reveal')
  const denied = await home.run('token delete tok-1 --yes', { env })
  t.match(denied, { code: 4, stderr: 'token:delete' })
  const wrong = await home.run('token list', { env: { COFFER_API_KEY: 'key_wrong' } })
  t.match(wrong, { code: 4, stderr: 'API key' })
})

testVault('commands for the owner are refused with an API key and change nothing', async (t, home) => {
  const { key } = await home.createApp({ permissions: ['token:read'] })
  const stderr = /Only the owner of the vault can do this, and an API key was given.*unset/
  const refused = { code: 4, stdout: /^$/, stderr }
  const some = ['config set public_url https://a.example', 'vault backup b', 'vault keys list', 'log verify']
  for (const line of [...some, 'vault rekey --yes', 'seed export --reveal', 'vault status', 'vault verify'])
    t.match(await home.run(line, { env: { COFFER_API_KEY: key } }), refused, line)
  t.match(await home.run('vault backup b --api-key-stdin', { stdin: `${key}\n` }), refused)
  await home.run('profile set agent api-key', { stdin: key })
  t.match(await home.run('vault backup b --profile agent'), refused)
  const { file } = await home.json('vault backup b', { env: { COFFER_API_KEY: '' } })
  t.equal(file, join(home.place, 'b'))
})

testVault(
  'vault backup says how to open the backup, and generated tokens are printed like a list',
  async (t, home) => {
    t.match(
      (await home.run('vault backup b')).stderr,
      /To open the backup, you need a key file or passphrase/,
    )
    const made = await home.run('token generate --type card --count 2 --seed 7', { columns: 80 })
    t.match(made.stdout, /^id +type +shows +created *\n/)
    t.equal((await home.run('token list', { columns: 80 })).stdout.split('\n')[0], made.stdout.split('\n')[0])
  },
)

testVault('control characters in data never reach the terminal', async (t, home) => {
  const data = '\u001b[2J\u202eevil'
  await home.createToken({ id: 'evil', data, mask: '{{ data }}', metadata: { a: '\u0007\u009b31m' } })
  for (const line of ['token list', 'token get evil', 'token get evil --output json']) {
    const { stdout } = await home.run(line, { columns: 160 })
    t.notMatch(stdout, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/, line)
  }
  t.equal((await home.json('token get evil')).data, data, 'the JSON for programs contains the unchanged text')
})

testVault('--all requests smaller pages if a page is too large', async (t, home) => {
  const data = 'x'.repeat(1_000_000)
  for (let n = 1; n <= 18; n++) await home.createToken({ id: `tok-${n}`, data })
  t.match(await home.run('token list --size 18 --reveal'), {
    code: 2,
    stdout: /^$/,
    stderr: 'limit of 16 MiB',
  })
  const ids = Array.from({ length: 18 }, (_, at) => `tok-${18 - at}\n`)
  const all = await home.run('token list --all --reveal --output id --size 18')
  t.match(all, { code: 0, stdout: ids.join('') })
})

testVault(
  'every kind of failure has its exit code, its message and its problem document',
  async (t, home) => {
    const body = '{"id":"mine","type":"token","data":1}'
    await home.json('token create', { stdin: body })
    for (const [words, stdin, exit, status, type] of [
      [['token', 'nonsense'], '', 2, 400, 'usage'],
      [['token', 'create'], '', 2, 400, 'usage'],
      [['token', 'create'], '{', 2, 400, 'validation'],
      [['token', 'create'], '{"type":"card","data":{"number":"1"}}', 2, 400, 'validation'],
      [['token', 'list', '--size', '0'], '', 2, 400, 'validation'],
      [['token', 'create'], `{"type":"token","data":"${'x'.repeat(1024 * 1024)}"}`, 2, 413, 'too-large'],
      [['token', 'get', 'none'], '', 3, 404, 'not-found'],
      [['token', 'list', '--api-key-stdin'], 'key_none\n', 4, 401, 'unauthenticated'],
      [['token', 'create'], body, 5, 409, 'conflict'],
      [['token', 'list', '--vault', 'none'], '', 6, 503, 'vault-missing'],
      [['token', 'list', '--key-file', '/dev/null'], '', 2, 400, 'usage'],
    ] as const) {
      const inWords = await home.run(words, { stdin })
      t.match(inWords, { code: exit, stdout: /^$/, stderr: /^error: [^{]/ }, words.join(' '))
      const outcome = await home.run([...words, '--output', 'json'], { stdin })
      t.same([outcome.code, outcome.stdout], [exit, ''])
      t.equal(outcome.stderr.trimEnd().split('\n').length, 1, 'one line')
      const problem = JSON.parse(outcome.stderr)
      t.match(problem, {
        type: `urn:coffer:problem:${type}`,
        status,
        title: String,
        instance: /^[0-9a-f]{12}$/,
      })
      // The message in words can end differently from the problem document, because only the message says what to do.
      const said = type === 'not-found' ? 'No token ' : problem.detail
      t.ok(inWords.stderr.includes(said), 'the message contains the text of the problem')
    }
  },
)

testVault('a validation failure names every property as the person typed it', async (t, home) => {
  const data = { number: '4242424242424243', expiration_month: 13, extra: 1 }
  const stdin = JSON.stringify({ type: 'card', data, mask: { a: '{{ data | nope }}' } })
  const inWords = await home.run('token create', { stdin })
  const first = /^error: The input has 4 errors:\n {2}data\.number: must be a string of 12 to 19 digits/
  t.match(inWords, { code: 2, stderr: first })
  const problem = JSON.parse((await home.run('token create --output json', { stdin })).stderr)
  const paths = ['data.expiration_month', 'data.extra', 'data.number', 'mask.a']
  t.same(Object.keys(problem.errors).sort(), paths)
  for (const path of paths) t.match(inWords.stderr, `\n  ${path}: `)
  const one = await home.run('token list --size 1000')
  t.equal(one.stderr, 'error: size: must be at most 100\n', 'the text is not repeated')
})

testVault('impossible settings are refused, and the error names their source', async (t, home) => {
  for (const [env, message] of [
    [{ COFFER_OUTPUT: 'xml' }, 'COFFER_OUTPUT must be one of table, json, ndjson, id, csv, value.'],
    [{ COFFER_COLOR: 'pink' }, 'COFFER_COLOR must be one of auto, always, never.'],
    [{ COFFER_PASSPHRASE_FD: 'x' }, '--passphrase-fd takes the number of an open descriptor.'],
    [
      { HOME: '', XDG_CONFIG_HOME: '' },
      'HOME is not set, so Coffer does not know where key files are. Set HOME.',
    ],
  ] as const) {
    const { code, stderr } = await home.run('token list', { env })
    t.same([code, stderr], [2, `error: ${message}\n`])
  }
})

t.test('after an unexpected error, a command prints a reference and no internals', async (t) => {
  const { code, stdout, stderr } = await runProcess(
    async (process) => {
      const { main } = await import('../../src/cli/main.js')
      const cwd = () => {
        throw new TypeError('secret internals')
      }
      return main({ ...process, cwd })
    },
    { words: ['token', 'list'], env: { HOME: '/tmp', NO_COLOR: '1' } },
  )
  t.same([code, stdout], [1, ''])
  t.match(stderr, /^error: Something went wrong on our side\. Reference: [0-9a-f]{12}\n$/)
})

testHome('an interrupt while the command is still loading also ends it', async (t, home) => {
  for (const words of [['init'], ['serve', '--ephemeral', '--port', '0']])
    t.match(await home.run(words, { interrupt: AbortSignal.abort() }), { code: 130, stdout: /^$/ })
  t.same(readdirSync(home.place), [])
})

testVault('an interrupt ends a command with exit code 130 and leaves nothing incomplete', async (t, home) => {
  const { code, stderr } = await home.run('token create --type token', { columns: 80, interruptAt: '? data' })
  t.match({ code, stderr }, { code: 130, stderr: /Interrupted\.\n$/ })
  t.notMatch(stderr, 'error:')
  t.equal((await home.json('token list')).pagination.total_items, 0)
})

testHome('flags decide whether an error has colours, and whether it is text or JSON', async (t, home) => {
  const env = { NO_COLOR: '', TERM: 'xterm' }
  const fail = async (line: string, options: Partial<Run> = {}) =>
    (await home.run(line, { ...options, env })).stderr
  t.match(await fail('token list --color never', { columns: 80 }), /^error: /)
  t.match(await fail('token list --color always -o table'), /^\u001b\[31m/)
  t.match(
    await fail('token list --sise 5', { columns: 80 }),
    /^\u001b\[31m/,
    'an error of parsing has colours too',
  )
  t.match(
    await fail('token list --sise 5 -o table'),
    /^error: /,
    'the table format prints words without a terminal too',
  )
  for (const asked of ['-o json', '-ojson', '--output json', '--output=ndjson', '--json'])
    t.match(await fail(`token list --sise 5 ${asked}`, { columns: 80 }), /^\{\s+"type"|^\{"type"/, asked)
})

testVault('--json means --output json, and each short flag means its long flag', async (t, home) => {
  const list = (flag: string) => home.run(`token list ${flag}`, { columns: 80 })
  const json = await list('--json')
  t.match(json.stdout, /^\{\n {2}"pagination"/)
  t.equal((await list('-o json')).stdout, json.stdout)
  t.equal((await list('-q')).stderr, '')
  await home.createToken({ id: 'mine' })
  t.equal((await home.run('token delete mine -y')).code, 0)
})

testVault(
  'a closed terminal ends a command like Ctrl-C, so a backup leaves no temporary file',
  async (t, home) => {
    await home.createToken({ type: 'token', data: 1 })
    const stop = new AbortController()
    const backup = home.run('vault backup b', { interrupt: stop.signal, signal: 'SIGHUP' })
    const isBegun = () => readdirSync(home.place).some((name) => name.startsWith('b.tmp-'))
    while (!isBegun()) await new Promise(setImmediate)
    stop.abort()
    t.match(await backup, { code: 130 })
    t.notOk(readdirSync(home.place).some((name) => name.startsWith('b')))
  },
)
