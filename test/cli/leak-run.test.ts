import { mkdirSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findLeaks, type Haystack, readTree } from '../support/leak.js'
import type { Outcome, Run } from './fake-process.js'
import { testHome } from './home.js'

const PASSPHRASE = 'Tr0ub4dor & 3 wörter'
/** Data of every type. The masks hide a part of the data. The value `wrong` is invalid for its type. */
const DATA = {
  card: { number: '4000056655665556', expiration_month: 12, expiration_year: 2031, cvc: '7391' },
  bank: { routing_number: '021000021', account_number: '98765432109876543' },
  card_number: '5200828282828210',
  us_bank_account_number: '31415926535897932',
  us_bank_routing_number: '011401533',
  social_security_number: '219-09-9999',
  employer_id_number: '98-7654321',
  token: { name: 'Wilhelmina Ångström', note: 'line one\n"quoted"\t\\ back' },
}
const SECRETS = [
  '4000056655665556 98765432109876543 5200828282828210 31415926535897932 011401533 219-09-9999 219099999'.split(
    ' ',
  ),
  '98-7654321 patched-secret-value 4111111111111112 broken-json-secret argument-secret-value'.split(' '),
  ['Wilhelmina Ångström', 'line one\n"quoted"\t\\ back', PASSPHRASE],
].flat()

/** Records the addresses to which sockets of this process connect. Paths of Unix sockets are not recorded. */
function watchConnections(t: Test): string[] {
  const reached: string[] = []
  const { connect } = Socket.prototype
  Socket.prototype.connect = function (this: Socket, ...given: unknown[]) {
    const [first] = given.flat() as ({ path?: string; host?: string; port?: number } | undefined)[]
    if (first?.path === undefined) reached.push(`${first?.host}:${first?.port}`)
    return connect.apply(this, given as Parameters<typeof connect>)
  } as typeof connect
  t.teardown(() => {
    Socket.prototype.connect = connect
  })
  return reached
}

