import { omitUndefined } from '../../domain/omit-undefined.js'
import { CofferError } from '../../errors.js'
import type { Verification } from '../../framework/ports/vault.js'
import { countOf } from '../output/display.js'
import type { Hooks, Presentations } from '../task.js'

const RECOVERING = 'Restore a backup, or copy what can be read: coffer vault copy --skip-damaged --to NEW'

const showStatus: Hooks = {
  run: async ({ context, ask, print }) => {
    // Loaded here, because parsing and help need no vault.
    const { describePlace, findVaultDirectory, placeOf } = await import('../target/place.js')
    const { readHolder } = await import('../../vault/offline.js')
    const place = findVaultDirectory(context)
    const held_by = context.config.store === undefined ? readHolder(placeOf(context)) : undefined
    const found = omitUndefined({ held_by })
    await print({ ...describePlace(place), ...found, ...((await ask()) as object) })
  },
}

const backUpVault: Hooks = {
  run: async ({ ask, print, notice }) => {
    await print(await ask())
    await notice(
      'To open the backup, you need a key file or passphrase that opens the vault now. Keep one in a safe place.',
    )
  },
}

/** @throws CofferError `vault_damaged` if anything is damaged */
const verifyVault: Hooks = {
  run: async ({ ask, print }) => {
    const result = (await ask()) as Verification
    await print(result)
    if (result.findings.length === 0) return
    const { records, logs } = result.readable
    throw new CofferError(
      'vault_damaged',
      `The vault is damaged; ${countOf(records, 'record')} and ${countOf(logs, 'log record')} can still be read. ${RECOVERING}`,
    )
  },
}

export const presentations: Presentations = {
  'vault backup': { hooks: backUpVault },
  'vault status': { hooks: showStatus },
  'vault verify': { hooks: verifyVault },
}
