/**
 * Measures the time of a command from its start until its process has ended, and the time of a server until the server
 * is ready. The benchmark compares both times with the time of a Node process that does nothing. The arguments are
 * rounds and sizes of the vaults.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Contender, measureInTurn, printRatio, printTimes, ratiosOf } from './figures.js'
import { type FilledVault, tokenId } from './filled-vault.js'
import { printGoals } from './goals.js'
import type { StartupVaults } from './startup-vaults.js'

const [rounds = '15', sizes = '1,1000,100000'] = process.argv.slice(2)
/** Numbers of commands that have run since the last flush of the write-ahead log. */
const COMMANDS = [0, 64, 1000, 2000]
const program = fileURLToPath(new URL('../../bin/coffer.js', import.meta.url))
const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
// The variable NODE_EXTRA_CA_CERTS is left out, because Node reads these certificates at every start. Reading the
// certificates would more than double the time of the floor.
const { NODE_EXTRA_CA_CERTS: _, ...inherited } = process.env
const env: NodeJS.ProcessEnv = { ...inherited, XDG_CONFIG_HOME: join(place, 'config') }
const SERVE = ['serve', '--ephemeral', '--port', '0']
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
}

/** The name of a row, its limit relative to `node -e 0`, and the function that measures it. */
type Row = readonly [name: string, most: number | undefined, measure: Contender['measure']]

try {
  const fill = fileURLToPath(new URL('./startup-vaults.js', import.meta.url))
  const filled = execFileSync(process.execPath, [fill, place, sizes, COMMANDS.join()], { encoding: 'utf8' })
  const { sized, used } = JSON.parse(filled) as StartupVaults
  const [first, largest] = [sized[0]!, sized.at(-1)!]
  const counts = sizes.split(',').map(Number)
  const agent = { ...env, COFFER_API_KEY: createAgent(first) }
  const rows: Row[] = [
    ['node -e 0', undefined, () => timeNode(['-e', '0'])],
    ['coffer --version', 1.1, () => timeNode([program, '--version'])],
    ['coffer --version > /dev/null', 1.1, () => timeNode([program, '--version'], 'ignore')],
    ['coffer token create --help', 2, () => timeNode([program, 'token', 'create', '--help'])],
    ...sized.map((vault, at): Row => {
      const next = () => tokenId(Math.floor(Math.random() * counts[at]!))
      return [`coffer token get, ${counts[at]} tokens`, 2.1, () => timeCommand(vault, 'token', 'get', next())]
    }),
    [
      'coffer token create',
      2.3,
      () => timeCommand(first, 'token', 'create', '--type', 'token', '--data', 'text'),
    ],
    [`coffer token list, ${counts.at(-1)} tokens`, 2.6, () => timeCommand(largest, 'token', 'list')],
    ['coffer serve --ephemeral, ready', 2.6, () => timeReady(env, SERVE)],
    // The JSON output shows how reactors are confined, so the server must first probe the confinement.
    ['coffer serve --ephemeral -o json, ready', undefined, () => timeReady(env, [...SERVE, '-o', 'json'])],
    ['coffer mcp, ready', 2.8, () => timeReady(agent, ['mcp', ...openWords(first)], INITIALIZE)],
    ['completion of a name', undefined, () => timeCompletion(largest)],
    ...used.map((vault, at): Row => {
      const name = `coffer token get, after ${COMMANDS[at]} commands`
      return [name, undefined, () => timeCommand(vault, 'token', 'get', tokenId(0))]
    }),
  ]
  const measured = await measureInTurn(
    Number(rounds),
    rows.map(([name, , measure]) => ({ name, measure })),
  )
  printTimes('Whole process, key file', 'ms', measured)
  const [fresh, ...later] = measured.slice(-COMMANDS.length)
  for (const each of later) printRatio(`${each.name}, over none`, ratiosOf(each, fresh!))
  const floor = measured[0]!
  printGoals(
    [],
    rows.flatMap(([name, most], at) =>
      most === undefined
        ? []
        : [{ name: `${name}, relative to node -e 0`, most, ratios: [ratiosOf(measured[at]!, floor)] }],
    ),
  )
} finally {
  rmSync(place, { recursive: true, force: true })
}

function openWords({ directory, keyFile }: FilledVault): string[] {
  return ['--vault', directory, '--key-file', keyFile]
}

/** Creates an application for an agent in this vault. @returns the API key of the application */
function createAgent(vault: FilledVault): string {
  const words = [
    'app',
    'create',
    '--agent',
    'bench',
    '--fields',
    'key',
    '--output',
    'value',
    ...openWords(vault),
  ]
  return execFileSync(process.execPath, [program, ...words], { env, encoding: 'utf8' }).trim()
}

function timeCommand(vault: FilledVault, ...words: string[]): number {
  return timeNode([program, ...words, ...openWords(vault)])
}

/** Returns the time in ms that a shell waits for a completion. The goal is at most 150 ms. */
function timeCompletion(vault: FilledVault): number {
  return timeNode([program, 'completion', 'words', '--', 'tenant', 'use', ...openWords(vault), ''])
}

/** @returns the time in ms until the process has printed something */
async function timeReady(
  env: NodeJS.ProcessEnv,
  words: readonly string[],
  message?: object,
): Promise<number> {
  const start = performance.now()
  const child = spawn(process.execPath, [program, ...words], { env, stdio: ['pipe', 'pipe', 'ignore'] })
  if (message !== undefined) child.stdin.write(`${JSON.stringify(message)}\n`)
  await once(child.stdout, 'data')
  const ms = performance.now() - start
  child.kill('SIGKILL')
  await once(child, 'exit')
  return ms
}

/** @returns ms */
function timeNode(words: readonly string[], stdout: 'pipe' | 'ignore' = 'pipe'): number {
  const start = performance.now()
  const stdio = ['ignore', stdout, 'pipe'] as const
  const { status, stderr } = spawnSync(process.execPath, words, {
    env,
    cwd: place,
    encoding: 'utf8',
    stdio: [...stdio],
  })
  const ms = performance.now() - start
  if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
  return ms
}
