/**
 * A process that opens a vault like a server, uses the vault for a while, and reports its own memory. The arguments are
 * the vault as JSON and its number of tokens.
 */
import { CUSTOMERS, type FilledVault, openFilledVault, tokenId } from './filled-vault.js'

export interface Holding {
  rssMb: number
}

const GETS = 5000
const PAGES = 100

const [vault = '', count = '0'] = process.argv.slice(2)
const tokens = Number(count)
const app = await openFilledVault(JSON.parse(vault) as FilledVault, 'server')
const { number } = await app.tenant()
for (let run = 0; run < GETS; run++) {
  const id = tokenId((run * 7919) % Math.max(1, tokens))
  await app.store.read((reader) => reader.get('token', number, id))
}
for (let page = 1; page <= PAGES; page++) {
  const where = { field: 'metadata.customer', value: String(page % CUSTOMERS) }
  await app.store.read((reader) => reader.find('token', number, { where, page: 1, size: 20 }))
}
const holding: Holding = { rssMb: process.memoryUsage.rss() / 1024 / 1024 }
process.send?.(holding)
await app.close()
process.disconnect()
