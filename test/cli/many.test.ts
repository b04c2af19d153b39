/** Commands that receive several ids or several bodies. */
import t from 'tap'
import type { Fetch } from '../../src/client/http-client.js'
import { openTestVault } from '../../src/index.js'
import { createHome, type Home, testVault } from './home.js'

const BODIES = ['one', 'two', 'three']
  .map((id) => `{"id":"${id}","type":"token","data":"d-${id}"}\n`)
  .join('')
/** Matches the error of a command for several ids, one of which does not exist. */
const stopped = /no-such: .*\(done before: 1; not done: no-such and 1 more after it\)/
const ids = async (home: Home) => (await home.run('token list --output id')).stdout

testVault(
  'each line of NDJSON, from standard input or a file, creates a token with the given flags',
  async (t, home) => {
    const create = (more: string, stdin = '') => home.run(`token create${more}`, { stdin })
    const made = await create(' --metadata a=b --fields id,metadata', `${BODIES}\n`)
    t.equal(
      made.stdout,
      ['one', 'two', 'three'].map((id) => `{"id":"${id}","metadata":{"a":"b"}}\n`).join(''),
    )
    home.write('apps.ndjson', '{"name":"a","type":"private"}\n{"name":"b","type":"public"}')
    const apps = await home.run('app create --file apps.ndjson --permission token:create --output id')
    t.equal(apps.stdout.trim().split('\n').length, 2)
    const body = '{"type":"token","data":1}\n'
    t.equal(
      (await create('', '{"type":\n"token","data":{\n}\n}')).code,
      0,
      'a single body may span several lines',
    )
    t.equal((await create('', `${body}${body}`)).code, 0)
  },
)

testVault('the first refused line ends the command, whatever the reason', async (t, home) => {
  const good = (id: string) => `{"id":"${id}","type":"token","data":1}`
  for (const [bad, reason] of [
    ['{"type":"token","data":}', 'the JSON is refused at line 3, column 24: expected a JSON value'],
    ['[1]', 'the JSON must contain one JSON object'],
    ['{"type":"x","data":2}', 'type: must be one of'],
    ['{"data":2}', 'type: is required'],
    [good('first'), 'There is a token with this id already'],
    ['{"type":"token","data":2,"expires_at":"never"}', 'expires_at: must be an existing date'],
  ] as const) {
    const { code, stderr } = await home.run('token create', {
      stdin: `${good('first')}\n\n${bad}\n${good('last')}\n`,
    })
    t.ok(code > 0, bad)
    t.match(stderr, `error: line 3: ${reason}`, bad)
    t.match(stderr, /\(done before: 1; not done: line 3 and 1 more after it\)\n$/, bad)
    t.equal(await ids(home), 'first\n', 'the lines before it are stored and the lines after it are not')
    await home.run('token delete first --yes')
  }
  const { stderr } = await home.run('token create', { stdin: `${good('abc')}\n{"type":"token"}\n` })
  t.match(stderr, /\(done before: 1; not done: line 2\)/, 'the last line is refused')
})

testVault(
  'if a name does not exist, the command handles the names before it and then reports the missing name',
  async (t, home) => {
    for (const name of ['front', 'back']) await home.createApp({ name, permissions: ['token:read'] })
    const stderr =
      /^error: frnt: No app "frnt". Did you mean "front".*\(done before: 1; not done: frnt and 1 more after it\)/
    t.match(await home.run('app delete back frnt front --yes'), { code: 3, stderr })
    t.equal((await home.json('app list')).pagination.total_items, 1)
  },
)

testVault('if the answer to a change cannot be printed, the change still counts as done', async (t, home) => {
  const stdin = BODIES
  const { stderr } = await home.run('token create', { stdin, stdoutFailure: 'ENOSPC' })
  t.match(
    stderr,
    /^error: line 1: coffer token create was carried out\. .*\(done before: 0; not done: 2 more after it\)/,
  )
  t.equal(await ids(home), 'one\n')
})

