/**
 * `coffer token import` reads files, creates tokens and writes results. Each row is created once, even if the import is
 * interrupted.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Fetch } from '../../../src/client/http-client.js'
import { openTestVault } from '../../../src/index.js'
import type { Run } from '../fake-process.js'
import { createHome, createVaultHome, type Home, testVault } from '../home.js'

const CARD = '4242424242424242'
const line = (data: unknown, more: object = {}) => `${JSON.stringify({ type: 'token', data, ...more })}\n`
const lines = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => line(`row ${from + at}`)).join('')
const total = async (home: Home) => (await home.json('token list --size 1')).pagination.total_items
const results = (home: Home, name: string): { line: number; status: string; id?: string }[] => {
  const lines = readFileSync(join(home.place, name), 'utf8').split('\n').slice(0, -1)
  return lines.map((text) => JSON.parse(text)).filter((result) => !('run' in result))
}

testVault('files and standard input can be imported in all three formats', async (t, home) => {
  home.write('a.ndjson', line('a') + line('b'))
  home.write('b.json', `[${line('a')},${line('b')}]`)
  home.write('c.csv', `number,who\n${CARD},7\n`)
  const map = '--map number=data --map who=metadata.customer --type card_number'
  const files = { 'a.ndjson': 2, 'b.json': 2, '-': 1, [`c.csv ${map}`]: 1 }
  for (const [words, created] of Object.entries(files)) {
    const report = await home.json(`token import ${words}`, { stdin: `  ${line('c')}` })
    t.match(report, { created, deduplicated: 0, refused: 0 }, words)
  }
  const { data } = await home.json('token list --type card_number')
  t.match(data, [{ data: 'XXXXXXXXXXXX4242', metadata: { customer: '7' } }])
  t.equal(await total(home), 6)
  for (const bad of ['missing.csv', 'a.ndjson --format xml', 'a.ndjson --map x'])
    t.equal((await home.run(`token import ${bad}`)).code, 2)
})

testVault('a refused row ends the import, unless --continue-on-error skips the row', async (t, home) => {
  home.write('rows.ndjson', `${line('a')}\n{"type":"card","data":{"number":"${CARD}1"}}\n{oops\n${line('d')}`)
  const run = (more: string) => home.run(`token import rows.ndjson ${more}`)
  const stopped = await run('--results r1')
  const stdout = /"created":1,"deduplicated":0,"refused":1/
  t.match(stopped, { code: 2, stdout, stderr: /stopped at line 3, with 1 row done/ })
  const refused = { line: 3, status: 'refused', reason: /number/ }
  t.match(results(home, 'r1'), [{ line: 1, status: 'created' }, refused])
  t.equal(statSync(join(home.place, 'r1')).mode & 0o777, 0o600)
  t.match(await run('--continue-on-error --results r1'), { code: 5, stderr: /exists already/ })
  const all = await run('--continue-on-error --results r2')
  t.match(all, { code: 2, stdout: /"created":2,.*"refused":2/, stderr: /refused: 2; the first is line 3/ })
  const wrong = { line: 4, status: 'refused' }
  t.match(results(home, 'r2'), [{ line: 1 }, refused, wrong, { line: 5, status: 'created' }])
  t.equal(await total(home), 3)
  t.notMatch(stopped.stderr + all.stderr + readFileSync(join(home.place, 'r2'), 'utf8'), CARD)
  for (const more of ['--dry-run', '--dry-run --continue-on-error']) {
    const rehearsed = await run(more)
    t.match(rehearsed, { code: 2, stdout: /"would_be_created":2,.*"refused":2/ }, more)
    t.match(
      rehearsed.stderr,
      /^error: Rows that would be refused: 2\.\n {2}line 3: .*number.*\n {2}line 4: .*\n$/,
    )
    t.notMatch(rehearsed.stderr, CARD)
  }
  t.equal(await total(home), 3, 'a dry run writes nothing')
  t.equal((await run('--dry-run --resume s')).code, 2)
})

testVault(
  'a dry run lists the first twenty refused rows, and the results file has all of them',
  async (t, home) => {
    const stdin = '{"type":"x"}\n'.repeat(25)
    const { code, stdout, stderr } = await home.run('token import --dry-run --results r', { stdin })
    t.match({ code, stdout }, { code: 2, stdout: /"would_be_created":0,.*"refused":25/ })
    t.match(
      stderr,
      'Rows that would be refused: 25. Only the first 20 are listed. To write all results to a file: --results FILE\n',
    )
    t.match(stderr, /^ {2}line 20: type: /m)
    t.notMatch(stderr, 'line 21')
    t.equal(results(home, 'r').length, 25)
    const inJson = await home.run('token import --dry-run -o json', { stdin: '{"type":"x"}\n'.repeat(2) })
    t.match(Object.keys(JSON.parse(inJson.stderr).errors), ['line 1', 'line 2'])
  },
)

const RESUME = ['token', 'import', 'rows.ndjson', '--resume', 'state']
const stateOf = (home: Home) => readFileSync(join(home.place, 'state'), 'utf8')

testVault(
  'an import that was killed between a commit and its results continues and creates no row twice',
  async (t, home) => {
    home.write('rows.ndjson', lines(250))
    await home.json(RESUME)
    const before = results(home, 'state')
    t.notMatch(stateOf(home), 'row 1')
    // This is the state file of a process that was killed just after the commit of the first batch. The results file
    // has only a part of the results.
    writeFileSync(join(home.place, 'state'), `${stateOf(home).split('\n')[0]}\n{"line":1,"sta`)
    home.write('rows.ndjson', lines(4500))
    t.match(await home.json(RESUME), { created: 4500 })
    const after = results(home, 'state')
    t.same(after.slice(0, 250), before, 'the results of committed rows have not changed')
    t.equal(new Set(after.map(({ id }) => id)).size, 4500)
    t.ok(after.every((result, at) => result.line === at + 1))
    t.equal(await total(home), 4500)
  },
)

testVault(
  'two processes cannot run one import at the same time, and a killed process does not block the import',
  async (t, home) => {
    home.write('rows.ndjson', lines(3000))
    home.write(
      'state.lock',
      JSON.stringify({ host: hostname(), boot: 'before', pid: process.pid, nonce: 'x' }),
    )
    const both = await Promise.all([home.run(RESUME), home.run(RESUME)])
    const [done, refused] = both.sort((a, b) => a.code - b.code)
    t.match(done, { code: 0, stdout: /"created":3000/ })
    t.match(refused, { code: 9, stderr: /state\.lock is in use by process \d+\./ })
    t.equal(await total(home), 3000)
    t.notOk(existsSync(join(home.place, 'state.lock')))
  },
)

testVault('an import can be resumed only with the same vault, tenant, options and files', async (t, home) => {
  const far = await connect(t)
  const { private: key, management } = far.vault.keys
  for (const { write } of [home, far.home]) write('rows.ndjson', lines(3))
  await home.json('init --vault other')
  await home.json('tenant create second')
  const own = (words: readonly string[]) => home.run([...RESUME, ...words])
  const remote = (env: object) => far.run(RESUME.slice(2), env)
  t.equal((await own([])).code, 0)
  t.equal((await remote({})).code, 0)
  t.notMatch(stateOf(far.home), key)
  for (const refused of [
    await own(['--vault', 'other']),
    await own(['--tenant', 'second']),
    await own(['--type', 'token']),
    await home.run(['token', 'import', 'other.ndjson', '--resume', 'state']),
    await remote({ COFFER_API_KEY: management }),
    await remote({ COFFER_URL: 'http://127.0.0.1' }),
  ])
    t.match(refused, { code: 2, stderr: /belongs to another import/ })
  const precious = home.write('precious', 'kept')
  symlinkSync(precious, join(home.place, 'link'))
  t.equal(
    (await home.run('token import rows.ndjson --resume link')).code,
    1,
    'a symbolic link is not followed',
  )
  for (const text of ['kept', '{"run":"../x"}\n', `${JSON.stringify({ run: randomUUID() })}\n`]) {
    home.write('precious', text)
    t.equal((await home.run('token import rows.ndjson --resume precious')).code, 2)
    t.equal(readFileSync(precious, 'utf8'), text, 'a file that no import wrote is not changed')
  }
  t.equal((await own(['--results', 'done'])).code, 2)
})

testVault('if a file has grown since its import, only the new rows are imported', async (t, home) => {
  const far = await connect(t)
  for (const [place, run] of [
    [home, () => home.run(RESUME)],
    [far.home, () => far.run(RESUME.slice(2))],
  ] as const) {
    place.write('rows.ndjson', lines(3))
    t.match((await run()).stdout, /"created":3/)
    t.match(await run(), { code: 0, stdout: /"resumed_after":3,"created":0/ })
    place.write('rows.ndjson', lines(5))
    t.match(await run(), { stdout: /"resumed_after":3,"created":2/ })
    t.equal(results(place, 'state').length, 5)
    place.write('rows.ndjson', lines(4))
    t.match(await run(), { code: 2, stderr: /fewer rows than the 5 .*another file as --resume/ })
  }
})

testVault(
  'if a line of the --resume file is missing or was added, the error names the line, and its advice repairs the run',
  async (t, home) => {
    const far = await connect(t)
    for (const [place, run] of [
      [home, () => home.run(RESUME)],
      [far.home, () => far.run(RESUME.slice(2))],
    ] as const) {
      place.write('rows.ndjson', `\n${lines(5)}`)
      t.match(await run(), { code: 0 })
      // The command can repair the state of the last batch, because it writes lost results again. The cases below must
      // damage an earlier batch, so this import adds another batch.
      place.write('rows.ndjson', `\n${lines(6)}`)
      t.match(await run(), { code: 0 })
      const sound = stateOf(place).split('\n')
      place.write('rows.ndjson', `\n${lines(8)}`)
      const spoil = async (change: (all: string[]) => void, stderr: RegExp) => {
        const all = [...sound]
        change(all)
        place.write('state', all.join('\n'))
        t.match(await run(), { code: 2, stdout: '', stderr })
        t.equal(stateOf(place), all.join('\n'), 'the file is not changed')
        return all
      }
      const doubled = /Line 4 of .*state has a result for line 3 of the rows, out of order\. Remove that line/
      await spoil((all) => all.splice(3, 0, all[2]!), doubled)
      await spoil((all) => all.splice(3, 0, 'x'), /Line 4 of .*state is not a result\. Remove that line/)
      await spoil((all) => all.splice(3, 2, all[4]!, all[3]!), /no result for line 4/)
      const lost =
        /no result for line 4 of the rows\. Insert this line as line 4 of .*state: (.*)\n.*changed rows up to line 7 since/
      const all = await spoil((all) => all.splice(3, 1), lost)
      const [, inserted] = lost.exec((await run()).stderr)!
      all.splice(3, 0, inserted!)
      place.write('state', all.join('\n'))
      t.match(await run(), { code: 0, stdout: /"resumed_after":6,"created":2/ })
      t.same(
        results(place, 'state').map((result) => result.line),
        [2, 3, 4, 5, 6, 7, 8, 9],
      )
      t.equal(new Set(results(place, 'state').map(({ id }) => id)).size, 8)
      place.write('state', `${stateOf(place)}${stateOf(place).split('\n').at(-2)}\n`)
      t.match(await run(), {
        code: 2,
        stderr: /Line 10 of .*state has a result for line 9 .*Remove that line/,
      })
    }
    t.equal(await total(home), 8)
  },
)

testVault('no row is imported twice if the end of the --resume file is lost', async (t, home) => {
  const far = await connect(t)
  for (const [place, run, code, stderr] of [
    [
      home,
      () => home.run(RESUME),
      5,
      /has imported 1500 rows.* copy the rows after row 1500 into a new file/,
    ],
    [
      far.home,
      () => far.run(RESUME.slice(2)),
      2,
      /has 900 results, but 1000 rows were imported, and perhaps the next batch too/,
    ],
  ] as const) {
    place.write('rows.ndjson', lines(1500))
    t.match(await run(), { code: 0 })
    const whole = stateOf(place)
    const cut = `${whole.split('\n').slice(0, 901).join('\n')}\n`
    place.write('state', cut)
    t.match(await run(), { code, stderr })
    t.equal(stateOf(place), cut)
    place.write('state', `${whole}{"line":1501,"status":"created"}\n`)
    if (place === home) {
      place.write('rows.ndjson', lines(1502))
      t.match(await run(), {
        code: 5,
        stderr: /lines were added to the --resume file, remove all lines after line 1501/,
      })
    }
  }
  t.equal(await total(home), 1500)
  t.equal(await far.all(), 1500)
})

testVault('an import run continues after its refused row was corrected', async (t, home) => {
  home.write('rows.ndjson', `${line('a')}${line(null)}${line('c')}`)
  t.equal((await home.run(RESUME)).code, 2)
  t.equal((await home.run(RESUME)).code, 2)
  home.write('rows.ndjson', lines(3))
  t.match(await home.json(RESUME), { resumed_after: 1, created: 2 })
  t.match(results(home, 'state'), [{ status: 'created' }, { status: 'created' }, { status: 'created' }])
  t.equal(await total(home), 3)
})

testVault('an import that is resumed fails if its earlier runs have refused rows', async (t, home) => {
  home.write('rows.ndjson', `${line('a')}${line(null)}${line('c')}`)
  const words = [...RESUME, '--continue-on-error']
  t.match(await home.run(words), { code: 2, stderr: /^error: Rows refused: 1; the first is line 2: / })
  const earlier = /^error: Rows refused: 1, 1 of them in earlier runs; the first is line 2: /
  t.match(await home.run(words), { code: 2, stdout: /"resumed_after":3,"created":0/, stderr: earlier })
  home.write('rows.ndjson', `${line('a')}${line(null)}${line('c')}${line(null)}${line('e')}`)
  const both = /^error: Rows refused: 2, 1 of them in earlier runs; the first is line 2: /
  t.match(await home.run(words), { code: 2, stdout: /"created":1,.*"refused":1/, stderr: both })
  t.equal(await total(home), 3)
})

testVault(
  'a command that has made its change but cannot remove its lock prints a warning',
  async (t, home) => {
    home.write('rows.ndjson', lines(1000))
    const lock = join(home.place, '.coffer', 'lock')
    // The test replaces the lock file by a directory. A program that removes files cannot remove a directory, even as
    // root.
    const watch = (text: string) => {
      if (!/250/.test(text) || statSync(lock).isDirectory()) return
      rmSync(lock)
      mkdirSync(lock)
    }
    const { code, stderr } = await home.run(RESUME, { columns: 80, watch, env: { COFFER_OUTPUT: 'json' } })
    t.equal(code, 0)
    t.match(stderr.replace(/\s+/g, ' '), /warning: The lock .*lock was not removed\. .* remove it: rm -r /)
    rmSync(lock, { recursive: true })
    t.equal(await total(home), 1000)
  },
)

testVault(
  'an interrupt ends an import between two batches, and a message says how to continue',
  async (t, home) => {
    home.write('rows.ndjson', lines(8000))
    const options = { columns: 80, interruptAt: '250', env: { COFFER_OUTPUT: 'json' } }
    const { code, stderr } = await home.run(RESUME, options)
    t.equal(code, 130)
    t.match(stderr, /Stopping…[\s\S]*Interrupted after 250 rows\. Run the same command to continue\./)
    t.match(stderr, /█.* %/, 'a progress bar is shown')
    t.match(await home.json(RESUME), { resumed_after: 250, created: 7750 })
    t.equal(await total(home), 8000)
  },
)

t.test(
  'if an import is interrupted while a server handles a batch, the message says that the server may have imported the batch',
  async (t) => {
    const { home, run } = await connect(t)
    home.write('rows.ndjson', lines(3))
    const stop = new AbortController()
    const fetch: Fetch = (_, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('cut')))
        stop.abort()
      })
    const stderr = /Interrupted after 0 rows, and perhaps one more batch\. Run the same command to continue/
    t.match(await run(RESUME.slice(2), {}, { fetch, interrupt: stop.signal }), { code: 130, stderr })
    t.match((await run(RESUME.slice(2))).stdout, /"created":3/)
  },
)

/** Creates a home whose imports go to a server in this process. `lose` selects the requests whose answer is lost. */
async function connect(t: Test, lose: (asked: number) => boolean = () => false) {
  const vault = await openTestVault()
  t.teardown(() => vault.stop())
  const home = createHome(t)
  let asked = 0
  const fetch: Fetch = async (url, init) => {
    const answer = vault.fetch(url, init)
    if (lose(++asked)) throw Object.assign(new Error('lost'), { code: 'ECONNRESET' })
    return answer
  }
  Object.assign(home.env, { COFFER_URL: 'http://localhost', COFFER_API_KEY: vault.keys.private! })
  const run = (words: readonly string[], env = {}, more: Partial<Run> = {}) =>
    home.run(['token', 'import', ...words], { fetch, env, ...more })
  const all = async () => (await vault.ask('token list', {})).pagination.total_items
  return { home, run, all, vault }
}