testHome('no file, output or error contains a secret', async (t, home) => {
  const reached = watchConnections(t)
  const temporary = join(home.place, 'tmp')
  mkdirSync(temporary)
  const before = process.env.TMPDIR
  process.env.TMPDIR = temporary
  t.teardown(() => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  })
  const printed: Haystack[] = []
  const run = async (words: readonly string[], options: Omit<Run, 'words'> = {}): Promise<Outcome> => {
    const outcome = await home.run(words, { ...options, env: { COFFER_KEY_FILE: keyFile, ...options.env } })
    const name = `${printed.length}: coffer ${words.join(' ').slice(0, 60)}`
    printed.push({ name, bytes: Buffer.from(`${outcome.stdout}\n${outcome.stderr}`) })
    return outcome
  }
  const keyFile = join(home.place, 'the.key')
  const secrets = [...SECRETS]

  t.equal((await run(['init'])).code, 0)
  secrets.push(...readFileSync(keyFile, 'utf8').trim().split(' ').slice(-1))
  for (const [type, data] of Object.entries(DATA)) {
    const search_indexes = type === 'bank' ? ['{{ data.account_number }}'] : undefined
    for (const output of ['json', 'table']) {
      const stdin = JSON.stringify({ id: `${output}-${type}`, type, data, search_indexes })
      const made = await run(['token', 'create', '--output', output, '--no-deduplicate-token'], { stdin })
      t.equal(made.code, 0, made.stderr)
    }
  }
  for (const output of ['json', 'ndjson', 'table', 'csv', 'id']) {
    t.equal((await run(['token', 'list', '--output', output])).code, 0)
    t.equal((await run(['token', 'get', 'json-card', '--output', output])).code, 0)
  }
  t.equal((await run(['token', 'list'], { columns: 100 })).code, 0)
  const patch = '{"data":{"note":"patched-secret-value"},"mask":{"length":"{{ data.note | size }}"}}'
  t.equal((await run(['token', 'update', 'json-token'], { stdin: patch })).code, 0)
  const search = await run(['token', 'search', '--query', 'type:bank'])
  t.equal(search.code, 0, search.stderr)

  // Commands with these inputs fail. Each of the inputs contains a secret.
  const bodies = [
    '{"type":"card","data":{"number":"4111111111111112"}}',
    '{"type":"card","data":{"4111111111111112":1,"number":"4000056655665556"}}',
    '{"type":"4111111111111112","data":1}',
    '{"id":"{{ data }}","type":"token","data":"4111111111111112/broken-json-secret"}',
    '{"type":"token","data":"broken-json-secret","mask":"{{ data | to_number }}"}',
    '{"type":"token","data":{"a":"broken-json-secret"},"search_indexes":["{{ data }}"]}',
    '{"type":"token","data":"broken-json-secret"',
    '{"type":"token","data":broken-json-secret}',
    '{"type":"token","data":{"broken-json-secret":1,"broken-json-secret":2}}',
    '"broken-json-secret"',
  ]
  const lines = [
    'token create --type card --data "argument-secret-value"',
    'token create --type card --data argument-secret-value',
    'token create --type token --dta=argument-secret-value',
    'token create -dargument-secret-value',
    'token create argument-secret-value',
    'token get 4111111111111112',
    'token update json-card --data {"number":"4111111111111112"}',
    'token list --metadata argument-secret-value',
    'token list --size 4111111111111112',
  ]
  const locked = ['vault', 'status', '--passphrase-command']
  const env = { COFFER_KEY_FILE: '' }
  const failing: [words: string[], options: Omit<Run, 'words'>][] = [
    ...bodies.map((stdin): [string[], object] => [['token', 'create'], { stdin }]),
    ...lines.map((line): [string[], object] => [line.split(' '), {}]),
    [['token', 'update', 'json-card'], { stdin: '{"data":"broken-json-secret"}' }],
    [['token', 'create', '--type', 'token', `--pass='${PASSPHRASE}'`], {}],
    [[...locked, `printf '%s' '${PASSPHRASE}'; echo broken-json-secret >&2; exit 1`], { env }],
    [[...locked, `printf '%s' '${PASSPHRASE}'`], { env }],
  ]
  const begun = { '? data': '{"a":"broken-json-secret"\r', 'too early': '\u0003' }
  const asked = { columns: 100, answers: Object.entries(begun) }
  for (const [words, options] of failing)
    for (const output of ['json', 'table'])
      t.not((await run([...words, '--output', output], options)).code, 0, words.join(' ').slice(0, 60))
  t.not((await run(['token', 'create', '--type', 'token', '--output', 'table'], asked)).code, 0)

  const app = 'app create --name a --type private --permission token:read'
  const application = await home.json(app, { env: { COFFER_KEY_FILE: keyFile } })
  secrets.push(application.key)
  for (const line of ['app whoami', 'token list', 'token delete json-card --yes', 'app list'])
    await run(line.split(' '), { env: { COFFER_API_KEY: application.key } })
  await run(['token', 'list'], { env: { COFFER_API_KEY: `${application.key}x` } })
  await run(['app', 'list'])
  t.equal((await run(['token', 'delete', 'table-card', '--yes'])).code, 0)
  t.equal((await run(['vault', 'status'])).code, 0)

  home.write('passphrase', PASSPHRASE)
  const second = ['--vault', 'second', '--passphrase-file', 'passphrase']
  t.equal((await run(['init', ...second], { env })).code, 0)
  const stdin = JSON.stringify({ type: 'card', data: DATA.card })
  t.equal((await run(['token', 'create', ...second], { stdin, env })).code, 0)

  const trees = ['.coffer', 'second', 'tmp'].map((name) => readTree(join(home.place, name)))
  const files = (await Promise.all(trees)).flat()
  t.ok(files.length > 8, `${files.length} files`)
  t.same(findLeaks(secrets, [...printed, ...files]), [])
  t.same(reached, [], 'no command opens a connection')

  const { stdout } = await home.run('token get json-token --reveal', { env: { COFFER_KEY_FILE: keyFile } })
  const found = findLeaks(secrets, [{ name: 'revealed', bytes: Buffer.from(stdout) }])
  const shown = [...new Set(found.map(({ secret }) => secret))].sort()
  t.same(
    shown,
    ['Wilhelmina Ångström', 'patched-secret-value'],
    'the search finds the secrets that a command was asked to reveal',
  )
})
