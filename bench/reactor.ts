/**
 * Measures runs of a reactor with a trivial formula: cold, warm with one client, and warm with 50 clients. Each time
 * is compared with a floor of the same round: the start of an empty child, or a message to a child and back. The row
 * `react` measures the whole operation on a vault on disk. The operation gets one token in its arguments and syncs
 * its records. Argument: rounds.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { perform } from '../src/framework/perform.js'
import type { ReactorRuntime } from '../src/framework/ports/reactors.js'
import { registry } from '../src/operations/all.js'
import { openReactors } from '../src/vault/app.js'
import { createVault } from '../src/vault/open.js'
import { measureInTurn, median, printTimes } from './figures.js'

const CODE = 'module.exports = async ({ args }) => ({ raw: { hello: args.name } })'
const ECHO = 'process.stdin.on("data", (chunk) => process.stdout.write(chunk))'
const CLIENTS = 50
const RUNS = 500
const rounds = Number(process.argv[2] ?? '7')

const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
const app = await createVault(
  { directory: place, pid: process.pid, notice: () => {}, role: 'server' },
  'bench',
  {
    kind: 'key-file',
    save: async () => {},
  },
)
const owner = await app.owner({ reveal: true })
const ask = async (name: string, input: Record<string, unknown>) =>
  (await perform(app, owner, registry.find(name)!, input, 'bench')).result as { id: string }
const formula = await ask('formula create', { name: 'f', type: 'private', code: CODE })
const reactor = await ask('reactor create', { name: 'r', formula: { id: formula.id } })
const token = await ask('token create', { type: 'token', data: 'Ada' })
const react = () => ask('reactor react', { id: reactor.id, args: { name: `{{ ${token.id} }}` } })

const warm = await openReactors({})
const echo = startEcho()
await runIn(warm)
await react()

const cold = await measureInTurn(rounds, [
  {
    name: 'an empty child, first answer',
    measure: () => timed(async () => stopEcho(await askEcho(startEcho()))),
  },
  { name: 'first run in a new pool', measure: () => measureCold() },
])
printTimes('cold', 'ms', cold)

const one = await measureInTurn(rounds, [
  { name: 'message to an empty child', measure: () => timeEach(1, () => askEcho(echo)) },
  { name: 'run in a warm child', measure: () => timeEach(1, () => runIn(warm)) },
  { name: 'react, the whole operation', measure: () => timeEach(1, react) },
])
printTimes('warm, one client, each', 'ms', one)

const many = await measureInTurn(rounds, [
  { name: 'message to an empty child, one at a time', measure: () => timeEach(1, () => askEcho(echo)) },
  { name: `run by ${CLIENTS} clients`, measure: () => timeEach(CLIENTS, () => runIn(warm)) },
  { name: `react by ${CLIENTS} clients`, measure: () => timeEach(CLIENTS, react) },
])
printTimes(`${CLIENTS} clients, time of each run`, 'ms', many)
for (const { name, values } of many)
  console.log(`  ${name}: ${Math.round(1000 / median(values))} runs per second`)

stopEcho(echo)
await warm.close()
await app.close()
rmSync(place, { recursive: true, force: true })

function runIn(reactors: ReactorRuntime) {
  const args = { name: 'Ada' }
  return reactors.run({ tenant: 1, reactor: 'r', code: CODE, args, configuration: {}, client: null })
}

async function measureCold(): Promise<number> {
  const reactors = await openReactors({})
  const ms = await timed(() => runIn(reactors))
  await reactors.close()
  return ms
}

function startEcho(): ChildProcess {
  return spawn(process.execPath, ['-e', ECHO], { env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
}

async function askEcho(child: ChildProcess): Promise<ChildProcess> {
  child.stdin!.write('x'.repeat(200))
  await once(child.stdout!, 'data')
  return child
}

function stopEcho(child: ChildProcess): void {
  child.kill('SIGKILL')
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

/**
 * Does the work {@link RUNS} times and returns the mean time of one run in ms. Each of the `clients` clients waits
 * for its result before its next run.
 */
async function timeEach(clients: number, work: () => Promise<unknown>): Promise<number> {
  let left = RUNS
  const client = async () => {
    while (left-- > 0) await work()
  }
  return (await timed(() => Promise.all(Array.from({ length: clients }, client)))) / RUNS
}
