/**
 * The first seconds of a server, because most test suites use only these: requests 1–100, requests 101–1,000, and each
 * of the first five seconds. Compares `coffer serve` with the SQLCipher peer, with a key that reveals data and with a
 * key that sees masked data.
 */
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isInstalled, PEERS } from './bulk.js'
import { firstMessage, median, printTable } from './figures.js'
import type { Goal } from './goals.js'
import type { Ready } from './http-server.js'
import { awaitIdle } from './idle.js'
import { type Load, runLoad } from './load.js'
import { asMasking, createGets, createPosts } from './requests.js'
import { makeToken } from './token-body.js'

const PROGRAM = fileURLToPath(new URL('../../bin/coffer.js', import.meta.url))
const TOKENS = 1000
const SHORT_STAGES = 2
const STAGES: readonly (readonly [string, Pick<Load, 'requests' | 'seconds'>])[] = [
  ['1–100', { requests: 100, seconds: 60 }],
  ['101–1,000', { requests: 900, seconds: 60 }],
  ...[1, 2, 3, 4, 5].map((second) => [`second ${second}`, { seconds: 1 }] as const),
]
const LOADS = [
  ['GET, revealed', 'get', 'reveal'],
  ['GET, masked', 'get', 'mask'],
  ['POST', 'post', 'reveal'],
] as const
type Method = (typeof LOADS)[number][1]
type Transform = (typeof LOADS)[number][2]

interface Server {
  child: ChildProcess
  ready: Pick<Ready, 'port' | 'key' | 'ids'>
}

/** `pin` moves the process of a server to its core. */
export async function measureCold(rounds: number, pin: (pid: number | undefined) => void): Promise<Goal[]> {
  if (!isInstalled('better-sqlite3-multiple-ciphers')) return []
  const goals: Goal[] = []
  const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
  const vault = createVault(place)
  for (const [name, method, transform] of LOADS) {
    const ratios: number[][] = STAGES.map(() => [])
    const own: number[][] = STAGES.map(() => [])
    const firstFour: number[] = []
    for (let round = 0; round < rounds; round++) {
      const peer = await measureStages(await startPeer(transform), method, pin)
      const ours = await measureStages(await vault.serve(transform), method, pin)
      for (const [at, rate] of ours.entries()) {
        own[at]!.push(rate)
        ratios[at]!.push(rate / peer[at]!)
      }
      firstFour.push(inFirstFour(ours) / inFirstFour(peer))
    }
    const row = (label: string, values: number[][], digits: number) => [
      label,
      ...values.map((each) => median(each).toFixed(digits)),
    ]
    printTable(`${name}, from the start of a server with ${TOKENS} tokens`, [
      ['', ...STAGES.map(([stage]) => stage)],
      row('a second', own, 0),
      row('x the SQLCipher peer', ratios, 2),
    ])
    const least = method === 'get' ? 0.6 : 1
    goals.push({ name: `${name}, seconds 1–4, relative to the SQLCipher peer`, least, ratios: [firstFour] })
  }
  rmSync(place, { recursive: true, force: true })
  return goals
}

/** Creates a vault with commands. Each server then gets a copy of the vault. */
function createVault(place: string) {
  const env = { ...process.env, XDG_CONFIG_HOME: place }
  const wordsOf = (directory: string) => ['--vault', join(place, directory), '--key-file', join(place, 'key')]
  const run = (...words: string[]) =>
    execFileSync(process.execPath, [PROGRAM, ...words, ...wordsOf('vault'), '-q', '-o', 'json'], { env })
  const ids = Array.from({ length: TOKENS }, (_, at) => `bench-${at}`)
  const rows = join(place, 'rows.ndjson')
  writeFileSync(rows, ids.map((id, at) => JSON.stringify({ ...makeToken(at), id })).join('\n'))
  run('init')
  run('token', 'import', rows)
  const createKey = (transform: Transform): string => {
    const permissions = ['token:read', 'token:create']
    const rule = JSON.stringify({ priority: 1, container: '/', transform, permissions })
    return JSON.parse(String(run('app', 'create', '--name', transform, '--type', 'private', '--rule', rule)))
      .key
  }
  const keys = { reveal: createKey('reveal'), mask: createKey('mask') }
  const serve = async (transform: Transform): Promise<Server> => {
    rmSync(join(place, 'copy'), { recursive: true, force: true })
    cpSync(join(place, 'vault'), join(place, 'copy'), { recursive: true })
    const words = ['serve', ...wordsOf('copy'), '--port', '0', '--log', 'none', '-o', 'json']
    const child = spawn(process.execPath, [PROGRAM, ...words], { env, stdio: ['ignore', 'pipe', 'ignore'] })
    const [line] = await once(child.stdout, 'data')
    const { port } = new URL(JSON.parse(String(line)).url)
    return { child, ready: { port: Number(port), key: keys[transform], ids } }
  }
  return { serve }
}

async function startPeer(transform: Transform): Promise<Server> {
  const child = fork(join(PEERS, 'server.js'), ['sqlcipher', String(TOKENS), JSON.stringify(makeToken(1))])
  const ready = await firstMessage<Ready>(child)
  return { child, ready: transform === 'mask' ? asMasking(ready) : ready }
}

function inFirstFour(rates: readonly number[]): number {
  return rates.slice(SHORT_STAGES, SHORT_STAGES + 4).reduce((sum, rate) => sum + rate, 0)
}

/** Returns the number of requests per second in each stage. */
async function measureStages(
  { child, ready }: Server,
  method: Method,
  pin: (pid: number | undefined) => void,
): Promise<number[]> {
  pin(child.pid)
  await awaitIdle()
  const rates: number[] = []
  for (const [, limit] of STAGES) {
    const next = method === 'get' ? createGets(ready) : createPosts(ready, false)
    const status = method === 'get' ? 200 : 201
    rates.push((await runLoad({ port: ready.port, connections: 50, ...limit, next, status })).perSecond)
  }
  const ended = once(child, 'exit')
  // After it is disconnected, the peer removes its files.
  if (child.connected) child.disconnect()
  else child.kill()
  await ended
  return rates
}
