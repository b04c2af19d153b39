/** Changes of key slots while the disk fails. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { testVault } from './home.js'

testVault(
  'if the disk is full, vault keys add names the new key file and says that the file possibly does not open the vault',
  async (t, home) => {
    const { renameSync } = fs
    const restore = () => {
      fs.renameSync = renameSync
      syncBuiltinESMExports()
    }
    t.teardown(restore)
    fs.renameSync = (from, to) => {
      if (String(to).endsWith('/vault.json')) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
      renameSync(from, to)
    }
    syncBuiltinESMExports()
    const { code, stderr } = await home.run('vault keys add --new-key-file second.key')
    restore()
    t.not(code, 0)
    t.match(
      stderr,
      /The new key file \S+second\.key is written, but it may not open the vault\. If `coffer vault keys list` shows/,
    )
    t.equal((await home.json('vault keys list')).length, 1)
  },
)
