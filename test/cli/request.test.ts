/** The syntax of values, the sources of bodies, and the selection of fields. */
import { type Home, testHome, testVault } from './home.js'

const CARD = '{"number":"4242424242424242"}'
const WARNING = /^warning: Other processes can see the arguments of a command \(--data\)/

testHome(
  'a single error names all missing values, and the command does not wait for input',
  async (t, home) => {
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
  },
)

testVault(
  'a body comes from a file or standard input, and flags override its properties',
  async (t, home) => {
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
    t.same(metadata, { b: 'flag' }, 'a flag replaces the whole property')
  },
)

testVault(
  'if the source of a value cannot be read, the command is refused, and the error names the source',
  async (t, home) => {
    home.write('list.json', '[1]')
    for (const [line, stdin, message] of [
      ['--file none.json', '', '--file (none.json) does not exist.'],
      ['--file list.json', '', 'list.json must contain one JSON object.'],
      ['--type token --data @none', '', '--data (none) does not exist.'],
      [
        '--file - --data -',
        CARD,
        'Standard input was given to --data and --file. Give one of them as a file.',
      ],
      ['--quiet', '[5]', 'standard input must contain one JSON object.\n'],
      ['--type token', 'my diary', 'To store the text itself, give --data -.\n'],
    ] as const)
      t.match(await home.run(`token create ${line}`, { stdin }), { code: 2, stdout: /^$/, stderr: message })
    t.equal((await home.json('token list')).pagination.total_items, 0)
  },
)

