import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { createMachine, PROGRAM, waitFor } from '../support/process.js'
import { killCommands } from './kill.js'

const CARD = '{"type":"card","data":{"number":"4242424242424242"}}'

t.setTimeout(400_000)

t.test('a command ends properly if one of its streams is closed, empty or full', async (t) => {
  const machine = await createMachine(t)
  const body = JSON.stringify({ type: 'token', data: 'x'.repeat(200_000), mask: '{{ data }}', id: 'large' })
  t.equal((await machine.coffer(['token', 'create', '--output', 'id'], body)).code, 0)
  const missing = /^error: Missing: --type, --data\. Give them as flags, as --file, or as JSON/m
  const silent = { stdout: /^$/, stderr: /^$/ }
  const full = /^error: The output could not be written \(ENOSPC\)\.$/m
  for (const [line, expected] of [
    ['token get large | head -c 10 >/dev/null; exit "${PIPESTATUS[0]}"', { code: 0, ...silent }],
    ['token list --all --output ndjson | true; exit "${PIPESTATUS[0]}"', { code: 0, ...silent }],
    ['token create </dev/null', { code: 2, stdout: /^$/, stderr: missing }],
    ['token create <&-', { code: 2, stdout: /^$/ }],
    ['token list >/dev/null', { code: 0, ...silent }],
    ['token get none 2>&-', { code: 3, ...silent }],
    ...(existsSync('/dev/full') ? ([['token list >/dev/full', { code: 1, stderr: full }]] as const) : []),
  ] as const)
    t.match(await machine.bash(`coffer ${line}`), expected, line)
  const { code } = await waitFor(machine.start(['token', 'list', '--output', 'id']))
  t.equal(code, 0, 'the command does not wait for a standard input that stays open')
})

t.test(
  'a command loads no part of the bundle and no cryptography that it does not need, and does not read standard input',
  async (t) => {
    const machine = await createMachine(t)
    const stdin = CARD.replace('{', '{"id":"one",')
    t.equal((await machine.coffer(['token', 'create', '--output', 'id'], stdin)).code, 0)
    const probe = join(machine.place, 'probe.cjs')
    const found = join(machine.place, 'loaded.json')
    writeFileSync(
      probe,
      `const { get } = Object.getOwnPropertyDescriptor(process, 'stdin')
    const loaded = []
    Object.defineProperty(process, 'stdin', { get: () => (loaded.push('stdin'), get.call(process)) })
    const { openSync } = fs = require('node:fs')
    fs.openSync = (path, ...rest) => {
      const [, part] = /\\/dist\\/coffer-(\\w+)\\.cjs$/.exec(path) ?? []
      if (part !== undefined) loaded.push(part)
      return openSync(path, ...rest)
    }
    process.on('exit', () => {
      if (process.moduleLoadList.includes('NativeModule crypto')) loaded.push('crypto')
      fs.writeFileSync(${JSON.stringify(found)}, JSON.stringify(loaded))
    })`,
    )
    for (const [line, expected] of [
      ['--version', []],
      ['--help', ['server', 'more', 'rest']],
      ['token get one', ['crypto']],
      ['token list', ['crypto']],
      ['token create --help', []],
      ['app list', ['more', 'crypto']],
      ['token delete one --yes', ['server', 'crypto']],
    ] as const) {
      const child = machine.start(line.split(' '), ['--require', probe])
      child.stdin?.end()
      t.equal((await waitFor(child)).code, 0, line)
      t.same(JSON.parse(readFileSync(found, 'utf8')), expected, line)
    }
    const bundle = readFileSync(new URL('../../coffer.cjs', import.meta.url), 'utf8')
    t.notMatch(bundle, 'schema with key or id', 'the bundle does not contain the compiler of ajv')
    t.notMatch(bundle, 'lockdown(', 'the bundle does not contain ses')
  },
)

t.test(
  'a signal ends a command at once, even while the command shows a question or waits for the reader of its output',
  async (t) => {
    const machine = await createMachine(t)
    const dataOf = (at: number) => (at === 7 ? 'x'.repeat(300_000) : 'y')
    const tokens = Array.from({ length: 20 }, (_, at) => ({
      type: 'token',
      data: dataOf(at),
      mask: '{{ data }}',
    }))
    t.equal((await machine.coffer(['token', 'tokenize'], JSON.stringify(tokens))).code, 0)
    for (const [output, signal] of [
      ['table', 'SIGINT'],
      ['json', 'SIGTERM'],
      ['ndjson', 'SIGINT'],
      ['csv', 'SIGTERM'],
    ] as const) {
      // Nobody reads the pipe, so it fills up before the command has written everything.
      const child = machine.start(['token', 'list', '--all', '--output', output])
      child.stdout?.pause()
      await new Promise((resolve) => child.stdout?.once('readable', resolve))
      const killing = setTimeout(() => child.kill('SIGKILL'), 10_000)
      child.kill(signal)
      const how = await new Promise((resolve) => child.on('exit', (code, by) => resolve(by ?? code)))
      clearTimeout(killing)
      child.stdout?.destroy()
      t.ok(how === signal || how === 130, `${output} ended by ${how}`)
    }
    t.match(await machine.coffer(['token', 'list', '--size', '1', '--output', 'id']), {
      code: 0,
      stderr: /^$/,
    })
  },
)

