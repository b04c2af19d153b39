import t from 'tap'
import { createHome, createVaultHome } from './home.js'

const CARD = '{"number":"4242424242424242"}'
const WARNING = /^warning: Other processes can see the arguments of a command \(--data\)/

t.test('everything that is missing is named at once, and nobody waits', async (t) => {
  const home = createHome(t)
  const create = 'Give them as flags, as --file, or as JSON on standard input.'
  const createOne = create.replace('them', 'it')
  for (const [words, message] of [
    [['token', 'create'], `Missing: --type, --data. ${create}`],
    [['token', 'create', '--type', 'card'], `Missing: --data. ${createOne}`],
    [['token', 'create', '--data', '1', '--quiet'], `Missing: --type. ${createOne}`],
    [['token', 'create', '--type', 'card', '--no-input'], `Missing: --data. ${createOne}`],
    [['app', 'create', '--type', 'private'], `Missing: --name. ${createOne}`],
    [
      ['token', 'update', 'my-token'],
      'Nothing to change. Give changes as flags, as --file, or as JSON on standard input.',
    ],
  ] as const) {
    const { code, stdout, stderr } = await home.run(words)
    t.same([code, stdout], [2, ''])
    t.ok(stderr.endsWith(`error: ${message}\n`), stderr)
  }
  const person = await home.run('token create --no-input', { columns: 120 })
  t.same([person.code, person.stderr], [2, `error: Missing: --type, --data. ${create}\n`])
})

t.test('a body comes from a file or standard input, and flags win over it', async (t) => {
  const home = await createVaultHome(t)
  home.write('body.json', '{"type":"card_number","data":"4242424242424242","metadata":{"a":"file"}}')
  home.write('data.json', '"5555555555554444"\n')
  const file = await home.json('token create --file body.json --id one')
  t.match(file, { id: 'one', data: 'XXXXXXXXXXXX4242', metadata: { a: 'file' } })
  const flagged = await home.json('token create --file body.json --metadata b=flag --data @data.json')
  t.match(flagged, { data: 'XXXXXXXXXXXX4444', metadata: { b: 'flag' } })
  t.notHas(flagged.metadata, 'a', 'a flag replaces the property as a whole')
  const ignored = await home.json('token create --file body.json', { stdin: '{"type":"bank"}' })
  t.equal(ignored.type, 'card_number', 'with a file nobody reads standard input')
  const piped = await home.json('token create --type card', {
    stdin: `{"type":"token","data":${CARD}}`,
  })
  t.match(piped, { type: 'card', data: { number: 'XXXXXXXXXXXX4242' } })
  const dash = await home.json('token create --file - --type card', {
    stdin: `{"data":${CARD}}`,
  })
  t.equal(dash.type, 'card')
  const value = await home.json('token create --type card --data -', { stdin: CARD })
  t.match(value.data, { number: 'XXXXXXXXXXXX4242' })
  const at = await home.json('token create --type card --data @-', {
    stdin: `\ufeff${CARD}\n`,
  })
  t.match(at.data, { number: 'XXXXXXXXXXXX4242' }, 'a byte order mark and a last line break do not count')
  const complete = await home.json('token create --type token --data @data.json', {
    stdin: '{"type":"bank"}',
  })
  t.equal(complete.type, 'token', 'flags that say all leave standard input alone')
})

t.test('every source that cannot be read is refused by name', async (t) => {
  const home = await createVaultHome(t)
  home.write('list.json', '[1]')
  for (const [words, stdin, message] of [
    [['--file', 'none.json'], '', '--file (none.json) does not exist.'],
    [['--file', 'list.json'], '', 'list.json must contain one JSON object.'],
    [['--type', 'token', '--data', '@none'], '', '--data (none) does not exist.'],
    [
      ['--file', '-', '--data', '-'],
      CARD,
      'Standard input was given to --data and --file. Give one of them as a file.',
    ],
    [[], '[5]', 'standard input must contain one JSON object.\n'],
    [
      ['--type', 'token'],
      'my diary',
      'standard input must contain one JSON object. To store the text itself, give --data -.\n',
    ],
  ] as const) {
    const { code, stdout, stderr } = await home.run(['token', 'create', ...words], { stdin })
    t.same([code, stdout], [2, ''], message)
    t.ok(stderr.includes(`error: ${message}`), stderr)
  }
  t.equal((await home.json('token list')).pagination.total_items, 0)
})

t.test('broken JSON is refused at its line and column, wherever it comes from', async (t) => {
  const home = await createVaultHome(t)
  const deep = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`
  home.write('broken.json', '{\n  "type": "card",\n  "data": {"number": 4242,}\n}\n')
  for (const [words, stdin, message] of [
    [
      ['--file', 'broken.json'],
      '',
      'broken.json is refused at line 3, column 27: expected a property name in double quotes',
    ],
    [[], '{"type":"card"', 'standard input is refused at line 1, column 15: the text ends too early'],
    [[], '{"type":"token","data":1,"data":2}', 'standard input is refused at line 1, column 26'],
    [[], '{"type":"token","data":{"__proto__":{"a":1}}}', 'standard input is refused at line 1, column 25'],
    [
      [],
      '{"type":"token","data":{"a":{"constructor":{"prototype":1}}}}',
      'standard input is refused at line 1',
    ],
    [[], `{"type":"token","data":${deep(64)}}`, 'standard input is refused at line 1'],
    [['--type', 'token', '--data', deep(65)], '', '--data is refused at line 1, column 65'],
    [
      ['--type', 'token', '--data', '12345678901234567890'],
      '',
      `--data is refused at line 1, column 1: this number cannot be kept exactly; send it as a string. Give text as a JSON string: --data '"…"'.`,
    ],
    [['--type', 'token', '--data', '"open'], '', '--data is refused at line 1, column 6: the text ends'],
    [['--type', 'token', '--data', 'x', '--mask', '{ {data} }'], '', '--mask is refused at line 1, column 3'],
    [['--type', 'token', '--data', '1', '--mask', '{'], '', '--mask is refused at line 1, column 2'],
  ] as const) {
    const { code, stdout, stderr } = await home.run(['token', 'create', ...words], { stdin })
    t.same([code, stdout], [2, ''], message)
    t.ok(stderr.includes(`error: ${message}`), stderr)
  }
  t.equal((await home.json('token list')).pagination.total_items, 0)
  const fits = await home.json('token create --type token --id deep --data -', {
    stdin: deep(64),
  })
  t.equal(fits.id, 'deep', '64 levels are fine')
})

t.test('a sensitive argument is warned of, once, and only where it is one', async (t) => {
  const home = await createVaultHome(t)
  home.write('data.json', CARD)
  const create = ['token', 'create', '--type', 'card']
  const exposed = await home.run([...create, '--data', CARD])
  t.equal(exposed.code, 0)
  t.match(exposed.stderr, WARNING)
  t.equal(exposed.stderr.split('\n').length, 2, 'one line')
  t.notMatch(exposed.stderr, '4242')
  t.equal((await home.run([...create, '--data', CARD, '--quiet'])).stderr, '')
  t.equal((await home.run([...create, '--data', '@data.json'])).stderr, '')
  t.equal((await home.run([...create, '--data', '-'], { stdin: CARD })).stderr, '')
  t.equal((await home.run('token create', { stdin: `{"type":"card","data":${CARD}}` })).stderr, '')
  const refused = await home.run([...create, '--data', 'hello'])
  t.match(refused.stderr, WARNING, 'it was seen though it was refused')
})
