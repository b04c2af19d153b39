/** Tests how a command finds the vault that it uses. */
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { testVault } from '../home.js'

testVault(
  '--vault names a vault or its parent directory, and a key file beside the vault is found',
  async (t, home) => {
    const { vault, key_file } = await home.json('init --vault other')
    for (const directory of ['.', '.coffer', 'other'])
      t.equal((await home.run(['token', 'list', '--vault', directory])).code, 0, directory)
    t.equal((await home.json('vault status --vault other')).vault, vault)
    cpSync(join(home.place, 'other'), join(home.place, 'demo/.coffer-demo/vault'), { recursive: true })
    cpSync(key_file, join(home.place, 'demo/.coffer-demo/vault.key'))
    const elsewhere = { env: { XDG_CONFIG_HOME: join(home.place, 'nothing') }, cwd: join(home.place, 'demo') }
    const status = await home.json('vault status --vault .coffer-demo', elsewhere)
    t.match(status, { vault, directory: join(home.place, 'demo/.coffer-demo/vault') })
    rmSync(join(home.place, '.coffer'), { recursive: true })
    const used = await home.json('vault status', elsewhere)
    t.equal(used.vault, vault, 'the demo vault is used if there is no other vault')
    const told = 'This is the demo vault in .coffer-demo. Create yours: coffer init\n'
    t.equal((await home.run('token list', elsewhere)).stderr, told, 'the demo vault is reported')
    t.equal((await home.run('token list --quiet', elsewhere)).stderr, '')
    t.equal((await home.run('token list --vault .coffer-demo', elsewhere)).stderr, '')
  },
)

testVault(
  'a command that runs inside the directory of a vault says how to name the vault',
  async (t, home) => {
    await home.json('vault copy --to other')
    rmSync(join(home.place, '.coffer'), { recursive: true })
    const vault = join(home.place, 'other')
    for (const cwd of [vault, join(vault, 'segments')]) {
      mkdirSync(cwd, { recursive: true })
      const told = await home.run('token list', { cwd })
      t.match(told, { code: 6, stderr: `This directory is in a vault. Name the vault: --vault ${vault}\n` })
    }
  },
)