t.test('a signal ends a command that waits for more input', async (t) => {
  const machine = await createMachine(t)
  const end = async (child: ChildProcess) => {
    const ended = waitFor(child)
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
    const { code, stderr } = await ended
    clearTimeout(timer)
    t.equal(code, 130, stderr)
    return stderr
  }
  const pipe = join(machine.place, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const line of ['seed apply pipe', 'token import pipe']) {
    const child = machine.start(line.split(' '))
    // The writer of the pipe writes nothing. This call waits until the command opens the pipe to read.
    const writer = await openFile(pipe, 'w')
    await end(child)
    await writer.close()
  }
  const child = machine.start(['token', 'import', '--resume', 'state'])
  child.stdin!.on('error', () => {})
  child.stdin!.write('{"type":"token","data":"a"}\n'.repeat(2001))
  const state = join(machine.place, 'state')
  // The first line of the state file names the run. The import appends one line for each imported row.
  while (!existsSync(state) || readFileSync(state, 'utf8').split('\n').length <= 2001) await pause(10)
  t.match(await end(child), /Interrupted after 2,000 rows/)
})

t.test('a server never writes a core dump, or doctor says that the server cannot prevent it', async (t) => {
  const machine = await createMachine(t)
  const most = 'ulimit -c $(ulimit -Hc)'
  const words = `'${process.execPath}' '${PROGRAM}' serve --ephemeral --port 0 --log none`
  const options = { cwd: machine.place, env: machine.env }
  const child = spawn('bash', ['--norc', '-c', `${most}; exec ${words}`], options)
  const ended = waitFor(child)
  await fetch(/http:\S+/.exec(String(await once(child.stdout!, 'data')))![0])
  const readOf = (name: string) =>
    existsSync(`/proc/self/${name}`) ? readFileSync(`/proc/${child.pid}/${name}`, 'utf8').trim() : undefined
  const [limits, filter] = [readOf('limits'), readOf('coredump_filter')]
  child.kill('SIGTERM')
  await ended
  const findings = async (line: string) =>
    (await machine.bash(`${line}; '${process.execPath}' '${PROGRAM}' doctor`)).stdout
  const isSpoken = (await findings(most)).includes('ulimit -c 0')
  if (limits !== undefined) t.equal(/^Max core file size +0 +0 /m.test(limits), !isSpoken)
  // Programs that handle core dumps ignore the size limit. Therefore the filter of the process must exclude all
  // memory.
  t.match(filter ?? '0', /^0+$/)
  const bare = 'mkdir -p bin; export PATH=$PWD/bin'
  // If the hard limit of the system forbids core dumps, doctor does not advise `ulimit -c 0`.
  const { stdout } = await machine.bash('ulimit -Hc')
  t.equal((await findings(`${bare}; ${most}`)).includes('ulimit -c 0'), stdout.trim() !== '0')
  t.notMatch(await findings(`${bare}; ulimit -c 0`), 'ulimit')
})

t.test('if the server is suspended by SIGSTOP, a command ends after 10 s and says what to do', async (t) => {
  const machine = await createMachine(t)
  const server = machine.start(['serve', '--port', '0', '--log', 'none'])
  const ended = waitFor(server)
  await once(server.stdout!, 'data')
  server.kill('SIGSTOP')
  const began = performance.now()
  const { code, stderr } = await machine.coffer(['token', 'list'])
  const seconds = (performance.now() - began) / 1000
  t.ok(seconds > 9 && seconds < 20, `${seconds} s`)
  t.equal(code, 9)
  t.equal(
    stderr,
    `error: Process ${server.pid} has the vault open and does not answer (waited 10 s). If it is stopped, resume it: ` +
      `kill -CONT ${server.pid}. Otherwise end it: kill ${server.pid}\n`,
  )
  server.kill('SIGCONT')
  t.equal((await machine.coffer(['token', 'list'])).code, 0)
  server.kill('SIGTERM')
  await ended
})

/** This is a short run of the kill test. `npm run test:soak` runs the kill test for a longer time. */
t.test('servers and commands that are killed lose no acknowledged token', async (t) => {
  const { kills, acknowledged, faults } = await killCommands(4_000)
  t.comment(JSON.stringify({ kills, acknowledged }))
  t.strictSame(faults, [])
  for (const victim of ['serve', 'rekey', 'compact', 'create']) t.ok(kills[victim], `${victim} was killed`)
  t.ok(acknowledged > 0, `${acknowledged} tokens were acknowledged`)
})
