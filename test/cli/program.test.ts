import t from 'tap'
import { GROUPS } from '../../src/cli/commands/help/overview.js'
import { TOPIC_NAMES } from '../../src/cli/context.js'
import { listSummaries } from '../../src/cli/program.js'
import { ALL_SETTINGS } from '../../src/global-flags.js'
import { registry } from '../../src/operations/all.js'
import { createHome, testHome, testVault } from './home.js'

/** Joins the lines of wrapped help. */
const unfold = (text: string) => text.replaceAll(/\s+/g, ' ')

testHome(
  'the help of each operation has examples, permissions and the equivalent request',
  async (t, home) => {
    for (const definition of registry.routed) {
      const { name, summary, examples, access, endpoint, details = '' } = definition
      const { permissions, isAnyEnough, keyOf } = access
      const command = definition.cli?.form?.command ?? name
      const words = command.split(' ')
      const { code, stdout, stderr } = await home.run([...words, '--help'])
      const { method, path, parameters } = endpoint
      const inPath = definition.positionals.filter((each) => parameters.includes(each))
      t.equal(code, 0, `${name} --help succeeds`)
      t.equal(stderr, '')
      t.match(stdout, `Usage: coffer ${command}`)
      for (const parameter of inPath) t.match(stdout, new RegExp(`<${parameter.replaceAll('_', '-')}(...)?>`))
      for (const text of [summary, details, ...examples])
        t.ok(unfold(stdout).includes(unfold(text)), `${name}: ${text.slice(0, 60)}`)
      const key = keyOf === undefined ? 'any valid key' : `the key of a ${keyOf} application`
      const needed = permissions.join(isAnyEnough ? ' or ' : ', ') || `none; ${key}`
      t.match(stdout, `Permissions: ${needed}\n`)
      t.match(stdout.replaceAll(/\s+/g, ' '), `HTTP: ${method} ${path} `)
      t.equal((await home.run(['help', ...words])).stdout, stdout, `coffer help ${name} prints the same help`)
    }
  },
)

t.test('help of token create has every flag, and says which are required or repeatable', async (t) => {
  const text = unfold((await createHome(t).run('token create --help')).stdout)
  for (const flag of [
    '--id <text> An id, or an expression for one; default: a random UUID.',
    '--data <json> The value to store: any JSON. (required without --token-intent-id or --encrypted)',
    '--container <text> A container of the token, such as /pci/high/. (repeatable)',
    '--metadata <key=value> Data that is not secret. (repeatable)',
    '(also --no-deduplicate-token)',
    '--file <file> the body as JSON, or a body on each line',
    'The command stops at the first line that is refused.',
    'Put nothing sensitive into the id',
    'Put nothing sensitive into metadata',
  ])
    t.ok(text.includes(flag), flag)
})

t.test('every example of an operation contains the command of that operation', async (t) => {
  for (const { name, cli: { form } = {}, examples } of registry.operations)
    for (const example of examples) {
      t.match(example, `coffer ${form?.command ?? name}`)
      if (form !== undefined) t.match(example, `--${form.flag}`)
    }
})

testHome('without arguments, the program and its nouns list their commands', async (t, home) => {
  const top = await home.run([])
  t.equal(top.code, 0)
  const grouped = Object.values(GROUPS).flat()
  const names = listSummaries(registry).map(({ name }) => name)
  const inNone = ['help', 'version']
  t.same([...grouped, ...inNone].sort(), names.filter((name) => !name.includes(' ')).sort())
  for (const word of [...grouped, ...Object.keys(GROUPS), ...TOPIC_NAMES]) t.match(top.stdout, word)
  t.ok(top.stdout.trimEnd().split('\n').length <= 30, 'the help fits on one screen')
  for (const line of top.stdout.split('\n')) t.ok(line.length <= 80 && !line.includes('…'), line)
  const narrow = (await home.run([], { columns: 60 })).stdout
  for (const line of narrow.split('\n')) t.ok(line.length <= 60 && !line.includes('…'), line)
  const words = (text: string) => new Set(text.split(/[\s|]+/))
  for (const word of words(top.stdout)) t.ok(words(narrow).has(word), `${word} is not broken at 60 columns`)
  const flags = await home.run(['help', 'flags'])
  for (const { flag } of ALL_SETTINGS) t.match(flags.stdout, flag)
  t.equal((await home.run(['--help'])).stdout, top.stdout)
  t.equal((await home.run(['help'])).stdout, top.stdout)
  const noun = await home.run(['token'])
  t.equal(noun.code, 0)
  for (const verb of ['create', 'list', 'get <id...>', 'update <id...>', 'delete <id...>'])
    t.match(noun.stdout, `  ${verb}`)
  t.notMatch(noun.stdout, '--passphrase-fd', 'options that every command has are described in one place only')
})

testHome(
  'each noun has a manual page, and no text in the page is taken for a roff request',
  async (t, home) => {
    const page = (await home.run(['help', 'token', '--man'])).stdout
    t.match(page, /^\.TH COFFER-TOKEN 1 /)
    for (const text of ['.SS coffer token create [options]', '.B \\-\\-type <text>', 'coffer token list'])
      t.ok(page.includes(text), text)
    for (const line of page.split('\n')) t.match(line, /^(?!\.)|^\.(TH|SH|SS|TP|B|PP|nf|fi)( |$)/)
    const whole = (await home.run(['help', '--man'])).stdout
    for (const { name } of registry.nouns)
      t.ok(whole.includes(`coffer\\-${name.replaceAll('-', '\\-')}(1)`), name)
    t.match(whole, '.SH EXIT STATUS')
  },
)

