import { omitUndefined } from '../../domain/omit-undefined.js'
import { CofferError } from '../../errors.js'
import type { Verification } from '../../framework/ports/vault.js'
import { readHolder } from '../../vault/offline.js'
import { countOf } from '../output/display.js'
import { describePlace, findVaultDirectory, placeOf } from '../target/credentials.js'
import type { Hooks } from '../task.js'

const RECOVERING = 'Restore a backup, or copy what can be read: coffer vault copy --skip-damaged --to NEW'

export const status: Hooks = {
  run: async ({ context, ask, print }) => {
    const place = findVaultDirectory(context)
    const held_by = context.config.store === undefined ? readHolder(placeOf(context)) : undefined
    const found = omitUndefined({ held_by })
    await print({ ...describePlace(place), ...found, ...((await ask()) as object) })
  },
}

/** @throws CofferError `vault_damaged` after printing the findings */
export const verify: Hooks = {
  run: async ({ ask, print, notice }) => {
    const result = (await ask()) as Verification
    await print(result)
    if (result.dated_ahead !== undefined) {
      const { records, logs, newest } = result.dated_ahead
      const what = `Dated ahead of the clock, up to ${newest}: ${countOf(records, 'record')}, ${countOf(logs, 'log record')}.`
      await notice(`${what} Correct the clock if it is wrong; otherwise it was wrong when they were written.`)
    }
    if (result.findings.length === 0) return
    const { records, logs } = result.readable
    throw new CofferError(
      'vault_damaged',
      `The vault is damaged; ${countOf(records, 'record')} and ${countOf(logs, 'log record')} can still be read. ${RECOVERING}`,
    )
  },
}
