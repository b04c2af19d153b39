/**
 * POST and GET over HTTP against raw node:http, in turn, each server in a process of its own. Prints rates, the median
 * of the ratios of each round, and the CPU time that a request costs the server.
 */
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Ready } from './http-server.js'
import { runLoad } from './load.js'
import { makeToken } from './token-body.js'

const CONNECTIONS = 50
const OWN_SERVER = fileURLToPath(new URL('./http-server.js', import.meta.url))
const [rounds = '5', seconds = '2', sizes = '1000,100000'] = process.argv.slice(2)

interface Contender {
  name: string
  child: ChildProcess
  ready: Ready
}

interface Row {
  perSecond: number
  cpuMicros: number
  p50: number
  p99: number
}

const counts = sizes.split(',').map(Number)
const floors = { post: await start('floor post', ['post']), get: await start('floor get', ['get']) }
const ours = await Promise.all(
  counts.map((count) => start(`coffer, ${count} tokens`, ['coffer', String(count)])),
)
const others = [await start('coffer without a vault', ['bare']), ...(await startPeers())]
for (const method of ['get', 'post'] as const) await compare(method, [floors[method], ...others, ...ours])
for (const { child } of [...others, ...ours, ...Object.values(floors)]) child.disconnect()
await measureReady()

async function startPeers(): Promise<Contender[]> {
  const folder = fileURLToPath(new URL('../../../test/bench/peers/', import.meta.url))
  if (!existsSync(`${folder}node_modules`)) {
    console.log('Fastify over SQLCipher: not installed; npm run bench:peers')
    return []
  }
  const startPeer = (commits: string) => {
    const words = [commits, String(counts[0]), JSON.stringify(makeToken(1))]
    return start(`Fastify over SQLCipher, ${commits}`, words, `${folder}http/server.js`)
  }
  return [await startPeer('each'), await startPeer('grouped')]
}

async function start(name: string, words: string[], script = OWN_SERVER): Promise<Contender> {
  const child = fork(script, words)
  const failed = once(child, 'exit').then(() => Promise.reject(new Error(`${name} did not start`)))
  const [ready] = (await Promise.race([once(child, 'message'), failed])) as [Ready]
  failed.catch(() => {})
  return { name, child, ready }
}

async function compare(method: 'get' | 'post', contenders: readonly Contender[]): Promise<void> {
  const rows = contenders.map((): Row[] => [])
  for (let round = -1; round < Number(rounds); round++) {
    for (const [at, contender] of contenders.entries()) {
      const row = await measure(method, contender)
      // The first round warms up.
      if (round >= 0) rows[at]!.push(row)
    }
  }
  for (const [at, contender] of contenders.entries()) {
    const own = rows[at]!
    const ratios = own.map(({ perSecond }, round) => perSecond / rows[0]![round]!.perSecond)
    const pick = (name: keyof Row) => median(own.map((row) => row[name]))
    console.log(
      `${method.toUpperCase()} ${contender.name}: ${Math.round(pick('perSecond'))}/s, x floor ${spread(ratios)}, ` +
        `CPU ${pick('cpuMicros').toFixed(1)} µs, p50 ${pick('p50').toFixed(2)} ms, p99 ${pick('p99').toFixed(2)} ms`,
    )
  }
}

async function measure(method: 'get' | 'post', { child, ready }: Contender): Promise<Row> {
  const before = await askUsage(child)
  const { requests, perSecond, p50, p99 } = await runLoad({
    port: ready.port,
    connections: CONNECTIONS,
    seconds: Number(seconds),
    next: method === 'get' ? createGets(ready) : createPosts(ready),
    status: method === 'get' ? 200 : 201,
  })
  const after = await askUsage(child)
  return { perSecond, p50, p99, cpuMicros: ((after - before) * 1000) / requests }
}

async function askUsage(child: ChildProcess): Promise<number> {
  const answered = once(child, 'message')
  child.send('cpu')
  const [{ cpuMs }] = (await answered) as [{ cpuMs: number }]
  return cpuMs
}

function createGets({ key, ids }: Ready): () => string {
  let serial = 0
  return () => {
    serial = (serial + 7919) % ids.length
    return `GET /tokens/${ids[serial]} HTTP/1.1\r\nHost: localhost\r\nSVC-API-KEY: ${key}\r\n\r\n`
  }
}

function createPosts({ key }: Ready): () => string {
  let serial = 1_000_000
  return () => {
    const body = JSON.stringify(makeToken(serial++))
    return `POST /tokens HTTP/1.1\r\nHost: localhost\r\nSVC-API-KEY: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
}

/** From starting the process to the line that says requests are accepted, against a Node that does nothing. */
async function measureReady(): Promise<void> {
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env
  const bin = fileURLToPath(new URL('../../../bin/coffer.js', import.meta.url))
  const words = [bin, 'serve', '--ephemeral', '--port', '0', '--output', 'json', '--log', 'none']
  const ratios: number[] = []
  const times: number[] = []
  for (let round = 0; round < 11; round++) {
    const floorStart = performance.now()
    execFileSync(process.execPath, ['-e', '0'], { env })
    const floorMs = performance.now() - floorStart
    const startedAt = performance.now()
    const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'ignore'] })
    await once(child.stdout, 'data')
    const readyMs = performance.now() - startedAt
    child.kill('SIGKILL')
    await once(child, 'exit')
    ratios.push(readyMs / floorMs)
    times.push(readyMs)
  }
  console.log(`serve --ephemeral ready: ${median(times).toFixed(0)} ms, x node -e 0 ${spread(ratios)}`)
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

function spread(ratios: readonly number[]): string {
  return `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`
}
