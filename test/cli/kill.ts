/**
 * Kills of the real program: a server under commands, and commands that rekey, fold or write, each ended by SIGKILL at some
 * moment; a command after each must work. Knows how to run it; for how long is the caller's.
 */
import type { ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createMachine, type Ended, type Machine, waitFor } from './binary.js'

export interface CommandKills {
  /** Processes that were killed while they ran, by what they did. */
  kills: Record<string, number>
  acknowledged: number
  /** Whatever must not be. */
  faults: string[]
}

const VICTIMS = ['serve', 'rekey', 'compact', 'create'] as const
type Victim = (typeof VICTIMS)[number]

/** How long a server, and the first of each other kind, runs at most before it is killed. */
const FIRST_LIMIT_MS = 250
/** How much longer the next of a kind runs that was killed, so that the end of its work is reached as well. */
const LONGER_MS = 100
/** Rounds at most beyond the time given, for a kind that ended each time before it was killed. */
const MORE_ROUNDS = 80
const COMMANDS_AT_ONCE = 3
/** One call of tokenize: so many that to rekey takes a while. */
const FILLED = 1000
const UNAVAILABLE = 9

class Killing {
  readonly result: CommandKills = { kills: {}, acknowledged: 0, faults: [] }
  readonly #machine: Machine
  readonly #sure = new Set<string>()
  readonly #maybe = new Set<string>()
  /** How long the next of each kind runs at most before it is killed: found on the machine that the test runs on. */
  readonly #limitMs = new Map<Victim, number>()
  #serial = 0

  constructor(machine: Machine) {
    this.#machine = machine
  }

  async fill(): Promise<void> {
    const values = Array.from({ length: FILLED }, (_, index) => `filled ${index}`)
    await this.#expect(['token', 'tokenize'], JSON.stringify(values))
  }

  async round(victim: Victim): Promise<void> {
    if (victim === 'serve') await this.#killServer()
    else if (victim === 'create') await this.#create({ isVictim: true })
    else await this.#kill(victim, this.#machine.start(['vault', victim, '--yes']))
    await this.#create()
  }

  /** Nothing that was acknowledged is missing, nothing else is there, and all of it verifies. */
  async judge(): Promise<void> {
    await this.#judgeOnce()
    await this.#expect(['vault', 'rekey', '--yes'])
    await this.#judgeOnce()
    this.result.acknowledged = this.#sure.size
  }

  async #judgeOnce(): Promise<void> {
    const { ok } = JSON.parse((await this.#expect(['vault', 'verify'])).stdout)
    const { is_whole: isWhole } = JSON.parse((await this.#expect(['log', 'verify'])).stdout)
    if (ok !== true || isWhole !== true) this.result.faults.push(`verified: ${ok}, log: ${isWhole}`)
    const { stdout } = await this.#expect(['token', 'list', '--all', '--reveal'])
    const tokens = (JSON.parse(stdout) as { data: { id: string; data: string }[] }).data
    const own = tokens.filter(({ data }) => !data.startsWith('filled'))
    if (tokens.length - own.length !== FILLED) this.result.faults.push('Some of the first are missing.')
    const present = new Map(own.map(({ id, data }) => [id, data]))
    if (present.size !== own.length) this.result.faults.push('An id is there twice.')
    for (const id of this.#sure) if (!present.has(id)) this.result.faults.push(`${id} was lost.`)
    for (const [id, data] of present) {
      const isKnown = this.#sure.has(id) || this.#maybe.has(id)
      if (!isKnown || data !== `data of ${id}`) this.result.faults.push(`${id} holds ${data}.`)
    }
  }

  async #killServer(): Promise<void> {
    const server = this.#machine.start(['serve', '--port', '0', '--output', 'json', '--log', 'none'])
    const ended = waitFor(server)
    await Promise.race([once(server.stdout!, 'data'), ended])
    const commands = Array.from({ length: COMMANDS_AT_ONCE }, () => this.#create({ mayLoseServer: true }))
    await this.#kill('serve', server, ended)
    await Promise.all(commands)
  }

  async #kill(victim: Victim, child: ChildProcess, ended = waitFor(child)): Promise<Ended> {
    const started = performance.now()
    const limitMs = this.#limitMs.get(victim) ?? FIRST_LIMIT_MS
    const timer = setTimeout(() => child.kill('SIGKILL'), randomInt(limitMs))
    const outcome = await ended
    clearTimeout(timer)
    if (outcome.signal === 'SIGKILL') {
      this.result.kills[victim] = (this.result.kills[victim] ?? 0) + 1
      if (victim !== 'serve') this.#limitMs.set(victim, limitMs + LONGER_MS)
    } else {
      this.#limitMs.set(victim, Math.ceil(performance.now() - started))
      if (outcome.code !== 0) this.#complain(victim, outcome)
    }
    return outcome
  }

  async #create({ isVictim = false, mayLoseServer = false } = {}): Promise<void> {
    const id = `token-${this.#serial++}`
    this.#maybe.add(id)
    const child = this.#machine.start(['token', 'create', '--output', 'id'])
    child.stdin?.on('error', () => {})
    child.stdin?.end(JSON.stringify({ id, type: 'token', data: `data of ${id}` }))
    const outcome = await (isVictim ? this.#kill('create', child) : waitFor(child))
    if (outcome.code === 0) this.#sure.add(id)
    else if (!isVictim && !(mayLoseServer && outcome.code === UNAVAILABLE)) this.#complain(id, outcome)
  }

  async #expect(words: readonly string[], stdin?: string): Promise<Ended> {
    const outcome = await this.#machine.coffer(words, stdin)
    if (outcome.code !== 0) throw new Error(`coffer ${words.join(' ')}: ${outcome.stderr}`)
    return outcome
  }

  #complain(what: string, { code, signal, stderr }: Ended): void {
    this.result.faults.push(`${what} ended with ${code ?? signal}: ${stderr}`)
  }
}

/** Kills for `limitMs` and until each kind was killed once, in turn, then looks at what is left. */
export async function killCommands(limitMs: number): Promise<CommandKills> {
  const deadline = Date.now() + limitMs
  const machine = await createMachine()
  try {
    const killing = new Killing(machine)
    await killing.fill()
    const { kills, faults } = killing.result
    let more = MORE_ROUNDS
    const goesOn = () => Date.now() < deadline || (VICTIMS.some((victim) => !kills[victim]) && more-- > 0)
    for (let round = 0; faults.length === 0 && goesOn(); round++)
      await killing.round(VICTIMS[round % VICTIMS.length]!)
    await killing.judge()
    return killing.result
  } finally {
    machine.remove()
  }
}
