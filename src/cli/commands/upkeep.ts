/** `coffer vault verify | compact | backup | restore | rekey | lock`. */
import { resolve } from 'node:path'
import { CofferError } from '../../errors.js'
import { readHolder, rekey, restoreVault, salvageVault, verifyAtRest } from '../../vault/offline.js'
import type { Desk } from '../context.js'
import { chooseOpener, findVaultDirectory, newVaultDirectory, placeOf } from '../credentials.js'
import { chooseFormat, printNotice, printResult } from '../output/output.js'
import { createProgress } from '../output/progress.js'

interface Verification {
  findings: { place: string; problem: string }[]
  readable: { records: number; logs: number }
  segments: number
  dated_ahead?: { records: number; logs: number; newest: string }
}

const SALVAGING =
  'Restore a backup, or bring what can be read into a new vault: coffer vault restore --salvage DIRECTORY --vault NEW'

/** @throws CofferError `vault_damaged` once the findings are printed */
export async function verify(desk: Desk): Promise<void> {
  const result = await verifyReachable(desk)
  await print(desk, { ok: result.findings.length === 0, ...result })
  if (result.dated_ahead !== undefined) {
    const { records, logs, newest } = result.dated_ahead
    const what = `${records} records and ${logs} log records are dated ahead of the clock, up to ${newest}.`
    await printNotice(
      desk.terminal,
      `${what} Set the clock if it is wrong; else it was wrong when they were written.`,
    )
  }
  if (result.findings.length === 0) return
  const { records, logs } = result.readable
  throw new CofferError(
    'vault_damaged',
    `The vault is damaged; ${records} records and ${logs} log records can still be read. ${SALVAGING}`,
  )
}

/** Through whoever has it open; a vault that does not open is looked at as it lies there. */
async function verifyReachable(desk: Desk): Promise<Verification> {
  try {
    return (await desk.reachVault((vault) => vault.command('vault verify', {}))) as Verification
  } catch (error) {
    if (!(error instanceof CofferError) || error.code !== 'vault_damaged') throw error
    await printNotice(desk.terminal, `The vault does not open: ${error.message} Looking at what can be read…`)
    return verifyAtRest(placeOf(desk), (vault) => chooseOpener(desk, vault))
  }
}

export async function compact(desk: Desk): Promise<void> {
  await desk.reachVault((vault) => vault.command('vault compact', {}))
  await printNotice(desk.terminal, 'Done.')
}

export async function backup(desk: Desk, file: string): Promise<void> {
  const path = resolve(desk.cwd, file)
  const bytes = await desk.reachVault((vault) => vault.command('vault backup', { path }))
  await print(desk, { file: path, bytes })
}

export async function restore(desk: Desk, file: string): Promise<void> {
  const directory = newVaultDirectory(desk)
  const place = { ...placeOf(desk, directory) }
  await restoreVault(place, resolve(desk.cwd, file), (vault) => chooseOpener(desk, vault))
  await print(desk, { directory, restored_from: resolve(desk.cwd, file) })
}

/** What can be read of the damaged vault in a directory, as a new vault. */
export async function salvage(desk: Desk, damaged: string): Promise<void> {
  const directory = newVaultDirectory(desk)
  const source = resolve(desk.cwd, damaged)
  const report = await salvageVault(placeOf(desk, directory), source, (vault) => chooseOpener(desk, vault))
  await print(desk, { directory, salvaged_from: source, ...report })
  const lost = Object.values(report.missing).reduce((sum, count) => sum + count, 0)
  const isWhole = lost === 0 && report.findings.length === 0
  const some = lost === 0 ? 'What is damaged' : `${lost} rows could not be read; what is damaged`
  const what = isWhole ? 'Nothing is missing' : `${some} is listed above`
  await printNotice(
    desk.terminal,
    `${what}. The damaged vault is as it was: keep it until you are sure that you have what you need.`,
  )
}

export async function changeKeys(desk: Desk): Promise<void> {
  const { terminal, config } = desk
  if (!config.yes) {
    const { confirm } = await import('../input/prompt.js')
    const message =
      'This changes every key and seals everything anew. Older backups keep the old keys. Go on?'
    if (!(await confirm(terminal, { message }))) throw new CofferError('interrupted', 'Nothing was changed.')
  }
  let bar: ReturnType<typeof createProgress> | undefined
  let shown = 0
  const { dropped } = await rekey(
    placeOf(desk),
    (vault) => chooseOpener(desk, vault),
    (done, total) => {
      bar ??= createProgress(terminal, { label: 'Sealing anew', total }, desk.clock)
      void bar.tick(done - shown)
      shown = done
    },
  )
  await bar?.finish()
  for (const { id, kind } of dropped) {
    await printNotice(
      terminal,
      `The ${kind} slot ${id} was dropped; add it again with: coffer vault keys add`,
    )
  }
  await print(desk, {
    directory: findVaultDirectory(desk),
    resealed: shown,
    dropped_slots: dropped.map(({ id }) => id),
  })
}

export async function showLock(desk: Desk): Promise<void> {
  const holder = readHolder(placeOf(desk))
  await print(desk, holder === undefined ? { held: false } : { held: true, ...holder })
}

async function print({ terminal, config }: Desk, result: object): Promise<void> {
  await printResult(terminal, result, {
    format: chooseFormat(terminal, config.output),
    fields: config.fields,
  })
}
