/**
 * Clients write and read through three servers over one PostgreSQL. Meanwhile the test kills servers and the database,
 * drops answers to commits, and makes a standby take over. In the end, every acknowledged write must be stored exactly
 * once.
 */
import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createWorkplace,
  runCommand,
  type ServerProcess,
  startProcess,
  type Workplace,
} from '../http/process.js'
import { CuttingProxy } from './cutting-proxy.js'
import { type OwnServer, startOwnPostgres } from './postgres-server.js'

const SERVERS = 3
const CLIENTS = 50
/** Pause in ms between two requests of a client. The pause is long because the test checks faults and not load. */
const PAUSE_MS = 2000
/** If a client has no answer after this time in ms, the client sends its request again. */
const TIMEOUT_MS = 30_000
/** Number of tokens that are created between two faults. */
const BETWEEN = 15

export interface FaultReport {
  requests: number
  retries: number
  tokens: number
  /** The number of times that each fault was caused. */
  done: Record<string, number>
  /** The longest time in ms in which no client got an answer. */
  silence_ms: number
  slowest_ms: number
  /** Violations of the guarantee that every acknowledged write is stored exactly once. */
  faults: string[]
}

/** One token of a client: the last answer, and whether the client requested the deletion. */
interface Known {
  id: string
  step: string
  isGone: boolean
}

class Run {
  readonly report: FaultReport = {
    ...{ requests: 0, retries: 0, tokens: 0, silence_ms: 0, slowest_ms: 0 },
    ...{ done: {}, faults: [] },
  }
  readonly #place: Workplace
  readonly #proxy: CuttingProxy
  readonly #words: readonly string[]
  #database: OwnServer
  #servers: (ServerProcess | undefined)[] = []
  #apiKey = ''
  #isOver = false
  #answered = performance.now()
  /** The keys of the map are the names of tokens in their metadata. */
  readonly #known = new Map<string, Known>()

  constructor(place: Workplace, database: OwnServer, proxy: CuttingProxy, words: readonly string[]) {
    this.#place = place
    this.#database = database
    this.#proxy = proxy
    this.#words = words
  }

  async start(): Promise<void> {
    for (let index = 0; index < SERVERS; index++)
      await this.#startServer(index, index === 0 ? ['--starter-apps'] : [])
  }

  async #startServer(index: number, more: readonly string[] = []): Promise<void> {
    const server = await startProcess(this.#place, ['--log', 'none', ...this.#words, ...more])
    this.#apiKey ||= server.announcement.applications.private?.key ?? ''
    this.#servers[index] = server
  }

