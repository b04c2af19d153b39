import t from 'tap'
import { GROUPS } from '../../src/cli/commands/help/overview.js'
import { TOPIC_NAMES } from '../../src/cli/context.js'
import { listSummaries } from '../../src/cli/program.js'
import { ALL_SETTINGS } from '../../src/global-flags.js'
import { registry } from '../../src/operations/all.js'
import { createHome } from './home.js'

/** Help is folded. */
const unfold = (text: string) => text.replaceAll(/\s+/g, ' ')

t.test('the help of every operation has its examples, its permissions and the call it equals', async (t) => {
  const home = createHome(t)
  for (const definition of registry.routed) {
    const { name, summary, examples, permissions, onlyFor, endpoint, details = '' } = definition
    const command = definition.form?.command ?? name
    const words = command.split(' ')
    const { code, stdout, stderr } = await home.run([...words, '--help'])
    const { method, path, parameters } = endpoint
    t.equal(code, 0, `${name} --help ends well`)
    t.equal(stderr, '')
    t.match(stdout, `Usage: coffer ${command}`)
    for (const parameter of parameters.slice(0, -1)) t.match(stdout, `<${parameter.replaceAll('_', '-')}>`)
    for (const parameter of parameters.slice(-1)) t.match(stdout, `<${parameter.replaceAll('_', '-')}...>`)
    for (const text of [summary, details, ...examples])
      t.ok(unfold(stdout).includes(unfold(text)), `${name}: ${text.slice(0, 60)}`)
    t.match(
      stdout,
      `Permissions: ${permissions.length === 0 ? `none; ${onlyFor === undefined ? 'any valid key' : `the key of a ${onlyFor} application`}` : permissions.join(definition.needsOnePermission ? ' or ' : ', ')}\n`,
    )
    t.match(stdout, `HTTP:        ${method} ${path}\n`)
    t.equal((await home.run(['help', ...words])).stdout, stdout, `coffer help ${name} says the same`)
  }
})

t.test('every flag of token create is in its help, with what is required and repeatable', async (t) => {
  const { stdout } = await createHome(t).run(['token', 'create', '--help'], { env: {} })
  const text = stdout.replaceAll(/\s+/g, ' ')
  for (const flag of [
    '--id <text> An id, or an expression for one; default: a random UUID.',
    '--data <json> The value to store: any JSON. (required without --token-intent-id)',
    '--container <text> A container of the token, such as /pci/high/. (repeatable)',
    '--metadata <key=value> Data that is not secret. (repeatable)',
    '--deduplicate-token Return an existing token with the same fingerprint. (also --no-deduplicate-token)',
    '--expires-at <text> When the token expires: M/D/YYYY',
    '--file <file> the whole body as JSON',
  ]) {
    t.ok(text.includes(flag), flag)
  }
  t.match(text, 'Put nothing sensitive into the id')
  t.match(text, 'Put nothing sensitive into metadata')
})

t.test('every example is about its command', async (t) => {
  for (const { name, form, examples } of registry.operations) {
    for (const example of examples) {
      t.match(example, `coffer ${form?.command ?? name}`)
      if (form !== undefined) t.match(example, `--${form.flag}`)
    }
  }
})

t.test('without words the program and its nouns show what there is', async (t) => {
  const home = createHome(t)
  const top = await home.run([])
  t.equal(top.code, 0)
  const grouped = Object.values(GROUPS).flat()
  const names = listSummaries(registry).map(({ name }) => name)
  const inNone = ['help', 'version']
  t.same([...grouped, ...inNone].sort(), names.filter((name) => !name.includes(' ')).sort())
  for (const word of [...grouped, ...Object.keys(GROUPS), ...TOPIC_NAMES]) t.match(top.stdout, word)
  t.ok(top.stdout.trimEnd().split('\n').length <= 30, 'it fits a screen')
  for (const line of top.stdout.split('\n')) t.ok(line.length <= 80 && !line.includes('…'), line)
  const flags = await home.run(['help', 'flags'])
  for (const { flag } of ALL_SETTINGS) t.match(flags.stdout, flag)
  t.equal((await home.run(['--help'])).stdout, top.stdout)
  t.equal((await home.run(['help'])).stdout, top.stdout)
  const noun = await home.run(['token'])
  t.equal(noun.code, 0)
  for (const verb of ['create', 'list', 'get <id...>', 'update <id...>', 'delete <id...>'])
    t.match(noun.stdout, `  ${verb}`)
  t.notMatch(noun.stdout, '--passphrase-fd', 'the options of every command stand in one place')
})