t.test(
  'an import to a server reports refused rows, and with --continue-on-error imports the other rows',
  async (t) => {
    const { home, run, all } = await connect(t)
    const bad = [5, 700, 701, 1500]
    const rows = Array.from({ length: 2000 }, (_, at) => (bad.includes(at) ? line(null) : line(`row ${at}`)))
    rows[900] = '{"data":"without a type"}\n'
    rows[1000] = line('x', { id: 'same-id' })
    rows[1001] = line('y', { id: 'same-id' })
    home.write('rows', rows.join(''))
    t.match(await run(['rows', '--dry-run']), { code: 2, stderr: /only on a vault, not on a server/ })
    const { code, stdout } = await run(['rows', '--continue-on-error', '--results', 'done'])
    t.match({ code, stdout }, { code: 2, stdout: /"created":1994,"deduplicated":0,"refused":6/ })
    const refused = results(home, 'done').filter(({ status }) => status === 'refused')
    t.equal(refused.map(({ line: at }) => at - 1).join(), '5,700,701,900,1001,1500')
    t.match(refused[0], { reason: /^data/, errors: { data: [/required|null/] } })
    t.equal(await all(), 1994)
    const stopped = await run(['rows'])
    t.match(stopped, { code: 2, stderr: /stopped at line 6, with 5 rows done/ })
    t.equal(await all(), 1999)
  },
)

