import t from 'tap'
import { createHome, createVaultHome } from './home.js'

const CARD = '{"number":"4242424242424242"}'
const WARNING = /^warning: Other processes can see the arguments of a command \(--data\)/

t.test('everything that is missing is named at once, and nobody waits', async (t) => {
  const home = createHome(t)
  const create = 'Give them as flags, as --file, or as JSON on standard input.'
  const createOne = create.replace('them', 'it')
  for (const [line, message, options] of [
    ['token create', `Missing: --type, --data. ${create}`],
    ['token create --data 1 --quiet', `Missing: --type. ${createOne}`],
    ['token create --type card --no-input', `Missing: --data. ${createOne}`],
    ['token create --no-input', `Missing: --type, --data. ${create}`, { columns: 120 }],
    ['app create --type private', `Missing: --name. ${createOne}`],
    ['token update my-token', `Nothing to change. Give changes ${create.slice(10)}`],
  ] as const) {
    const { code, stdout, stderr } = await home.run(line, options)
    t.same([code, stdout], [2, ''])
    t.ok(stderr.endsWith(`error: ${message}\n`), stderr)
  }
})

t.test('a body comes from a file or standard input, and flags win over it', async (t) => {
  const home = await createVaultHome(t)
  home.write('body.json', '{"type":"card_number","data":"4242424242424242","metadata":{"a":"file"}}')
  home.write('data.json', '"5555555555554444"\n')
  const masked = { number: 'XXXXXXXXXXXX4242' }
  for (const [line, stdin, expected, why] of [
    ['--file body.json --id one', '', { id: 'one', data: masked.number, metadata: { a: 'file' } }],
    ['--file body.json --metadata b=flag --data @data.json', '', { data: 'XXXXXXXXXXXX4444' }],
    ['--file body.json', '{"type":"bank"}', { type: 'card_number' }, 'nobody reads standard input'],
    ['--type card', `{"type":"token","data":${CARD}}`, { type: 'card', data: masked }],
    ['--file - --type card', `{"data":${CARD}}`, { type: 'card', data: masked }],
    ['--type card --data -', CARD, { data: masked }],
    ['--type card --data @-', `\ufeff${CARD}\n`, { data: masked }, 'a byte order mark does not count'],
    ['--type token --data @data.json', '{"type":"bank"}', { type: 'token' }, 'flags that say all'],
  ] as const)
    t.match(await home.json(`token create ${line}`, { stdin }), expected, why ?? line)
  const { metadata } = await home.json('token create --file body.json --metadata b=flag')
  t.same(metadata, { b: 'flag' }, 'a flag replaces the property as a whole')
})

t.test('every source that cannot be read is refused by name', async (t) => {
  const home = await createVaultHome(t)
  home.write('list.json', '[1]')
  for (const [line, stdin, message] of [
    ['--file none.json', '', '--file (none.json) does not exist.'],
    ['--file list.json', '', 'list.json must contain one JSON object.'],
    ['--type token --data @none', '', '--data (none) does not exist.'],
    ['--file - --data -', CARD, 'Standard input was given to --data and --file. Give one of them as a file.'],
    ['--quiet', '[5]', 'standard input must contain one JSON object.\n'],
    ['--type token', 'my diary', 'To store the text itself, give --data -.\n'],
  ] as const)
    t.match(await home.run(`token create ${line}`, { stdin }), { code: 2, stdout: /^$/, stderr: message })
  t.equal((await home.json('token list')).pagination.total_items, 0)
})

t.test('broken JSON is refused at its line and column, wherever it comes from', async (t) => {
  const home = await createVaultHome(t)
  const deep = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`
  home.write('broken.json', '{\n  "type": "card",\n  "data": {"number": 4242,}\n}\n')
  const large =
    'line 1, column 1: this number cannot be kept exactly; send it as a string. Give text as a JSON string:'
  for (const [words, stdin, message] of [
    ['--file broken.json', '', 'broken.json is refused at line 3, column 27: expected a property name'],
    ['--quiet', '{"type":"card"', 'standard input is refused at line 1, column 15: the text ends too early'],
    ['--quiet', '{"type":"token","data":{"__proto__":1}}', 'standard input is refused at line 1, column 25'],
    ['--quiet', `{"type":"token","data":${deep(64)}}`, 'standard input is refused at line 1'],
    [`--type token --data ${deep(65)}`, '', '--data is refused at line 1, column 65'],
    ['--type token --data 12345678901234567890', '', `--data is refused at ${large}`],
    ['--type token --data x --mask {', '', '--mask is refused at line 1, column 2'],
  ] as const)
    t.match(await home.run(`token create ${words}`, { stdin }), { code: 2, stdout: /^$/, stderr: message })
  t.equal((await home.json('token list')).pagination.total_items, 0)
  const fits = await home.json('token create --type token --id deep --data -', { stdin: deep(64) })
  t.equal(fits.id, 'deep', '64 levels are fine')
})

t.test('a sensitive argument is warned of, once, and only where it is one', async (t) => {
  const home = await createVaultHome(t)
  home.write('data.json', CARD)
  const create = (more: string, stdin = '') => home.run(`token create --type card --data ${more}`, { stdin })
  const exposed = await create(CARD)
  t.match(exposed, { code: 0, stderr: WARNING })
  t.equal(exposed.stderr.split('\n').length, 2, 'one line')
  t.notMatch(exposed.stderr, '4242')
  for (const more of [`${CARD} --quiet`, '@data.json', '-'])
    t.equal((await create(more, CARD)).stderr, '', more)
  t.match((await create('hello')).stderr, WARNING, 'it was seen though it was refused')
})
