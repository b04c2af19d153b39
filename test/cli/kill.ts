/**
 * Kills the real program: servers that answer commands, and commands that rekey, compact or write. After each kill
 * another command must succeed. The caller decides how long the kills continue.
 */
import type { ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createMachine, type Ended, waitFor } from '../support/process.js'

export interface CommandKills {
  /** For each command, the number of its processes that were killed. */
  kills: Record<string, number>
  acknowledged: number
  /** Violations of the guarantees of the vault. */
  faults: string[]
}

const VICTIMS = ['serve', 'rekey', 'compact', 'create'] as const
type Victim = (typeof VICTIMS)[number]

/** A server, and the first process of each other kind, is killed after at most this time in ms. */
const FIRST_LIMIT_MS = 250
/**
 * If a process was killed, the next process of its kind may run this many ms longer, so that kills also reach the end
 * of the work.
 */
const LONGER_MS = 100
/** Maximum number of rounds after the deadline. These rounds run only while a kind of process was never killed. */
const MORE_ROUNDS = 80
const COMMANDS_AT_ONCE = 3
/** Number of values in one call of `token tokenize`. A vault with this many tokens makes `vault rekey` slow. */
const FILLED = 1000
const UNAVAILABLE = 9

/**
 * Kills processes for `limitMs` milliseconds. If some kind of command was never killed in this time, the function
 * tries some more rounds. In the end, the function checks the vault.
 */
export async function killCommands(limitMs: number): Promise<CommandKills> {
  const deadline = Date.now() + limitMs
  const machine = await createMachine()
  const kills: Record<string, number> = {}
  const faults: string[] = []
  const sure = new Set<string>()
  const maybe = new Set<string>()
  /** The time after which the next process of each kind is killed. The times adapt to the speed of the machine. */
  const limits = new Map<Victim, number>()

  const complain = (what: string, { code, signal, stderr }: Ended) =>
    faults.push(`${what} ended with ${code ?? signal}: ${stderr}`)

  const expect = async (words: readonly string[], stdin?: string): Promise<string> => {
    const { code, stdout, stderr } = await machine.coffer(words, stdin)
    if (code !== 0) throw new Error(`coffer ${words.join(' ')}: ${stderr}`)
    return stdout
  }

  const kill = async (victim: Victim, child: ChildProcess, ended = waitFor(child)): Promise<Ended> => {
    const started = performance.now()
    const most = limits.get(victim) ?? FIRST_LIMIT_MS
    const timer = setTimeout(() => child.kill('SIGKILL'), randomInt(most))
    const outcome = await ended
    clearTimeout(timer)
    if (outcome.signal === 'SIGKILL') {
      kills[victim] = (kills[victim] ?? 0) + 1
      if (victim !== 'serve') limits.set(victim, most + LONGER_MS)
    } else {
      limits.set(victim, Math.ceil(performance.now() - started))
      if (outcome.code !== 0) complain(victim, outcome)
    }
    return outcome
  }

  const create = async ({ isVictim = false, mayLoseServer = false } = {}): Promise<void> => {
    const id = `token-${maybe.size}`
    maybe.add(id)
    const child = machine.start(['token', 'create', '--output', 'id'])
    child.stdin?.on('error', () => {})
    child.stdin?.end(JSON.stringify({ id, type: 'token', data: `data of ${id}` }))
    const outcome = await (isVictim ? kill('create', child) : waitFor(child))
    if (outcome.code === 0) sure.add(id)
    else if (!isVictim && !(mayLoseServer && outcome.code === UNAVAILABLE)) complain(id, outcome)
  }

  const killServer = async (): Promise<void> => {
    const server = machine.start(['serve', '--port', '0', '--output', 'json', '--log', 'none'])
    const ended = waitFor(server)
    await Promise.race([once(server.stdout!, 'data'), ended])
    const commands = Array.from({ length: COMMANDS_AT_ONCE }, () => create({ mayLoseServer: true }))
    await kill('serve', server, ended)
    await Promise.all(commands)
  }

  /**
   * Checks that no acknowledged token is lost, that each other token comes from an interrupted command, and that `vault
   * verify` and `log verify` succeed.
   */
  const judge = async (): Promise<void> => {
    const { ok } = JSON.parse(await expect(['vault', 'verify']))
    const { is_whole: isWhole } = JSON.parse(await expect(['log', 'verify']))
    if (ok !== true || isWhole !== true) faults.push(`verified: ${ok}, log: ${isWhole}`)
    const { data } = JSON.parse(await expect(['token', 'list', '--all', '--reveal']))
    const tokens = data as { id: string; data: string }[]
    const own = tokens.filter(({ data }) => !data.startsWith('filled'))
    if (tokens.length - own.length !== FILLED) faults.push('Some of the first tokens are missing.')
    const present = new Map(own.map(({ id, data }) => [id, data]))
    if (present.size !== own.length) faults.push('Two tokens have the same id.')
    for (const id of sure) if (!present.has(id)) faults.push(`${id} was lost.`)
    for (const [id, data] of present)
      if (!maybe.has(id) || data !== `data of ${id}`) faults.push(`${id} holds ${data}.`)
  }

  const round = async (victim: Victim): Promise<void> => {
    if (victim === 'serve') await killServer()
    else if (victim === 'create') await create({ isVictim: true })
    else await kill(victim, machine.start(['vault', victim, '--yes']))
    await create()
  }

  try {
    const values = Array.from({ length: FILLED }, (_, index) => `filled ${index}`)
    await expect(['token', 'tokenize'], JSON.stringify(values))
    let more = MORE_ROUNDS
    const goesOn = () => Date.now() < deadline || (VICTIMS.some((victim) => !kills[victim]) && more-- > 0)
    for (let at = 0; faults.length === 0 && goesOn(); at++) await round(VICTIMS[at % VICTIMS.length]!)
    await judge()
    await expect(['vault', 'rekey', '--yes'])
    await judge()
    return { kills, acknowledged: sure.size, faults }
  } finally {
    machine.remove()
  }
}
