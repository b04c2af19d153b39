/**
 * Measures how fast a server answers in its first seconds: requests 1–100, requests 101–1,000, and each of the first
 * five seconds. Most test suites end before a server is warm. The benchmark compares `coffer serve` with the
 * SQLCipher peer. Each server is measured with a key that reveals data and with a key that gets masked data.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isInstalled } from './bulk.js'
import { median, printTable } from './figures.js'
import { createVault, type FreshServer, startPeer, stop, TOKENS } from './fresh-servers.js'
import type { Goal } from './goals.js'
import { awaitIdle } from './idle.js'
import { type Load, runLoad } from './load.js'
import { createGets, createPosts } from './requests.js'

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

/** The function `pin` moves the process with the given pid to the core of the servers. */
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

function inFirstFour(rates: readonly number[]): number {
  return rates.slice(SHORT_STAGES, SHORT_STAGES + 4).reduce((sum, rate) => sum + rate, 0)
}

/** Returns the number of requests per second in each stage. */
async function measureStages(
  server: FreshServer,
  method: Method,
  pin: (pid: number | undefined) => void,
): Promise<number[]> {
  const { child, ready } = server
  pin(child.pid)
  await awaitIdle()
  const rates: number[] = []
  for (const [, limit] of STAGES) {
    const next = method === 'get' ? createGets(ready) : createPosts(ready, false)
    const status = method === 'get' ? 200 : 201
    rates.push((await runLoad({ port: ready.port, connections: 50, ...limit, next, status })).perSecond)
  }
  await stop(server)
  return rates
}
