/**
 * Runs the entrypoint of the image outside a container, with an installed package. If the machine can create network
 * namespaces, the server and each client have their own addresses, as containers have. If the machine cannot create
 * network namespaces, the clients use an address of this machine other than the loopback address.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const ENTRYPOINT = join(root, 'fixtures/deploy/entrypoint.sh')
const KEY = '0123456789abcdef0123456789abcdee'
const API_KEY = 'key_test_us_pvt_in_compose'
const place = mkdtempSync(join(tmpdir(), 'coffer-container-'))
const seeds = join(place, 'seeds')
t.teardown(() => rmSync(place, { recursive: true, force: true }))

interface Networks {
  /** The address of the server for its clients. */
  host: string
  server: string[]
  client: string[]
  /** Another address from which a client may send requests. */
  second?: string
}

t.before(async () => {
  mkdirSync(seeds)
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', place]
  const { stdout } = await run('npm', pack, { cwd: root })
  writeFileSync(join(place, 'package.json'), '{"name":"consumer","private":true,"type":"module"}')
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', join(place, stdout.trim())]
  await run('npm', install, { cwd: place })
})

/** Creates two namespaces that a virtual cable connects. The namespaces are removed when the test ends. */
function connectNetworks(t: Test): Networks {
  const [server, client] = [`coffer-s${process.pid}`, `coffer-c${process.pid}`]
  const ip = (...words: string[]) => execFileSync('ip', words, { stdio: 'ignore' })
  const remove = (name: string) => {
    try {
      ip('netns', 'delete', name)
    } catch {
      // The deletion fails if the namespace could not be created.
    }
  }
  try {
    for (const name of [server, client]) ip('netns', 'add', name)
    ip('link', 'add', 'eth0', 'netns', server, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', client)
    ip('-n', server, 'address', 'add', '198.51.100.1/24', 'dev', 'eth0')
    for (const address of ['198.51.100.2/24', '198.51.100.3/24'])
      ip('-n', client, 'address', 'add', address, 'dev', 'eth0')
    for (const name of [server, client]) {
      ip('-n', name, 'link', 'set', 'eth0', 'up')
      ip('-n', name, 'link', 'set', 'lo', 'up')
    }
    t.teardown(() => [server, client].forEach(remove))
    const within = (name: string) => ['ip', 'netns', 'exec', name]
    return { host: '198.51.100.1', server: within(server), client: within(client), second: '198.51.100.3' }
  } catch {
    for (const name of [server, client]) remove(name)
    const all = Object.values(networkInterfaces()).flat()
    const own = all.find((each) => each?.family === 'IPv4' && !each.internal)
    t.comment('no network namespaces: the clients run on this machine')
    return { host: own?.address ?? '127.0.0.1', server: [], client: [] }
  }
}

/**
 * The words that start a command as the first process of a new PID namespace, as in a container. The list is empty if
 * the machine cannot create a PID namespace.
 */
const ALONE = (() => {
  try {
    const words = ['--pid', '--fork', '--mount-proc', '--kill-child']
    execFileSync('unshare', [...words, 'true'], { stdio: 'ignore' })
    return ['unshare', ...words]
  } catch {
    return []
  }
})()

const environment = (more: Record<string, string> = {}) => ({
  PATH: `${join(place, 'node_modules/.bin')}:${process.env.PATH}`,
  HOME: place,
  COFFER_SEEDS: seeds,
  ...more,
})

interface Started {
  child: ChildProcess
  printed: { text: string }
  // biome-ignore lint/suspicious/noExplicitAny: the test reads members of the announcement.
  announcement: any
}

async function start(t: Test, before: string[], words: string[], env = {}): Promise<Started> {
  const line = [...before, ...ALONE, ENTRYPOINT, '--output', 'json', ...words]
  const child = spawn(line[0]!, line.slice(1), { env: environment(env), stdio: ['ignore', 'pipe', 'pipe'] })
  const printed = { text: '' }
  let first = ''
  child.stderr.on('data', (chunk) => {
    printed.text += chunk
  })
  child.stdout.on('data', (chunk) => {
    first += chunk
    printed.text += chunk
  })
  t.teardown(() => child.kill('SIGKILL'))
  while (!first.includes('\n') && child.exitCode === null)
    await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])
  if (!first.includes('\n')) throw new Error(`the server did not start: ${printed.text}`)
  return { child, printed, announcement: JSON.parse(first.split('\n')[0]!) }
}

