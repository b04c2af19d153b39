/**
 * The first seconds of a server, in which most test suites live: requests 1–100, 101–1,000, and each of the first five
 * seconds, for ours and for the SQLCipher peer, by a key that reveals data and by one that sees it masked.
 */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { isInstalled, PEERS } from './bulk.js'
import { firstMessage, median, printTable } from './figures.js'
import type { Goal } from './goals.js'
import type { Ready } from './http-server.js'
import { awaitIdle } from './idle.js'
import { type Load, runLoad } from './load.js'
import { createGets, createPosts } from './requests.js'
import { makeToken } from './token-body.js'

const TOKENS = '1000'
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

/** `pin` puts a server on its core. */
export async function measureCold(
  rounds: number,
  ownServer: string,
  pin: (pid: number | undefined) => void,
): Promise<Goal[]> {
  if (!isInstalled('better-sqlite3-multiple-ciphers')) return []
  const goals: Goal[] = []
  for (const [name, method, transform] of LOADS) {
    const run = async (script: string, kind: string) =>
      measureStages(script, [kind, TOKENS, JSON.stringify(makeToken(1)), transform], method, pin)
    const ratios: number[][] = STAGES.map(() => [])
    const own: number[][] = STAGES.map(() => [])
    const firstFour: number[] = []
    for (let round = 0; round < rounds; round++) {
      const peer = await run(join(PEERS, 'server.js'), 'sqlcipher')
      const ours = await run(ownServer, 'coffer')
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
    goals.push({ name: `${name}, seconds 1–4, over the SQLCipher peer`, least, ratios: [firstFour] })
  }
  return goals
}

function inFirstFour(rates: readonly number[]): number {
  return rates.slice(SHORT_STAGES, SHORT_STAGES + 4).reduce((sum, rate) => sum + rate, 0)
}

/** Requests a second in each stage. */
async function measureStages(
  script: string,
  words: string[],
  method: Method,
  pin: (pid: number | undefined) => void,
): Promise<number[]> {
  const child = fork(script, words)
  const ready = await firstMessage<Ready>(child)
  pin(child.pid)
  await awaitIdle()
  const rates: number[] = []
  for (const [, limit] of STAGES) {
    const next = method === 'get' ? createGets(ready) : createPosts(ready, false)
    const status = method === 'get' ? 200 : 201
    rates.push((await runLoad({ port: ready.port, connections: 50, ...limit, next, status })).perSecond)
  }
  child.disconnect()
  return rates
}
