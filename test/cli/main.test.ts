import { readdirSync } from 'node:fs'
import t from 'tap'
import { type Run, runProcess } from './fake-process.js'
import { createHome, createVaultHome } from './home.js'

t.test('every kind of failure has its exit code, its words, and its problem', async (t) => {
  const home = await createVaultHome(t)
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
    // For a person, the words also say what to do.
    const said = type === 'not-found' ? 'There is no token with this id. List them' : problem.detail
    t.ok(inWords.stderr.includes(said), 'the words are those of the problem')
  }
})

t.test('a validation failure names every property, as it was typed', async (t) => {
  const home = await createVaultHome(t)
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
  t.equal(one.stderr, 'error: size: must be at most 100\n', 'what is said once is not said again')
})

t.test('settings that are impossible are refused by the name they came by', async (t) => {
  const home = await createVaultHome(t)
  for (const [env, message] of [
    [{ COFFER_OUTPUT: 'xml' }, 'COFFER_OUTPUT must be one of table, json, ndjson, id, csv, value.'],
    [{ COFFER_COLOR: 'pink' }, 'COFFER_COLOR must be one of auto, always, never.'],
    [{ COFFER_PASSPHRASE_FD: 'x' }, '--passphrase-fd takes the number of an open descriptor.'],
    [{ HOME: '', XDG_CONFIG_HOME: '' }, 'HOME is not set, so there is no place for key files.'],
  ] as const) {
    const { code, stderr } = await home.run('token list', { env })
    t.same([code, stderr], [2, `error: ${message}\n`])
  }
})

t.test('what nobody expected is a reference and no internals', async (t) => {
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

t.test('an interrupt that comes while the command is loaded ends it too', async (t) => {
  const home = createHome(t)
  for (const words of [['init'], ['serve', '--ephemeral', '--port', '0']])
    t.match(await home.run(words, { interrupt: AbortSignal.abort() }), { code: 130, stdout: '' })
  t.same(readdirSync(home.place), [])
})

t.test('an interrupt ends a run with 130 and leaves nothing half done', async (t) => {
  const home = await createVaultHome(t)
  const { code, stderr } = await home.run('token create --type token', { columns: 80, interruptAt: '? data' })
  t.match({ code, stderr }, { code: 130, stderr: /Interrupted\.\n$/ })
  t.notMatch(stderr, 'error:')
  t.equal((await home.json('token list')).pagination.total_items, 0)
})

t.test('an error has the colours that the flags say', async (t) => {
  const home = createHome(t)
  const env = { NO_COLOR: '', TERM: 'xterm' }
  const fail = async (line: string, options: Partial<Run> = {}) =>
    (await home.run(line, { ...options, env })).stderr
  t.match(await fail('token list --color never', { columns: 80 }), /^error: /)
  t.match(await fail('token list --color always -o table'), /^\u001b\[31m/)
  t.match(await fail('token list --sise 5', { columns: 80 }), /^\u001b\[31m/, 'an error of parsing too')
  t.match(await fail('token list --sise 5 -o table'), /^error: /, 'in words without a terminal too')
  for (const asked of ['-o json', '-ojson', '--output json', '--output=ndjson', '--json'])
    t.match(await fail(`token list --sise 5 ${asked}`, { columns: 80 }), /^\{\s+"type"|^\{"type"/, asked)
})

t.test('--json means --output json, and each short flag its long one', async (t) => {
  const home = await createVaultHome(t)
  const list = (flag: string) => home.run(`token list ${flag}`, { columns: 80 })
  const json = await list('--json')
  t.match(json.stdout, /^\{\n {2}"pagination"/)
  t.equal((await list('-o json')).stdout, json.stdout)
  t.equal((await list('-q')).stderr, '')
  await home.createToken({ id: 'mine' })
  t.equal((await home.run('token delete mine -y')).code, 0)
})