/** Returns the process that gets the signal of `docker stop`. */
function firstProcess({ pid }: ChildProcess): number {
  if (ALONE.length === 0) return pid!
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0])
}

/** Sends the requests from one client, one after another. Returns the answer to each request. */
async function sendFrom(client: string[], requests: object[]): Promise<{ status: number; body: string }[]> {
  const program = `
    import { request } from 'node:http'
    const send = ({ url, method = 'GET', ...options }) => new Promise((resolve, reject) => {
      const sent = request(url, { method, agent: false, ...options }, async (answer) => {
        resolve({ status: answer.statusCode, body: Buffer.concat(await answer.toArray()).toString() })
      })
      sent.on('error', reject).end()
    })
    const answers = []
    for (const each of JSON.parse(process.env.REQUESTS)) answers.push(await send(each))
    console.log(JSON.stringify(answers))`
  const line = [...client, process.execPath, '--input-type=module', '--eval', program]
  const env = { ...environment(), REQUESTS: JSON.stringify(requests) }
  return JSON.parse((await run(line[0]!, line.slice(1), { env, cwd: place })).stdout)
}

t.test('other containers can use the API, the seeds and the control plane of the container', async (t) => {
  const { host, server, client, second } = connectNetworks(t)
  const application = { name: 'backend', type: 'private', permissions: ['token:create', 'token:read'] }
  writeFileSync(join(seeds, 'a.json'), JSON.stringify({ applications: [{ ...application, key: API_KEY }] }))
  writeFileSync(join(seeds, 'b.json'), '{"tokens":[{"id":"card-1","type":"token","data":"x"}]}')
  const env = { COFFER_CONTROL_KEY: KEY, COFFER_TEST_KEYS: '1' }
  const { child, printed, announcement } = await start(t, server, ['--port', '0'], env)
  const url = `http://${host}:${new URL(announcement.url).port}`
  const control = (key: string, more: object = {}) => ({
    ...{ url: `${url}/_coffer/clock`, headers: { 'bt-control-key': key } },
    ...more,
  })
  const answers = await sendFrom(client, [
    { url: `${url}/tokens/card-1`, headers: { 'bt-api-key': API_KEY } },
    { url: `${url}/tokens/card-1`, headers: { 'bt-api-key': `${API_KEY}x` } },
    { url: `${url}/readyz` },
    control(KEY),
    control(KEY, { headers: { 'bt-api-key': KEY } }),
    control(KEY, { headers: { 'bt-control-key': KEY, origin: 'https://evil.example' } }),
    control(KEY, { headers: { 'bt-control-key': KEY, 'x-forwarded-for': '127.0.0.1' } }),
    control(KEY, { headers: { 'bt-control-key': KEY, host: 'evil.example' } }),
    control(KEY, { url: `${url}/_coffer/page`, method: 'POST' }),
    control(KEY, { url: `${url}/_dashboard/session` }),
  ])
  const statuses = answers.map(({ status }) => status)
  t.same(statuses, [200, 401, 200, 200, 401, 403, 403, 421, 404, 404])
  t.same(JSON.parse(answers[2]!.body), { status: 'ok', test_keys: true })

  const library = `
    import { createControl } from 'coffer'
    const control = createControl({ url: '${url}', key: process.env.COFFER_CONTROL_KEY, prefix: 'bt', insecure: true })
    const fork = await control.fork()
    console.log((await fork.control.clock.advance({ by: '2h' })).mode, (await control.clock.get()).mode)
    await fork.stop()
    await control.reset()
    process.exit()`
  const line = [...client, process.execPath, '--input-type=module', '--eval', library]
  const ended = await run(line[0]!, line.slice(1), { env: environment(env), cwd: place })
  t.equal(ended.stdout, 'offset real\n')
  const words = ['coffer', 'control', 'clock', 'get', '--url', url, '--insecure', '--prefix', 'bt']
  const commandLine = [...client, ...words, '--fields', 'mode', '-o', 'value']
  const command = await run(commandLine[0]!, commandLine.slice(1), { env: environment(env) })
  t.equal(command.stdout, 'real\n')

  const attempts = await sendFrom(client, Array(12).fill(control(`${KEY.slice(0, -1)}f`)))
  t.same(
    attempts.map(({ status }) => status),
    [...Array(10).fill(401), 429, 429],
  )
  const [again] = await sendFrom(client, [control(KEY)])
  t.equal(again?.status, 429, 'this address has to wait')
  if (second !== undefined) {
    const [other] = await sendFrom(client, [control(KEY, { localAddress: second })])
    t.equal(other?.status, 200, 'another address does not')
  }
  for (const secret of [KEY, API_KEY]) t.notOk(printed.text.includes(secret))
  process.kill(firstProcess(child), 'SIGTERM')
  t.equal((await once(child, 'exit'))[0], 0)
})