t.test('each noun has a manual page, in which no line is a request by accident', async (t) => {
  const home = createHome(t)
  const page = (await home.run(['help', 'token', '--man'])).stdout
  t.match(page, /^\.TH COFFER-TOKEN 1 /)
  for (const text of ['.SS coffer token create [options]', '.B \\-\\-type <text>', 'coffer token list'])
    t.ok(page.includes(text), text)
  for (const line of page.split('\n')) t.match(line, /^(?!\.)|^\.(TH|SH|SS|TP|B|PP|nf|fi)( |$)/)
  const whole = (await home.run(['help', '--man'])).stdout
  for (const { name } of registry.nouns) t.ok(whole.includes(`coffer\\-${name}(1)`), name)
  t.match(whole, '.SH EXIT STATUS')
})

t.test('help is folded to the width of the terminal', async (t) => {
  const home = createHome(t)
  const detailed = (await home.run('token import --help', { columns: 100 })).stdout
  const details = detailed
    .slice(detailed.indexOf('A row is'), detailed.indexOf('Examples:'))
    .trim()
    .split('\n')
  t.ok(details.length > 2)
  for (const line of details) t.ok(line.length <= 100, line)
  for (const line of details.slice(0, -1)) t.ok(line.length > 80, `${line} is filled`)
  const { stdout } = await home.run('token list --help', { columns: 60 })
  const own = stdout.slice(0, stdout.indexOf('Examples:'))
  t.ok(
    own.split('\n').every((line) => line.length <= 60),
    own,
  )
})

t.test('misspelled words and flags get a suggestion, and nothing runs', async (t) => {
  const home = createHome(t)
  for (const [line, message] of [
    ['token constructor', "Unknown command 'constructor'. See: coffer token --help"],
    ['__proto__ toString', "Unknown command '__proto__'. See: coffer --help"],
    ['tokn list', "Unknown command 'tokn' (Did you mean token?)"],
    ['token creat', "Unknown command 'creat' (Did you mean create?)"],
    ['token lsit', "Unknown command 'lsit' (Did you mean list?)"],
    ['vault staus', "Unknown command 'staus' (Did you mean status?)"],
    ['token list --szie 5', "Unknown option '--szie' (Did you mean --size?)"],
    ['token list --outptu json', "Unknown option '--outptu' (Did you mean --output?)"],
    ['app whoami --szie=secret', "Unknown option '--szie'. See: coffer app whoami --help"],
    ['app whoami -xsecret', "Unknown option '-x'. See: coffer app whoami --help"],
    ['profile use --none', "Unknown option '--none'. See: coffer profile use --help"],
    ['--none', "Unknown option '--none'. See: coffer --help"],
    ['log list --operation delete', "Unknown option '--operation'. See: coffer log list --help"],
    ['token frobnicate', "Unknown command 'frobnicate'. See: coffer token --help"],
    ['token search a --query b', 'Give query as an argument or as --query, not both.'],
    ['help tokn', "Unknown command 'tokn' (Did you mean token?)"],
    ['help token creat', "Unknown command 'creat' (Did you mean create?)"],
    ['zzzzzz', "Unknown command 'zzzzzz'. See: coffer --help"],
    ['token get', "Missing required argument 'id'. See: coffer token get --help"],
    ['token search a b', "Too many arguments for 'search'. Expected 1 argument but got 2."],
    ['tenant use one two', "Too many arguments for 'use'. Expected 1 argument but got 2."],
    ...(['list', 'delete', 'get', 'create', 'export'] as const).map(
      (verb) => [verb, `Unknown command '${verb}'. Did you mean: coffer token ${verb}?`] as const,
    ),
    ['create app', "Unknown command 'create'. Did you mean: coffer app create?"],
    ['vault rotate', "Unknown command 'rotate'. Did you mean: coffer vault rekey?"],
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

t.test('help topics tell of exit codes, variables and expressions', async (t) => {
  const home = createHome(t)
  const codes = (await home.run('help exit-codes')).stdout
  for (const line of [
    '    0  done',
    '    3  not found (not-found, not-emulated)',
    '    7  vault damaged (vault-damaged)',
    '  130  interrupted',
  ]) {
    t.match(codes, line)
  }
  t.notMatch(codes, 'undefined')
  const variables = (await home.run('help environment')).stdout
  for (const name of ['COFFER_VAULT', 'COFFER_OUTPUT', 'COFFER_PASSPHRASE_FD', 'NO_COLOR'])
    t.match(variables, name)
  t.match((await home.run('help expressions')).stdout, 'reveal_last: count')
})
