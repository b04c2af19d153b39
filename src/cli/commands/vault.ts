/** `coffer vault status | verify | restore`: what the terminal adds to the answers. */
import { CofferError } from '../../errors.js'
import type { SalvageReport, Verification } from '../../framework/vault-port.js'
import { findVaultDirectory } from '../context/credentials.js'
import type { Steps } from '../context/task.js'
import { printNotice } from '../output/output.js'

const SALVAGING =
  'Restore a backup, or bring what can be read into a new vault: coffer vault restore --salvage DIRECTORY --vault NEW'

export const status: Steps = {
  run: async ({ context, ask, print }) =>
    print({ directory: findVaultDirectory(context), ...((await ask()) as object) }),
}

/** Ends with `vault_damaged`, once the findings are printed. */
export const verify: Steps = {
  run: async ({ context, ask, print }) => {
    const result = (await ask()) as Verification
    await print(result)
    if (result.dated_ahead !== undefined) {
      const { records, logs, newest } = result.dated_ahead
      const what = `${records} records and ${logs} log records are dated ahead of the clock, up to ${newest}.`
      await printNotice(
        context.terminal,
        `${what} Set the clock if it is wrong; else it was wrong when they were written.`,
      )
    }
    if (result.findings.length === 0) return
    const { records, logs } = result.readable
    throw new CofferError(
      'vault_damaged',
      `The vault is damaged; ${records} records and ${logs} log records can still be read. ${SALVAGING}`,
    )
  },
}

export const restore: Steps = {
  run: async ({ context, input, ask, print }) => {
    const result = await ask()
    await print(result)
    if (input.salvage !== true) return
    const { missing, findings } = result as SalvageReport
    const lost = Object.values(missing).reduce((sum, count) => sum + count, 0)
    const isWhole = lost === 0 && findings.length === 0
    const some = lost === 0 ? 'What is damaged' : `${lost} rows could not be read; what is damaged`
    const what = isWhole ? 'Nothing is missing' : `${some} is listed above`
    await printNotice(
      context.terminal,
      `${what}. The damaged vault is as it was: keep it until you are sure that you have what you need.`,
    )
  },
}