testVault('a command with an id takes several ids, also as lines of standard input', async (t, home) => {
  await home.run('token create', { stdin: BODIES + BODIES.replace(/"id":"/g, '"id":"gone-') })
  const asked = { columns: 100, answers: [['Continue?', 'n\n']] } as const
  for (const [line, expected, options] of [
    [
      'get three one --reveal --fields data',
      { code: 0, stdout: /^\{"data":"d-three"\}\n\{"data":"d-one"\}\n$/ },
    ],
    ['get - --fields id', { stdout: /^\{"id":"two"\}\n\{"id":"one"\}\n$/ }, { stdin: '\n two\r\none' }],
    ['get one two --output table --fields id', { stdout: /^id\s*\none\s*\ntwo\s*\n$/ }],
    ['get one no-such two --fields id', { code: 3, stdout: /^\{"id":"one"\}\n$/, stderr: stopped }],
    ['delete gone-one no-such gone-two --yes', { code: 3, stdout: /^$/, stderr: stopped }],
    ['get gone-two --fields id', { code: 0 }],
    ['delete gone-two gone-three --yes', { code: 0 }],
    ['update one two --metadata a=b --output id', { stdout: /^one\ntwo\n$/ }],
    ['link one two three', { code: 0 }],
    ['children one', { stdout: '"total_items":2' }],
    ['delete -', { code: 2, stderr: /--yes/ }, { stdin: 'one\n' }],
    ['delete one two', { code: 130, stderr: /token one two\. Continue/ }, asked],
    ['delete - --yes', { code: 0 }, { stdin: 'one\ntwo\n' }],
    ['list --output id', { stdout: /^three\n$/ }],
    ['get -', { code: 0, stdout: /^$/ }],
    ['get one two --explain', { code: 2 }],
    ['get one two --curl', { code: 2 }],
    ['update a b --metadata a=b --idempotency-key k', { code: 2, stderr: /one id or body at a time/ }],
  ] as const)
    t.match(await home.run(`token ${line}`, options), expected, line)
})

testVault('several names can be given in place of ids', async (t, home) => {
  for (const name of ['front', 'back']) await home.createApp({ name, permissions: ['token:read'] })
  const { stdout } = await home.run('app get back front --fields name')
  t.equal(stdout, '{"name":"back"}\n{"name":"front"}\n')
  const stderr = /nobody: .*\(done before: 1; not done: nobody and 1 more after it\)/
  t.match(await home.run('app delete back nobody front --yes'), { code: 3, stderr })
  t.equal((await home.run('app delete front --yes')).code, 0)
  t.equal((await home.json('app list')).pagination.total_items, 0)
})

testVault(
  'an interrupted command reports how many ids it has handled and how to continue',
  async (t, home) => {
    const all = Array.from({ length: 250 }, (_, at) => `many-${at}`)
    const rows = all.map((id) => `{"id":"${id}","type":"token","data":"x"}\n`).join('')
    for (const output of ['table', 'json']) {
      await home.run('token import', { stdin: rows })
      const remove = (from: number, more: object) =>
        home.run(['token', 'delete', ...all.slice(from), '--yes', '-o', output], { columns: 200, ...more })
      const stopped = await remove(0, { interruptAt: '1/250' })
      t.equal(stopped.code, 130)
      const found = /Interrupted\. Continue with many-(\d+) \(done before: (\d+)\)/.exec(stopped.stderr) ?? []
      const [next, done] = found.slice(1).map(Number)
      t.equal(next, done)
      t.ok(done! >= 1)
      if (output === 'json') t.match(stopped.stderr, '"type": "urn:coffer:problem:interrupted"')
      t.equal((await home.json('token list')).pagination.total_items, 250 - done!)
      t.match(await remove(done!, {}), { code: 0, stderr: /token delete: \d+ in / })
    }
  },
)

t.test(
  'if a request to a server is interrupted, the message says that the server may have performed the request',
  async (t) => {
    const vault = await openTestVault()
    t.teardown(() => vault.stop())
    const home = createHome(t)
    const env = { COFFER_URL: 'http://localhost:4010', COFFER_API_KEY: vault.keys.private! }
    const pass: Fetch = (url, init) => vault.fetch(url, init)
    const all = ['t-0', 't-1', 't-2', 't-3']
    const stdin = all.map((id) => `{"id":"${id}","type":"token","data":"d"}`).join('\n')
    t.equal((await home.run('token create', { fetch: pass, env, stdin })).code, 0)
    const stop = new AbortController()
    const fetch: Fetch = async (url, init) => {
      if (!url.endsWith('t-1')) return vault.fetch(url, init)
      setTimeout(() => stop.abort(), 100)
      return new Promise((_, reject) => init.signal.addEventListener('abort', () => reject(new Error('cut'))))
    }
    const stopped = await home.run(['token', 'delete', ...all, '--yes'], {
      ...{ fetch, env },
      interrupt: stop.signal,
    })
    t.match(stopped, {
      code: 130,
      stderr: 't-1: Interrupted. (done before: 1; perhaps done: t-1; not done: 2 more after it)',
    })
    const left = await home.run('token list --output id', { fetch: pass, env })
    t.equal(left.stdout, 't-3\nt-2\nt-1\n')
  },
)
