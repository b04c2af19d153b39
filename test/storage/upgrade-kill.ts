/**
 * Kills processes that bring a vault of format 1 to format 2, each at a random moment, and says what was wrong with what
 * they left.
 */
import { fork } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nodeFiles } from '../../src/storage/node-files.js'
import { copyFrozen, FROZEN_VAULTS, VAULT } from './frozen.js'
import { openOld, tell, write } from './upgrade.js'

const CHILD = fileURLToPath(new URL('./upgrade-child.js', import.meta.url))
export interface KilledUpgrades {
  faults: string[]
  kills: number
  /** How many vaults were found in each format. */
  formats: Record<number, number>
}

export async function killUpgrades(kills: number): Promise<KilledUpgrades> {
  const result: KilledUpgrades = { faults: [], kills: 0, formats: {} }
  let before: string | undefined
  let after: string | undefined
  // Of an upgrade that is not killed, from the word to the end.
  let mostMs = Number.POSITIVE_INFINITY
  while (result.kills < kills) {
    const copy = copyFrozen(join(FROZEN_VAULTS, '1'))
    const directory = join(copy.directory, VAULT)
    try {
      before ??= await tellOf(directory)
      const isWhole = mostMs === Number.POSITIVE_INFINITY
      const ms = await runChild(directory, isWhole ? undefined : randomInt(Math.ceil(mostMs)))
      if (isWhole) mostMs = ms
      const { header } = await openOld(nodeFiles(), directory)
      result.formats[header.format] = (result.formats[header.format] ?? 0) + 1
      const told = await tellOf(directory)
      const vault = await openOld(nodeFiles(), directory)
      if (told === before) await write(vault, 'new')
      await vault.store.close()
      const then = await tellOf(directory)
      after ??= then
      if (told !== before && told !== after) result.faults.push('neither as it was nor upgraded')
      if (then !== after) result.faults.push('could not be gone on with')
      result.kills++
    } finally {
      copy.remove()
    }
  }
  return result
}

async function tellOf(directory: string): Promise<string> {
  const vault = await openOld(nodeFiles(), directory)
  const told = await tell(vault)
  await vault.store.close()
  return told
}

/** Lets a child upgrade the vault, and kills it after so many milliseconds, if given; gives how long it ran. */
async function runChild(directory: string, killAfterMs?: number): Promise<number> {
  const child = fork(CHILD, [directory])
  await once(child, 'message')
  const ended = once(child, 'exit')
  const started = performance.now()
  child.send('go')
  if (killAfterMs !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, killAfterMs))
    child.kill('SIGKILL')
  }
  await ended
  return performance.now() - started
}