t.test('a batch whose answer was lost is sent again unchanged, and no row is created twice', async (t) => {
  for (const [title, before, after, lost] of [
    ['a whole batch', lines(2500), lines(2500), 2],
    ['a batch of a file that has grown', lines(3), lines(5), 1],
    ['half a batch, whose refused row was corrected', lines(5) + line(null), lines(6), 2],
  ] as const) {
    const { home, run, all } = await connect(t, (asked) => asked === lost)
    home.write('rows.ndjson', before)
    t.match(await run(RESUME.slice(2)), { code: 9, stderr: /may have performed/ }, title)
    home.write('rows.ndjson', after)
    t.match(await run(RESUME.slice(2)), { code: 0 }, title)
    // If the disk becomes full during the last batch, the end of the state file is missing.
    home.write('state', stateOf(home).slice(0, -20))
    t.match(await run(RESUME.slice(2)), { code: 0, stdout: /"resumed_after":\d/ }, title)
    t.equal(await all(), after.split('\n').length - 1, title)
  }
})

t.test(
  'a column that does not name a token field is refused, and the error has a command that imports the column as secret data',
  async (t) => {
    const home = await createVaultHome(t)
    home.write('my rows.csv', 'ssn,id,full name\n078-05-1120,ada,Ada\n')
    const refused = await home.run(['token', 'import', 'my rows.csv', '--results', 'r1'])
    t.match(refused, { code: 2, stderr: /Columns without a token field: "ssn", "full name"\./ })
    const map = "--map ssn=data.ssn --map 'full name=data.full name'"
    const words = `token import 'my rows.csv' --results r1 ${map} --type token`
    t.equal(
      refused.stderr.trimEnd().split('\n').at(-1),
      `  coffer ${words}`,
      'the command is on its own line',
    )
    const pasted = Array.from(words.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, plain]) => quoted ?? plain!)
    t.match(await home.run(pasted), { code: 0, stdout: /"created":1/ })
    t.match(await home.json('token get ada --reveal'), { data: { ssn: '078-05-1120', 'full name': 'Ada' } })
    home.write('data.csv', 'data\na\n')
    t.match(
      (await home.run('token import data.csv')).stderr,
      /type: is required; give the type with --type token/,
    )
    home.write('cut.csv', `type,data\n${'token,1\n'.repeat(2500)}token,"`)
    t.match((await home.run('token import cut.csv')).stderr, /^Stopped after [\d,]+ rows\./m)
  },
)

testVault('an import that created nothing does not reserve its --resume file', async (t, home) => {
  home.write('rows.csv', `pan\n${CARD}\n`)
  const run = (...more: string[]) => home.run(['token', 'import', 'rows.csv', '--resume', 'state', ...more])
  t.match(await run(), { code: 2, stderr: /: "pan"/ })
  t.match(await home.run('token import nowhere.csv --resume state'), { code: 2 })
  t.match(await run('--map', 'pan=data.number', '--type', 'nothing'), { code: 2, stderr: /type/ })
  t.match(await run('--map', 'pam=data.number'), { code: 2, stderr: /no column "pam"; did you mean pan\?/ })
  t.equal(statSync(join(home.place, 'state')).size, 0)
  const right = ['--map', 'pan=data.number', '--type', 'card']
  t.match(await run(...right), { code: 0, stdout: /"created":1/ })
  t.match(await run('--map', 'pan=data', '--type', 'card_number'), {
    code: 2,
    stderr: /belongs to another import/,
  })
  t.match(await run(...right), { code: 0, stdout: /"resumed_after":1,"created":0/ })
})
