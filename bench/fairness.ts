/**
 * Measures how evenly a server treats the requests of many connections: median, slowest hundredth, slowest request,
 * and how many later requests were answered before an earlier request. Each server has just started. Its first (cold)
 * and its later (warm) seconds are measured separately. The benchmark compares `coffer serve` with the SQLCipher peer.
 * The arguments are rounds, numbers of connections, seconds of each stage, method, and `unpinned`.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isInstalled } from './bulk.js'
import { median, printTable } from './figures.js'
import { createVault, type FreshServer, startPeer, stop } from './fresh-servers.js'
import { type Goal, printGoals } from './goals.js'
import { awaitIdle } from './idle.js'
import { type LoadResult, runLoad } from './load.js'
import { createGets, createPosts } from './requests.js'

const [rounds = '3', connections = '4,16,50,200', seconds = '2,3', method = 'post', pinning = 'pinned'] =
  process.argv.slice(2)
const SERVER_CORE = 0
const LOAD_CORE = 1
const STAGES = ['cold', 'warm'] as const
const [COLD_SECONDS = 2, WARM_SECONDS = 3] = seconds.split(',').map(Number)

type Stage = (typeof STAGES)[number]
type Kind = 'coffer' | 'Fastify over SQLCipher'
type Results = Record<Stage, LoadResult[]>

const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
try {
  const vault = createVault(place)
  const servers: [Kind, () => Promise<FreshServer>][] = [['coffer', () => vault.serve('reveal')]]
  if (isInstalled('better-sqlite3-multiple-ciphers'))
    servers.push(['Fastify over SQLCipher', () => startPeer('reveal')])
  else console.log('The peer is not installed: npm run bench:peers')
  const counts = connections.split(',').map(Number)
  pin(LOAD_CORE, process.pid)
  const measured = new Map<number, Map<Kind, Results>>()
  for (const count of counts) {
    const results = new Map(servers.map(([kind]): [Kind, Results] => [kind, { cold: [], warm: [] }]))
    measured.set(count, results)
    for (let round = 0; round < Number(rounds); round++)
      for (const [kind, start] of servers) await measure(await start(), count, results.get(kind)!)
    for (const stage of STAGES) print(count, stage, results)
  }
  printGoals(
    counts,
    STAGES.flatMap((stage) => judge(stage, [...measured.values()])),
  )
} finally {
  rmSync(place, { recursive: true, force: true })
}

/** Moves a process to a core, unless the arguments forbid it. If `taskset` is missing, processes run on any core. */
function pin(core: number, pid: number | undefined): void {
  if (pinning === 'pinned') spawnSync('taskset', ['-acp', String(core), String(pid)], { stdio: 'ignore' })
}

async function measure(server: FreshServer, count: number, results: Results): Promise<void> {
  const { child, ready } = server
  pin(SERVER_CORE, child.pid)
  await awaitIdle()
  for (const [stage, duration] of [
    ['cold', COLD_SECONDS],
    ['warm', WARM_SECONDS],
  ] as const)
    results[stage].push(
      await runLoad({
        port: ready.port,
        connections: count,
        seconds: duration,
        next: method === 'get' ? createGets(ready) : createPosts(ready, false),
        status: method === 'get' ? 200 : 201,
      }),
    )
  await stop(server)
}

function print(count: number, stage: Stage, results: ReadonlyMap<Kind, Results>): void {
  const title = `${method.toUpperCase()}, ${count} connections, ${stage}, ${pinning}: medians of ${rounds} rounds`
  printTable(title, [
    ['', 'a second', 'p50 ms', 'p99 ms', 'worst ms', 'most overtaken', 'p99 / p50'],
    ...[...results].map(([kind, { [stage]: own }]) => {
      const figure = (name: keyof LoadResult) => median(own.map((each) => each[name]))
      return [
        kind,
        figure('perSecond').toFixed(0),
        figure('p50').toFixed(2),
        figure('p99').toFixed(2),
        figure('worst').toFixed(1),
        figure('overtaken').toFixed(0),
        median(own.map(({ p50, p99 }) => p99 / p50)).toFixed(1),
      ]
    }),
  ])
}

function judge(stage: Stage, bySize: readonly ReadonlyMap<Kind, Results>[]): Goal[] {
  const ours = bySize.map((results) => results.get('coffer')![stage])
  const peers = bySize.map((results) => results.get('Fastify over SQLCipher')?.[stage])
  const overPeer = (name: 'p99' | 'perSecond') =>
    ours.map((own, at) => peers[at] && own.map((each, round) => each[name] / peers[at]![round]![name]))
  return [
    {
      name: `p99 relative to p50, ${stage}`,
      most: 4,
      ratios: ours.map((own) => own.map(({ p50, p99 }) => p99 / p50)),
    },
    { name: `p99 relative to the SQLCipher peer, ${stage}`, most: 1, ratios: overPeer('p99') },
    { name: `rate relative to the SQLCipher peer, ${stage}`, least: 1, ratios: overPeer('perSecond') },
  ]
}