  readonly #faults: Record<string, () => Promise<void>> = {
    'a server killed': async () => {
      const index = randomInt(SERVERS)
      const { child, ended } = this.#servers[index]!
      this.#servers[index] = undefined
      child.kill('SIGKILL')
      await ended
      await this.#startServer(index)
    },
    'the database killed': async () => {
      await this.#database.kill()
      await this.#database.start()
    },
    'a commit unanswered': async () => {
      const before = this.#proxy.cuts
      this.#proxy.cutNextCommit()
      await this.#until(() => this.#proxy.cuts > before)
    },
    'a standby promoted': async () => {
      const standby = await this.#database.createStandby()
      await this.#untilMore()
      const replaced = this.#database
      await replaced.kill()
      await standby.promote()
      this.#database = standby
      this.#proxy.leadTo(standby.socket)
      await replaced.stop()
    },
  }

  /** Causes each fault once, in a fixed order, and repeats this until the deadline. */
  async disturbUntil(deadline: number): Promise<void> {
    do {
      for (const [name, fault] of Object.entries(this.#faults)) {
        await this.#untilMore()
        await fault()
        this.report.done[name] = (this.report.done[name] ?? 0) + 1
      }
    } while (Date.now() < deadline && this.report.faults.length === 0)
    await this.#untilMore()
    this.#isOver = true
  }

  #untilMore(): Promise<void> {
    const { tokens } = this.report
    return this.#until(() => this.report.tokens >= tokens + BETWEEN)
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds() && this.report.faults.length === 0) await sleep(10)
  }

  /** Creates, reads and changes tokens, and deletes every fourth token. */
  async work(client: number): Promise<void> {
    for (let serial = 0; !this.#isOver && this.report.faults.length === 0; serial++) {
      const name = `${client}-${serial}`
      const metadata = { name, step: 'made' }
      const made = await this.#ask('POST /tokens', { type: 'token', data: name, metadata })
      if (made.status === 0) return
      const known = { id: made.body.id, step: 'made', isGone: false }
      const { id } = known
      this.#known.set(name, known)
      this.report.tokens++
      await this.#expect(known)
      if (serial % 2 === 0) continue
      const patched = await this.#ask(`PATCH /tokens/${id}`, { metadata: { step: 'changed' } })
      // If a request got no answer, the server may have executed it or not, so the test forgets the token.
      if (patched.status === 0) return void this.#known.delete(name)
      known.step = 'changed'
      await this.#expect(known)
      if (serial % 4 !== 3) continue
      // If the first request was executed but its answer was lost, the repeated request finds no token.
      const deleted = await this.#ask(`DELETE /tokens/${id}`, undefined, [204, 404])
      if (deleted.status === 0) return void this.#known.delete(name)
      known.isGone = true
      await this.#expect(known)
    }
  }

  async #expect({ id, step, isGone }: Known): Promise<void> {
    const { status, body } = await this.#ask(`GET /tokens/${id}`, undefined, [200, 404])
    const found = body?.metadata?.step
    if (status !== 0 && (isGone ? status !== 404 : found !== step))
      this.report.faults.push(`${id} is ${status} ${found}, not ${isGone ? 'gone' : step}`)
  }

  /** Sends one request, with one idempotency key, to one server after another until a server answers. */
  async #ask(line: string, body?: object, wanted = [200, 201]) {
    const [method, path] = line.split(' ') as [string, string]
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const own = { 'SVC-API-KEY': this.#apiKey, 'Content-Type': type }
    const headers = { ...own, ...(body && { 'SVC-IDEMPOTENCY-KEY': randomUUID() }) }
    await sleep(randomInt(PAUSE_MS))
    for (let turn = randomInt(SERVERS); this.report.faults.length === 0; turn++) {
      const url = this.#servers[turn % SERVERS]?.announcement.url
      const began = performance.now()
      try {
        if (url === undefined) throw new Error('It is not there.')
        const signal = AbortSignal.timeout(TIMEOUT_MS)
        const sent = { method, headers, signal, ...(body && { body: JSON.stringify(body) }) }
        const answer = await fetch(`${url}${path}`, sent)
        const text = await answer.text()
        if (wanted.includes(answer.status)) {
          this.#note(began)
          return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
        }
        // The status 408 means that the machine was too busy to read the request in time.
        if (![408, 409, 503].includes(answer.status))
          this.report.faults.push(`${line}: ${answer.status} ${text}`)
      } catch {
        // The connection failed, because the server died or has not started yet.
      }
      this.report.slowest_ms = Math.max(this.report.slowest_ms, Math.round(performance.now() - began))
      this.report.retries++
      await sleep(randomInt(20, 100))
    }
    return { status: 0, body: undefined }
  }

  #note(began: number): void {
    const now = performance.now()
    const { report } = this
    report.requests++
    report.silence_ms = Math.max(report.silence_ms, Math.round(now - this.#answered))
    report.slowest_ms = Math.max(report.slowest_ms, Math.round(now - began))
    this.#answered = now
  }

  /**
   * Checks that exactly the known tokens exist, that each has the state that was last acknowledged, and that the
   * verification of the log succeeds.
   */
  async judge(): Promise<void> {
    for (const server of this.#servers) {
      server?.child.kill('SIGTERM')
      await server?.ended
    }
    const { faults } = this.report
    const words = ['--store', this.#words[1]!, '--output', 'json']
    const { stdout, stderr } = await runCommand(this.#place, ['token', 'list', '--all', ...words])
    if (stdout === '') throw new Error(stderr)
    type Token = { id: string; metadata: { name: string; step: string } }
    const tokens = (JSON.parse(stdout) as { data: Token[] }).data
    const found = new Map(tokens.map((token) => [token.metadata.name, token]))
    if (found.size !== tokens.length) faults.push(`${tokens.length} tokens for ${found.size} requests`)
    for (const [name, { id, step, isGone }] of this.#known) {
      const token = found.get(name)
      if (isGone ? token !== undefined : token?.id !== id || token.metadata.step !== step)
        faults.push(`${name} is ${JSON.stringify(token)}, not ${isGone ? 'gone' : `${id} ${step}`}`)
      found.delete(name)
    }
    if (found.size > 0) faults.push(`${[...found.keys()]} were never answered`)
    for (const check of ['log verify', 'vault verify']) {
      const { code, stdout, stderr } = await runCommand(this.#place, [...check.split(' '), ...words])
      if (code !== 0) faults.push(`${check}: ${stdout}${stderr}`)
    }
  }

  async end(): Promise<void> {
    for (const server of this.#servers) server?.child.kill('SIGKILL')
    this.#proxy.close()
    await this.#database.stop()
  }
}

/** Causes each fault once, and starts again until `limitMs` milliseconds have passed. */
export async function disturb(limitMs: number): Promise<FaultReport> {
  const place = createWorkplace()
  const database = await startOwnPostgres()
  const [name] = /\/coffer_\w+/.exec(await database.createDatabase())!
  const proxy = await CuttingProxy.open(database.socket)
  const address = `postgres://test@127.0.0.1:${proxy.port}${name}`
  const run = new Run(place, database, proxy, ['--store', address])
  try {
    const made = await runCommand(place, ['init', '--quiet', '--store', address])
    if (made.code !== 0) throw new Error(made.stderr)
    await run.start()
    const clients = Array.from({ length: CLIENTS }, (_, client) => run.work(client))
    await run.disturbUntil(Date.now() + limitMs)
    await Promise.all(clients)
    await run.judge()
    return run.report
  } finally {
    await run.end()
    place.remove()
  }
}