t.test('without a control key, the control plane is closed to other containers', async (t) => {
  const { host, server, client } = connectNetworks(t)
  rmSync(seeds, { recursive: true })
  const { announcement } = await start(t, server, ['--port', '0'], { COFFER_TEST_KEYS: '0' })
  t.notOk(announcement.test_keys)
  t.match(Object.keys(announcement.applications), ['management', 'private', 'public'], 'no seed is mounted')
  const url = `http://${host}:${new URL(announcement.url).port}/_coffer/clock`
  const { key } = announcement.control
  const answers = await sendFrom(client, [
    { url, headers: { 'bt-control-key': key } },
    { url, headers: { 'bt-api-key': key } },
  ])
  t.same(
    answers.map(({ status }) => status),
    [403, 403],
  )
})

t.test('a signal stops the container within 1.5 s, whatever the container is doing', async (t) => {
  const env = { COFFER_CONTROL_KEY: KEY }
  const stop = async ({ child }: { child: ChildProcess }, signal: NodeJS.Signals) => {
    const began = performance.now()
    process.kill(firstProcess(child), signal)
    await once(child, 'exit')
    return performance.now() - began
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    t.ok((await stop(await start(t, [], ['--port', '0'], env), signal)) < 1000, signal)

  const polled = await start(t, [], ['--port', '0'], env)
  const headers = { 'bt-control-key': KEY }
  const waiting = fetch(`${polled.announcement.url}/_coffer/requests?count=9&timeout=30s`, { headers })
  waiting.catch(() => undefined)
  await fetch(`${polled.announcement.url}/_coffer/clock`, { headers })
  t.ok((await stop(polled, 'SIGTERM')) < 1500, 'a request that waits is cut')

  const line = [...ALONE, ENTRYPOINT, '--port', '0']
  const child = spawn(line[0]!, line.slice(1), { env: environment(env), stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  const isChildThere = () => {
    try {
      const pid = firstProcess(child)
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('entrypoint') && pid
    } catch {
      return false
    }
  }
  while (!isChildThere()) await new Promise((resolve) => setImmediate(resolve))
  const children = () => {
    const pid = firstProcess(child)
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  }
  while (children() === '') await new Promise((resolve) => setImmediate(resolve))
  t.ok((await stop({ child }, 'SIGTERM')) < 1000, 'a server that is starting stops too')
})

t.test('the image can run any other command of Coffer, and its health check calls the server', async (t) => {
  const { stdout } = await run(ENTRYPOINT, ['coffer', 'version'], { env: environment() })
  t.match(stdout, /^\d+\.\d+\.\d+\n$/)
  const failed = await run(ENTRYPOINT, ['--no-such-flag'], { env: environment() }).catch((error) => error)
  t.equal(failed.code, 2, 'the exit code is that of the server')
  const [, check = ''] = /\n {2}CMD (\[.*\])\n/.exec(readFileSync(join(root, 'Dockerfile'), 'utf8')) ?? []
  const [program = '', ...words] = JSON.parse(check) as string[]
  if (!existsSync(`/usr/bin/${program}`)) return t.comment(`there is no ${program} here`)
  const { announcement } = await start(t, [], ['--port', '0'])
  const here = words.map((word) => word.replace('http://127.0.0.1:4010', announcement.url))
  await run(program, here)
  const closed = words.map((word) => word.replace(':4010', ':1'))
  await t.rejects(run(program, closed))
})
