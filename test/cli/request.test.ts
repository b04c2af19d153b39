import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Answer } from './fake-process.js'
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
  home.write('latin.json', Buffer.from([0x22, 0xe9, 0x22]))
  home.write('big.json', `"${'x'.repeat(1024 * 1024)}"`)
  for (const [words, stdin, message] of [
    [['--file', 'none.json'], '', '--file (none.json) does not exist.'],
    [['--file', '.'], '', '--file (.) is a directory, not a file.'],
    [['--file', ''], '', '--file names no file.'],
    [['--file', 'list.json'], '', 'list.json must contain one JSON object.'],
    [['--type', 'token', '--data', '@none'], '', '--data (none) does not exist.'],
    [['--type', 'token', '--data', '@latin.json'], '', '--data (latin.json) is not UTF-8'],
    [
      ['--type', 'token', '--data', '@big.json'],
      '',
      '--data (big.json) is larger than the limit of 1048576 bytes.',
    ],
    [
      ['--file', '-', '--data', '-'],
      CARD,
      'Standard input was given to --data and --file. Give one of them as a file.',
    ],
    [
      ['--data', '-', '--mask', '-'],
      CARD,
      'Standard input was given to --data and --mask. Give one of them as a file.',
    ],
    [[], '5', 'standard input must contain one JSON object.'],
    [[], '"text"', 'standard input must contain one JSON object.'],
    [[], 'null', 'standard input must contain one JSON object.'],
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
    [[], "{'type':'card'}", 'standard input is refused at line 1, column 2'],
    [[], '{"type":"token","data":1} x', 'standard input is refused at line 1, column 27'],
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
      `--data is refused at line 1, column 1: this number cannot be kept exactly (integers beyond 2^53, too many digits, too large); send it as a string. Give text as a JSON string: --data '"…"'.`,
    ],
    [['--type', 'token', '--data', '"open'], '', '--data is refused at line 1, column 6: the text ends'],
    [['--type', 'token', '--data', '[1 2]'], '', '--data is refused at line 1, column 4'],
    [['--type', 'token', '--data', 'x', '--mask', '{ {data} }'], '', '--mask is refused at line 1, column 3'],
    [['--type', 'token', '--data', '{"a":}'], '', '--data is refused at line 1, column 6'],
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

t.test('what is missing is asked for at a terminal, the data without showing it', async (t) => {
  const home = await createVaultHome(t)
  const { code, stdout, stderr } = await home.run('token create --id asked', {
    columns: 100,
    answers: [
      ['? type', '\u001b[B\r'],
      ['? data.number', '4242424242424243\r'],
      ['valid check digit', '\u00154242424242424242\r'],
      ['? data.expiration_month (optional)', '13\r'],
      ['from 1 to 12', '\u001512\r'],
      ['? data.expiration_year (optional)', '2030\r'],
      ['? data.cvc (optional)', '\r'],
    ],
  })
  t.equal(code, 0, stderr)
  t.match(stdout, /^id: +asked\n/m)
  t.match(stdout, '{"number":"XXXXXXXXXXXX4242","expiration_month":12,"expiration_year":2030}')
  t.notMatch(stderr, /424242424242424/)
  const text = await home.run('token create --type token --id text', {
    columns: 100,
    answers: [['? data', 'plain words\r']],
  })
  t.equal(text.code, 0)
  t.equal((await home.json('token get text --reveal')).data, 'plain words', 'text needs no quotes there')
})

t.test('at a terminal an application that may do nothing yet is asked what it may do', async (t) => {
  const home = await createVaultHome(t)
  const words = ['app', 'create', '--name', 'backend', '--type', 'private', '--output', 'json']
  const question = '? permissions or rules'
  const asked = await home.run(words, {
    columns: 80,
    answers: [
      [question, '\r'],
      ['token:create  Create tokens (public, private)', ' \u001b[B \r'],
    ],
  })
  t.equal(asked.code, 0, asked.stderr)
  t.same(JSON.parse(asked.stdout).permissions, ['token:create', 'token:read'])
  const rule = '{"priority":1,"container":"/","transform":"mask","permissions":["token:read"]}'
  const ruled = await home.run([...words, '--rule', rule], { columns: 80 })
  t.equal(ruled.code, 0)
  t.notMatch(ruled.stderr, question, 'rules are enough')
  const table = await home.run([...words, '--rule', rule, '--output', 'table'], { columns: 80 })
  t.match(table.stderr, 'The key is shown only once.')
  t.notMatch(ruled.stderr, 'only once', 'programs know')
  t.notMatch((await home.run('app get backend --output table', { columns: 80 })).stderr, 'once')
  t.notMatch((await home.run([...words, '--rule', 'x'])).stderr, 'Give text', 'a rule is no text')
})

t.test('rules are written in the editor, and what is refused of them is told', async (t) => {
  const home = await createVaultHome(t)
  home.write('bad.json', '[{"priority":0,"container":"/","transform":"mask","permissions":["token:read"]}]')
  const rule = { priority: 1, container: '/pci/', transform: 'mask', permissions: ['token:read'] }
  home.write('good.json', JSON.stringify(rule))
  const EDITOR = home.write(
    'editor',
    '#!/bin/sh\ncd "$HOME"; [ -e template.json ] || { cp "$1" template.json; exec cp bad.json "$1"; }\nexec cp good.json "$1"\n',
    0o700,
  )
  const words = ['app', 'create', '--name', 'support', '--output', 'json']
  const ask = (env: Record<string, string>, answers: Answer[]) =>
    home.run(words, {
      ...{ columns: 100, env },
      answers: [['? type', '\u001b[B\r'], ['? permissions or rules', '\u001b[B\r'], ...answers],
    })
  const edited = await ask({ EDITOR, XDG_RUNTIME_DIR: home.place }, [
    [':edit for your editor', ':edit\r'],
    ['rules[0].priority: must be', ''],
    [':edit for your editor', ':edit\r'],
  ])
  t.equal(edited.code, 0, edited.stderr)
  t.same(JSON.parse(edited.stdout).rules, [rule], 'one rule needs no list')
  t.match(JSON.parse(readFileSync(join(home.place, 'template.json'), 'utf8')), [
    { priority: 1, container: '' },
  ])
  const typed = await ask({}, [['? rules', `${JSON.stringify([rule])}\r`]])
  t.same(JSON.parse(typed.stdout).rules, [rule], 'without an editor they are a line of JSON')
  const managed = await home.run([...words.slice(0, 3), 'manager', '--type', 'management', '-o', 'json'], {
    columns: 100,
    answers: [['❯◯ application:create', ' \r']],
  })
  t.same(JSON.parse(managed.stdout).permissions, ['application:create'], managed.stderr)
  t.notMatch(managed.stderr, 'token:read', 'only what the type may hold is offered')
})

t.test('who gives nothing is offered containers, and an argument is asked for too', async (t) => {
  const home = await createVaultHome(t)
  const made = await home.run('token create --output json', {
    columns: 80,
    answers: [
      ['? type', '\u001b[B\u001b[B\u001b[B\r'],
      ['? data', '4242424242424242\r'],
      ['/bank/low/', '/bank/'],
      ['❯ /bank/high/', '\r'],
    ],
  })
  t.equal(made.code, 0, made.stderr)
  t.match(made.stderr, /containers \(optional\), choose or type[\s\S]*\(default\)/)
  t.same(JSON.parse(made.stdout).containers, ['/bank/high/'])
  const { id } = JSON.parse(made.stdout)
  const got = await home.run('token get --output json', {
    columns: 80,
    answers: [['? id', `${id}\r`]],
  })
  t.equal(JSON.parse(got.stdout).id, id)
  const missing = await home.run('token get')
  t.same(
    [missing.code, missing.stderr],
    [2, "error: Missing required argument 'id'. See: coffer token get --help\n"],
  )
  const used = await home.run('profile use nobody', { columns: 80 })
  t.equal(used.code, 2)
  const set = await home.run('profile set', {
    columns: 80,
    answers: [
      ['? profile', 'support\r'],
      ['? setting', 'vault\r'],
      ['? vault', '.coffer\r'],
    ],
  })
  t.equal(set.code, 0, set.stderr)
})

t.test('what the operation refuses is asked for again, and the other answers stay', async (t) => {
  const home = await createVaultHome(t)
  await home.json([
    'formula',
    'create',
    '--name',
    'greet',
    '--type',
    'private',
    '--code',
    'module.exports = async () => ({})',
  ])
  const reactor = await home.run('reactor create --output json', {
    columns: 80,
    answers: [
      ['? name', 'first\r'],
      ['? code or formula', '\u001b[B\r'],
      ['? formula', 'nothing like it'],
      ['❯ nothing like it', '\r'],
      ['? formula', 'gre'],
      ['❯ greet', '\r'],
    ],
  })
  t.equal(reactor.code, 0, reactor.stderr)
  t.match(JSON.parse(reactor.stdout), { name: 'first', formula: { name: 'greet' } })
  const lost = await home.run('token get --output json', {
    columns: 80,
    answers: [
      ['? id', 'nobody\r'],
      ['warning:', ''],
      ['? id', '\u0003'],
    ],
  })
  t.same([lost.code, /no token/i.test(lost.stderr)], [130, true], lost.stderr)
})

t.test('long text is written in the editor', async (t) => {
  const home = await createVaultHome(t)
  const EDITOR = home.write('editor', '#!/bin/sh\necho "module.exports = async () => ({})" > "$1"\n', 0o700)
  const env = { EDITOR, XDG_RUNTIME_DIR: home.place }
  const create = ['formula', 'create', '--name', 'edited', '--type', 'private', '--output', 'json']
  const made = await home.run(create, {
    columns: 80,
    env,
    answers: [['? code, :edit for your editor', ':edit\r']],
  })
  t.equal(made.code, 0, made.stderr)
  t.equal(JSON.parse(made.stdout).code, 'module.exports = async () => ({})')
})

t.test('at a terminal - says that it is the turn of the person', async (t) => {
  const home = await createVaultHome(t)
  for (const words of [
    ['--data', '-'],
    ['--file', '-'],
  ]) {
    const { code, stderr } = await home.run(['token', 'create', '--type', 'card', ...words], {
      columns: 80,
      answers: [['end with Ctrl-D', '{"data":{"number":"4242424242424243"}}']],
      closesInput: true,
    })
    t.equal(code, 2)
    t.match(stderr, 'Reading from the terminal; end with Ctrl-D on an empty line.')
  }
})

t.test('who leaves a question changes nothing', async (t) => {
  const home = await createVaultHome(t)
  for (const keys of ['\u0003', '\u0004']) {
    const left = await home.run('token create --type token', {
      columns: 80,
      answers: [['? data', keys]],
    })
    t.equal(left.code, 130)
    t.match(left.stderr, 'Interrupted.')
    t.notMatch(left.stderr, 'error:')
  }
  t.equal((await home.json('token list')).pagination.total_items, 0)
})

t.test('at a terminal nobody is asked for the contents of a vault that is not there', async (t) => {
  const { code, stderr } = await createHome(t).run(['token', 'create'], {
    columns: 80,
    answers: [['?', '\u0003']],
  })
  t.same(
    [code, stderr],
    [6, 'error: There is no vault in this or a parent directory. Create one with:\ncoffer init\n'],
  )
})

t.test('a map is given by its entries or as JSON', async (t) => {
  const home = await createVaultHome(t)
  const create = ['token', 'create', '--type', 'token', '--data', '1']
  const made = await home.json([...create, '--metadata', '{"a":"x=@y","b":"z"}', '--metadata', 'c=d'])
  t.same(made.metadata, { a: 'x=@y', b: 'z', c: 'd' })
  await home.json(create)
  for (const flags of [
    ['--metadata', '{"a":"X=@Y"}'],
    ['--metadata', 'a=x=@y', '--metadata', '{"b":"z"}'],
  ])
    t.equal((await home.json(['token', 'list', ...flags])).pagination.total_items, 1)
  for (const flags of [
    ['{}'],
    ['{"a":1}'],
    ['{"a"'],
    ['['],
    [''],
    ['=x'],
    ['a=x', '--metadata', '{"a":"x"}'],
  ])
    t.equal((await home.run(['token', 'list', '--metadata', ...flags])).code, 2, flags.join(' '))
})

t.test('flags say what JSON says: lists, maps, yes and no, null', async (t) => {
  const home = await createVaultHome(t)
  const made = await home.json([
    ...[
      'token',
      'create',
      '--type',
      'token',
      '--data',
      '{"a":1}',
      '--mask',
      'null',
      '--metadata',
      'k=v=w',
      '--metadata',
      'e=',
    ],
    ...[
      '--container',
      '/a/',
      '--container',
      '/b/',
      '--search-index',
      '{{ data.a }}',
      '--no-deduplicate-token',
    ],
    ...['--fingerprint-expression', '{{ data.a }}', '--expires-at', '1/2/2099', '--id', 'flags'],
  ])
  t.match(made, {
    metadata: { k: 'v=w', e: '' },
    containers: ['/a/', '/b/'],
    search_indexes: ['{{ data.a }}'],
    fingerprint_expression: '{{ data.a }}',
    expires_at: '2099-01-02T00:00:00.000+00:00',
  })
  t.notHas(made, 'mask')
  const changed = await home.json('token update flags --expires-at null --data {"b":2} --deduplicate-token')
  t.notHas(changed, 'expires_at')
  t.same((await home.json('token get flags --reveal')).data, { a: 1, b: 2 })
  const dashes = await home.run('token get -- --odd-id')
  t.same(
    [dashes.code, dashes.stderr],
    [3, 'error: There is no token with this id.\n'],
    'after -- words are words',
  )
})
