/** One process of the test that kills upgrades: opens the vault, says so, and writes to it when it is told to. */
import { once } from 'node:events'
import { nodeFiles } from '../../src/storage/node-files.js'
import { openOld, write } from './upgrade.js'

const vault = await openOld(nodeFiles(), process.argv[2])
process.send?.('open')
await once(process, 'message')
await write(vault, 'new')
await vault.store.close()
process.disconnect?.()
