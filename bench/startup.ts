/**
 * What a command costs from the first to the last moment of its process, against a Node that does nothing. Arguments:
 * rounds, sizes of the vaults.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { measureInTurn, printRatio, printTimes, ratiosOf } from './figures.js'
import { createFilledVault, type FilledVault, openFilledVault, tokenId } from './filled-vault.js'

const [rounds = '15', sizes = '1,1000,100000'] = process.argv.slice(2)
/** Since the log was flushed last. */
const COMMANDS = [0, 64, 1000, 2000]
const program = fileURLToPath(new URL('../../bin/coffer.js', import.meta.url))
const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
// Certificates that Node reads at every start would more than double the floor.
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env

try {
  const vaults: [number, FilledVault][] = []
  for (const tokens of sizes.split(',').map(Number))
    vaults.push([tokens, await createFilledVault(place, tokens)])
  const used: [number, FilledVault][] = []
  for (const commands of COMMANDS) used.push([commands, await createUsedVault(commands)])
  const measured = await measureInTurn(Number(rounds), [
    { name: 'node -e 0', measure: () => timeNode(['-e', '0']) },
    { name: 'coffer --version', measure: () => timeNode([program, '--version']) },
    { name: 'coffer --help', measure: () => timeNode([program, '--help']) },
    ...vaults.map(([tokens, vault]) => ({
      name: `coffer token get, ${tokens} tokens`,
      measure: () => timeGet(tokens, vault),
    })),
    ...used.map(([commands, vault]) => ({
      name: `coffer token get, after ${commands} commands`,
      measure: () => timeGet(1, vault),
    })),
    { name: 'coffer token create', measure: () => timeCreate(vaults[0]![1]) },
    { name: 'completion of a name', measure: () => timeCompletion(vaults.at(-1)![1]) },
  ])
  printTimes('Whole process, key file', 'ms', measured)
  const [smallest, largest] = [measured[3], measured[2 + vaults.length]]
  if (smallest !== undefined && largest !== undefined && smallest !== largest)
    printRatio(`${largest.name}, over the one of ${vaults[0]![0]}`, ratiosOf(largest, smallest))
  const [fresh, ...later] = measured.slice(3 + vaults.length, -2)
  for (const each of later) printRatio(`${each.name}, over none`, ratiosOf(each, fresh!))
} finally {
  rmSync(place, { recursive: true, force: true })
}

/** What that many commands that read a token leave behind. */
async function createUsedVault(commands: number): Promise<FilledVault> {
  const vault = await createFilledVault(join(place, `used-${commands}`), 1)
  for (let done = 0; done < commands; done++) {
    const app = await openFilledVault(vault, 'command')
    await app.ask({ operation: 'token get', input: { id: tokenId(0) }, as: { reveal: false } })
    await app.close()
  }
  return vault
}

function timeCreate({ directory, keyFile }: FilledVault): number {
  const words = ['token', 'create', '--type', 'token', '--data', 'text']
  return timeNode([program, ...words, '--vault', directory, '--key-file', keyFile])
}

/** What the shell waits for at a press of the key: at most 150 ms. */
function timeCompletion({ directory, keyFile }: FilledVault): number {
  const line = ['tenant', 'use', '--vault', directory, '--key-file', keyFile, '']
  return timeNode([program, 'completion', 'words', '--', ...line])
}

function timeGet(tokens: number, { directory, keyFile }: FilledVault): number {
  const id = tokenId(Math.floor(Math.random() * tokens))
  return timeNode([program, 'token', 'get', id, '--vault', directory, '--key-file', keyFile])
}

/** ms */
function timeNode(words: readonly string[]): number {
  const start = performance.now()
  const { status, stderr } = spawnSync(process.execPath, words, { env, cwd: place, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
  return performance.now() - start
}
