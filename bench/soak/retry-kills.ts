/**
 * Clients retry requests with idempotency keys while `serve` is killed with SIGKILL and started again. For each
 * idempotency key, exactly one token must exist, and every answer for the key must name this token.
 */
import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createWorkplace,
  runCommand,
  type ServerProcess,
  startProcess,
  type Workplace,
} from '../../test/http/process.js'

interface RetryKills {
  kills: number
  /** Number of idempotency keys whose client got an answer. */
  keys: number
  /** Number of answers that the server replayed for a repeated request. */
  replays: number
  /** Number of requests that were interrupted, or were refused while the first request with the same key ran. */
  retries: number
  /** Violations of the guarantee that each idempotency key creates exactly one token. */
  faults: string[]
}

const LIMIT_MS = 10 * 60 * 1000
const CLIENTS = 24
/** The longest time in ms from the start of a server until it is killed. */
const LONGEST_LIFE_MS = 500
const MORE_MS = 60_000
/** The share of answers after which a client repeats its request as if it had not received the answer. */
const DOUBTED = 0.3

class Run {
  readonly result: RetryKills = { kills: 0, keys: 0, replays: 0, retries: 0, faults: [] }
  /** The id of the token in each answer, by the data that the request sent. */
  readonly made = new Map<string, string>()
  readonly #place: Workplace
  #server: ServerProcess | undefined
  #apiKey = ''
  #isOver = false

  constructor(place: Workplace) {
    this.#place = place
  }

  async start(words: readonly string[] = []): Promise<void> {
    const server = await startProcess(this.#place, ['--log', 'none', ...words])
    this.#apiKey ||= server.announcement.applications.private?.key ?? ''
    this.#server = server
  }

  /**
   * Kills and restarts the server until the deadline. On a slow machine, the test runs up to a minute longer, until
   * there are enough events for a verdict.
   */
  async killUntil(deadline: number): Promise<void> {
    const { result } = this
    const isEnough = () => result.kills > 2 && result.keys > 20 && result.replays > 0
    const goesOn = () => Date.now() < deadline || (!isEnough() && Date.now() < deadline + MORE_MS)
    while (goesOn() && result.faults.length === 0) {
      await sleep(randomInt(LONGEST_LIFE_MS))
      this.#server!.child.kill('SIGKILL')
      await this.#server!.ended
      this.result.kills++
      await this.start()
    }
    this.#isOver = true
  }

  /**
   * Creates tokens one after another, each with a new idempotency key. The function repeats each request until the
   * request is answered.
   */
  async work(client: number): Promise<void> {
    for (let serial = 0; !this.#isOver && this.result.faults.length === 0; serial++) {
      const name = `${client}-${serial}`
      const key = randomUUID()
      const path = serial % 3 === 0 ? '/tokenize' : '/tokens'
      let isDoubted = Math.random() < DOUBTED
      for (;;) {
        const answer = await this.#ask(path, name, key)
        if (answer === undefined) continue
        const known = this.made.get(name)
        if (known !== undefined && known !== answer)
          this.result.faults.push(`${name}: ${known}, then ${answer}`)
        this.made.set(name, answer)
        if (!isDoubted) break
        isDoubted = false
      }
      this.result.keys++
    }
  }

  /** Returns the id of the token, or undefined if the request must be repeated. */
  async #ask(path: string, name: string, key: string): Promise<string | undefined> {
    const data = path === '/tokens' ? { type: 'token', data: name } : { only: name }
    try {
      const response = await fetch(`${this.#server!.announcement.url}${path}`, {
        method: 'POST',
        headers: {
          'SVC-API-KEY': this.#apiKey,
          'SVC-IDEMPOTENCY-KEY': key,
          'Content-Type': 'application/json',
        },
        body: JSON.stringify(data),
        signal: AbortSignal.timeout(10_000),
      })
      const answer = (await response.json()) as { id?: string; only?: string; detail?: string }
      if (response.ok) {
        if (response.headers.get('svc-idempotent-replayed') === 'true') this.result.replays++
        return answer.id ?? answer.only
      }
      if (response.status !== 409 && response.status !== 503)
        this.result.faults.push(`${name}: ${response.status} ${answer.detail}`)
    } catch {
      // The server died or has not started yet.
    }
    this.result.retries++
    await sleep(randomInt(5, 25))
    return undefined
  }

  /** Checks that every idempotency key created one token, and that there are no other tokens. */
  async judge(): Promise<void> {
    this.#server!.child.kill('SIGTERM')
    await this.#server!.ended
    const { stdout, stderr } = await runCommand(
      this.#place,
      'token list --all --reveal --output json'.split(' '),
    )
    if (stdout === '') throw new Error(stderr)
    const tokens = (JSON.parse(stdout) as { data: { id: string; data: string }[] }).data
    const found = new Map(tokens.map(({ id, data }) => [data, id]))
    const { faults } = this.result
    if (found.size !== tokens.length) faults.push(`${tokens.length} tokens have ${found.size} values`)
    for (const [name, id] of this.made) if (found.get(name) !== id) faults.push(`${name} is not ${id}`)
    if (found.size !== this.made.size) faults.push(`${found.size} values, ${this.made.size} keys`)
    const verified = await runCommand(this.#place, ['log', 'verify', '--output', 'json'])
    if (JSON.parse(verified.stdout).is_whole !== true) faults.push(`log: ${verified.stdout}`)
  }
}

const place = createWorkplace()
try {
  await runCommand(place, ['init', '--quiet'])
  const run = new Run(place)
  await run.start(['--starter-apps'])
  const clients = Array.from({ length: CLIENTS }, (_, client) => run.work(client))
  await run.killUntil(Date.now() + LIMIT_MS)
  await Promise.all(clients)
  await run.judge()
  console.log(JSON.stringify(run.result, undefined, 2))
  process.exitCode = run.result.faults.length === 0 ? 0 : 1
} finally {
  place.remove()
}