testHome('help is wrapped to the width of the terminal', async (t, home) => {
  const linesOf = async (noun: string, columns: number) => {
    const { stdout } = await home.run(`${noun} --help`, { columns })
    return stdout.slice(0, stdout.indexOf('Examples:')).trim().split('\n')
  }
  for (const line of await linesOf('token list', 60)) t.ok(line.length <= 60, line)
  const wide = await linesOf('token import', 100)
  const details = wide.slice(wide.findIndex((line) => line.startsWith('A row is')))
  for (const line of details) t.ok(line.length <= 100, line)
  for (const line of details.slice(0, -1)) t.ok(line.length > 80, `${line} uses the width`)
})

testHome('misspelled words and flags get a suggestion, and no command runs', async (t, home) => {
  for (const [line, message] of [
    ['token constructor', "Unknown command 'constructor'. See: coffer token --help"],
    ['__proto__ toString', "Unknown command '__proto__'. See: coffer --help"],
    ['tokn list', "Unknown command 'tokn' (Did you mean token?)"],
    ['token lsit', "Unknown command 'lsit' (Did you mean list?)"],
    ['token list --szie 5', "Unknown option '--szie' (Did you mean --size?)"],
    ['token list --outptu json', "Unknown option '--outptu' (Did you mean --output?)"],
    ['app whoami --szie=secret', "Unknown option '--szie'. See: coffer app whoami --help"],
    ['app whoami -xsecret', "Unknown option '-x'. See: coffer app whoami --help"],
    ['log list --operation delete', "Unknown option '--operation'. See: coffer log list --help"],
    ['token frobnicate', "Unknown command 'frobnicate'. See: coffer token --help"],
    ['token list --no-all', "Unknown option '--no-all'. See: coffer token list --help"],
    [
      'token update x --reveal',
      "Unknown option '--reveal'. Commands that write always print masked data. To see plaintext: coffer token get ID --reveal",
    ],
    ['token search a --query b', 'Give query as an argument or as --query, not both.'],
    ['help token creat', "Unknown command 'creat' (Did you mean create?)"],
    ['token get', "Missing required argument 'id'. See: coffer token get --help"],
    ['token search a b', "Too many arguments for 'search'. Expected 1 argument but got 2."],
    ['list', "Unknown command 'list'. Did you mean: coffer token list?"],
    ['export', "Unknown command 'export'. Did you mean: coffer token export?"],
    ['create app', "Unknown command 'create'. Did you mean: coffer app create?"],
    ['vault rotate', "Unknown command 'rotate'. Did you mean: coffer vault rekey?"],
    ['restore x', "Unknown command 'restore'. Did you mean: coffer vault restore?"],
    ['find x', "Unknown command 'find'. Did you mean: coffer token search?"],
    ['app rm x', "Unknown command 'rm'. Did you mean: coffer app delete?"],
    ['audit', "Unknown command 'audit'. Did you mean: coffer log list?"],
    ['log audit', "Unknown command 'audit'. See: coffer log --help"],
    [
      'token create 4242424242424242',
      "Too many arguments for 'create'. Expected 0 arguments but got 1. Give the data on standard input with --data -, or as --data @FILE.",
    ],
    ['token list --size', "Option '--size <number>' argument missing."],
    ['token list --size 1 --size 2', '--size may be given only once.'],
    ['token create --metadata x', '--metadata takes key=value or a JSON object: customer=42.'],
    ['token create --metadata a=1 --metadata a=2', '--metadata has a key twice.'],
    ['token create --metadata __proto__=1', '--metadata: __proto__ is not allowed as a key.'],
  ] as const) {
    t.same(await home.run(line.split(' ')), { code: 2, stdout: '', stderr: `error: ${message}\n` }, line)
  }
})

testHome('help topics explain exit codes, variables and expressions', async (t, home) => {
  for (const [topic, lines] of [
    ['exit-codes', ['    0  done', '    3  not found (not-found, not-emulated)', '  130  interrupted']],
    ['environment', ['COFFER_VAULT', 'COFFER_OUTPUT', 'COFFER_PASSPHRASE_FD', 'NO_COLOR']],
    ['expressions', ['reveal_last: count']],
  ] as const) {
    const { stdout } = await home.run(`help ${topic}`)
    for (const line of lines) t.match(stdout, line)
    t.notMatch(stdout, 'undefined')
  }
})

testVault('short flags and common synonyms are accepted', async (t, home) => {
  const print = async (line: string) => (await home.run(line)).stdout
  for (const [words, same] of [
    ['token get -h', 'token get --help'],
    ['token help get', 'token get --help'],
    ['help token get', 'token get --help'],
    ['token help', 'token -h'],
    ['-V', '--version'],
    ['version', '--version'],
  ] as const)
    t.equal(await print(words), await print(same), words)
  t.match(await print('profile help set'), 'Usage: coffer profile set')
  await home.createToken({ id: 'made', data: { a: [1] }, mask: '{{ data }}' })
  for (const [field, value] of [
    ['id', 'made\n'],
    ['data.a', '[1]\n'],
    ['expires_at', 'null\n'],
  ] as const)
    t.equal(await print(`token get made -o value --fields ${field}`), value)
  const two = await home.run('token list --fields id,type -o value')
  t.match(two, { code: 2, stderr: 'error: --output value prints one field: add --fields NAME.\n' })
})

testVault('for words that are almost a command, the error names that command', async (t, home) => {
  for (const [line, meant] of [
    ['logs', 'coffer log list'],
    ['tokens', 'coffer token list'],
    ['request list', 'coffer control request list'],
    ['control requests', 'coffer control request list'],
    ['control request list', 'coffer serve --test-controls'],
    ['token list --url http://localhost:1', 'A command to a server needs an API key'],
  ] as const)
    t.match((await home.run(line)).stderr, meant, line)
})
