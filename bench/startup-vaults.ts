/**
 * Creates the vaults of the start-up benchmark and prints them as JSON. The first vaults have the given sizes. Each of
 * the other vaults has a single token, and a given number of commands have read this token. This program runs in a
 * separate process, because a process with much memory starts other processes more slowly. The arguments are the
 * directory, the sizes, and the numbers of commands.
 */
import { join } from 'node:path'
import { createFilledVault, type FilledVault, openFilledVault, tokenId } from './filled-vault.js'

export interface StartupVaults {
  sized: FilledVault[]
  used: FilledVault[]
}

const [place = '', sizes = '', commands = ''] = process.argv.slice(2)
const vaults: StartupVaults = { sized: [], used: [] }
for (const tokens of sizes.split(',')) vaults.sized.push(await createFilledVault(place, Number(tokens)))
for (const count of commands.split(',')) vaults.used.push(await createUsedVault(Number(count)))
console.log(JSON.stringify(vaults))

async function createUsedVault(commands: number): Promise<FilledVault> {
  const vault = await createFilledVault(join(place, `used-${commands}`), 1)
  for (let done = 0; done < commands; done++) {
    const app = await openFilledVault(vault, 'command')
    await app.ask({ operation: 'token get', input: { id: tokenId(0) }, as: { reveal: false } })
    await app.close()
  }
  return vault
}