testVault('invalid JSON from any source is refused with its line and column', async (t, home) => {
  const deep = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`
  home.write('broken.json', '{\n  "type": "card",\n  "data": {"number": 4242,}\n}\n')
  const large =
    'line 1, column 1: this number cannot be stored exactly; send it as a string. Give text as a JSON string:'
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
  t.equal(fits.id, 'deep', '64 levels are accepted')
})

testVault('a sensitive argument causes one warning, and other arguments cause none', async (t, home) => {
  home.write('data.json', CARD)
  const create = (more: string, stdin = '') => home.run(`token create --type card --data ${more}`, { stdin })
  const exposed = await create(CARD)
  t.match(exposed, { code: 0, stderr: WARNING })
  t.equal(exposed.stderr.split('\n').length, 2, 'one line')
  t.notMatch(exposed.stderr, '4242')
  t.match((await create(`${CARD} --quiet`)).stderr, WARNING, '--quiet does not hide a warning')
  for (const more of ['@data.json', '-']) t.equal((await create(more, CARD)).stderr, '', more)
  t.match(
    (await create('hello')).stderr,
    WARNING,
    'the warning appears, because the argument was visible although it was refused',
  )
})

const CREATE = ['token', 'create', '--type', 'token', '--mask', '{{ data }}', '--quiet', '--data']

/** Runs `coffer token create` with these words. Returns the data of the new token. */
async function store(home: Home, words: readonly string[], stdin = '') {
  const { id } = await home.json(['token', 'create', '--quiet', ...words], { stdin })
  return (await home.json(['token', 'get', id, '--reveal'])).data
}

testVault(
  'a value that is not JSON is stored as text, but a value that begins like JSON must be JSON',
  async (t, home) => {
    home.write('host', 'my-host\n')
    home.write('mask', '{{ data | last4 }}\n')
    for (const [text, value] of [
      ['hello', 'hello'],
      ['{{ not an expression', '{{ not an expression'],
      ['007', '007'],
      ['2030-01-02', '2030-01-02'],
      ['', ''],
      [' a\nb ', ' a\nb '],
      ['"x"', 'x'],
      ['-1.5', -1.5],
      ['true', true],
      [' {"a":"b"}', { a: 'b' }],
      ['@host', 'my-host'],
      ['@@host', '@host'],
    ] as const)
      t.same(await store(home, ['--type', 'token', `--data=${text}`]), value, text)
    for (const [mask, shown] of [
      ['{{ data }}', 'hello'],
      ['@mask', 'ello'],
      ['"{{ data }}"', 'hello'],
      ['{"a":"{{ data }}"}', { a: 'hello' }],
    ] as const) {
      const { data } = await home.json([
        'token',
        'create',
        '--type',
        'token',
        '--data',
        'hello',
        '--mask',
        mask,
      ])
      t.same(data, shown, mask)
    }
  },
)

testVault('digits are stored as text if the type of the token needs text', async (t, home) => {
  home.write('typed.json', '{"type":"card_number"}')
  home.write('digits', '123456789\n')
  for (const [line, value] of [
    ['--type card_number --data 4242424242424242', '4242424242424242'],
    ['--type card_number --data "4242424242424242"', '4242424242424242'],
    ['--type card_number --data 6759649826438453011', '6759649826438453011'],
    ['--type us_bank_routing_number --data 021000021', '021000021'],
    ['--type social_security_number --data @digits', '123456789'],
    ['--type employer_id_number --data @-', '123456789'],
    ['--file typed.json --data 4242424242424242', '4242424242424242'],
  ] as const)
    t.equal(await store(home, line.split(' '), '123456789\n'), value, line)
  await home.createToken({ id: 'number', type: 'card_number', data: '4242424242424242' })
  await home.createToken({ id: 'any' })
  for (const [id, words, data] of [
    ['number', '5555555555554444', '5555555555554444'],
    ['any', '1', 1],
  ] as const) {
    await home.json(`token update ${id} --data ${words}`)
    t.equal((await home.json(`token get ${id} --reveal`)).data, data)
  }
  const wrong = await home.run('token update number --data 1')
  t.match(wrong, { code: 2, stderr: /data: must be a string of 12 to 19 digits/ })
})

testVault('the entries of a map are key=value, JSON, or both, and null removes an entry', async (t, home) => {
  home.write('notes.json', '{"c":"x=@y"}')
  const made = await home.json([
    ...[...CREATE, 'x', '--id', 'noted', '--metadata', 'a=1', '--metadata', '{"b":"x=@y"}'],
    ...['--metadata', '@notes.json'],
  ])
  t.same(made.metadata, { a: '1', b: 'x=@y', c: 'x=@y' })
  const changed = await home.json('token update noted --metadata a=null --metadata b=2')
  t.same(changed.metadata, { b: '2', c: 'x=@y' })
  const refused = await home.run([...CREATE, 'x', '--metadata', 'a=null'])
  t.match(refused, { code: 2, stdout: /^$/, stderr: /metadata\.a: must be a string/ })
  const kept = await home.json([...CREATE, 'x', '--metadata', '{"a":"null"}'])
  t.same(kept.metadata, { a: 'null' })
  t.equal(
    (await home.json('token list --metadata a=null')).data[0].id,
    kept.id,
    'the value of a filter is text',
  )
})

testVault('reactor run and reactor dev accept arguments as JSON or as key=value', async (t, home) => {
  const code = 'module.exports = async ({ args }) => ({ raw: args })'
  home.write('f.js', code)
  const formula = await home.json(['formula', 'create', '--name', 'f', '--type', 'private', '--code', code])
  const reactor = await home.json(['reactor', 'create', '--name', 'r', '--formula', `{"id":"${formula.id}"}`])
  home.write('args.json', '{"c":{"d":1}}')
  const args = ['--args', 'a=1', '--args', '{"b":[2]}', '--args', '@args.json']
  const raw = { a: '1', b: [2], c: { d: 1 } }
  t.same((await home.json(['reactor', 'react', reactor.id, ...args])).raw, raw)
  t.same((await home.json(['reactor', 'dev', 'f.js', ...args])).raw, raw)
  const secret = await home.run(['reactor', 'react', reactor.id, '--args', 'a=@args.json'])
  t.match(secret, { code: 0, stderr: /^$/ }, 'a file on the command line does not count as a secret argument')
  t.match(await home.run(['reactor', 'react', reactor.id, '--args', 'a=1']), {
    stderr: /^warning: Other processes/,
  })
})

testVault('a boolean flag without a value means true, and --no- means false', async (t, home) => {
  const same = [...CREATE, 'same']
  const first = (await home.json(same)).id
  for (const [word, isFirst] of [
    ['--deduplicate-token', true],
    ['--no-deduplicate-token', false],
  ] as const)
    t.equal((await home.json([...same, word])).id === first, isFirst, word)
})

testVault('the answer to a write is masked, and no message offers to reveal the data', async (t, home) => {
  await home.createToken({ id: 'one' })
  for (const line of ['token create --type token --data x', 'token update one --data y'])
    t.match(await home.run(`${line} --reveal`), { code: 2, stderr: /Unknown option '--reveal'/ })
  for (const line of ['token get one', 'token list', 'token search', 'token children one'])
    t.equal((await home.run(`${line} --reveal`)).code, 0, line)
})

testVault('an unknown field is refused with a list of the known fields', async (t, home) => {
  await home.createToken({ id: 'one', data: { a: { b: 1 } }, mask: '{{ data }}', metadata: { 'x.y': '1' } })
  for (const [line, message] of [
    ['token list --fields id,tpye', /no field "tpye"\. There are: id, tenant_id, type, data,/],
    ['token list --all --output ndjson --fields Id', /no field .+Id/],
    ['token get one --fields type.x', /no field "type\.x"/],
    ['member list --fields user.emial', /"user\.emial"\. Below user there are: id, email,/],
    ['app list --fields rules.contaner', /Below rules there are: description, priority, container/],
    ['tenant usage --fields token_report.x', /Below token_report there are: metrics_by_type/],
    ['log tail --fields who', /no field "who"\. There are: id, tenant_id, actor_id/],
    ['vault status --fields storage.recrods', /Below storage there are: records, logs/],
    ['token list --fields ,', /--fields must name at least one field\./],
    ['token create --type token --data x --fields idd', /no field "idd"/],
  ] as const)
    t.match(await home.run(line), { code: 2, stdout: /^$/, stderr: message }, line)
  t.equal((await home.json('token list')).pagination.total_items, 1, 'no token was created')
  for (const field of ['data.a.b', 'metadata.x.y', 'data.none', 'metadata.none', 'mask.z', 'modified_by'])
    t.equal((await home.run(`token get one --fields ${field}`)).code, 0, field)
  t.equal((await home.run('tenant usage --fields token_report.metrics_by_type.bank.count')).code, 0)
  t.equal((await home.run('config list --fields name,value')).code, 0)
  const set = await home.run('vault status', { env: { COFFER_FIELDS: 'entity_id' } })
  t.match(
    set,
    { code: 0, stdout: '{}\n' },
    'fields that a variable sets for all commands need not exist in each command',
  )
})
