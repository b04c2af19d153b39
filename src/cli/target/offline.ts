import { rm } from 'node:fs/promises'
import { CofferError, usage } from '../../errors.js'
import type { OfflineSession, OperationInput } from '../../framework/context.js'
import { type AnyOperation, mayRunOffline } from '../../framework/operation.js'
import { performOffline } from '../../framework/perform.js'
import type { ReactorRuntime } from '../../framework/ports/reactors.js'
import type { CopyDamage, NewSlot, OfflineVault } from '../../framework/ports/vault.js'
import { validateInput } from '../../framework/validate.js'
import { openReactors } from '../../vault/app.js'
import { changeKeySlots, listKeySlots, verifyAtRest } from '../../vault/offline.js'
import {
  isStore,
  type LockedVault,
  type NewOpener,
  parseStoreAddress,
  resolveDirectory,
  type VaultLocation,
} from '../../vault/open.js'
import type { CommandContext } from '../context.js'
import { printNotice } from '../output/output.js'
import { createProgress } from '../output/progress.js'
import { askNewPassphrase, chooseOpener, saveKeyFile } from './opener.js'
import { describePlace, newVaultDirectory, placeOf } from './place.js'
import { askOwned, findTenantChoice, reactorOptions, retryPassphrase } from './vault.js'

type Show = (label: string) => (done: number, total: number) => void

/** Requires: {@link mayRunOffline} returns true for the operation. */
export async function askOffline(context: CommandContext, definition: AnyOperation, input: OperationInput) {
  if (!mayRunOffline(definition)) throw new CofferError('internal', `${definition.name} needs an open vault.`)
  const { terminal, clock } = context
  let reactors: Promise<ReactorRuntime> | undefined
  let bar: ReturnType<typeof createProgress> | undefined
  const endProgress = async () => {
    await bar?.finish()
    bar = undefined
  }
  const show: Show = (label) => (done, total) => {
    bar ??= createProgress(terminal, { label, total }, clock)
    void bar.show(done).catch(() => undefined)
  }
  const session: OfflineSession = {
    vault: createOfflineVault(context, show),
    reactors: () => (reactors ??= reactorOptions(context).then(openReactors)),
    notice: async (text) => {
      await endProgress()
      await printNotice(terminal, text)
    },
    confirm: async (question) => {
      if (!context.config.yes) await (await import('../input/prompt.js')).confirm(terminal, question)
    },
    ask: ({ name }) => askOwned(context, name),
  }
  try {
    return await retryPassphrase(context, () => performOffline(session, definition, input, validateInput))
  } finally {
    await endProgress()
    await (await reactors?.catch(() => undefined))?.close()
  }
}

function createOfflineVault(context: CommandContext, show: Show): OfflineVault {
  const { terminal } = context
  const choose = (vault: LockedVault) => chooseOpener(context, vault)
  return {
    verify: () => verifyAtRest(placeOf(context), choose),
    restore: async (file) => {
      const target = placeOf(context, newVaultDirectory(context))
      const { restoreVault } = await import('../../vault/copy.js')
      await restoreVault(target, file, choose, show('Copying'))
      return { ...describePlace(target.directory), restored_from: file }
    },
    copy: async (to, { passwordFile, skipsDamaged }) => {
      const [source, target] = [placeOf(context), findTarget(context, to, passwordFile)]
      const damage: CopyDamage | undefined = skipsDamaged
        ? { findings: [], skipped: {}, lost_tenants: [] }
        : undefined
      const { copyVault } = await import('../../vault/copy.js')
      const { count, digest } = await copyVault(source, target, choose, show('Copying'), damage)
      const place = describePlace(target.directory)
      return { ...place, copied_from: source.directory, rows: count, digest, ...damage }
    },
    rekey: async () => {
      const place = placeOf(context)
      const { rekey } = await import('../../vault/rekey.js')
      const done = await rekey(place, choose, show('Encrypting'))
      return { ...describePlace(place.directory), ...done }
    },
    listSlots: () => listKeySlots(placeOf(context)),
    changeSlots: async (added, chooseSlots) => {
      const place = placeOf(context)
      const saved: string[] = []
      const opener = added && (await createOpener(context, added, (path) => saved.push(path)))
      const tenant = await findTenantChoice(context)
      const change = { added: opener, choose: chooseSlots, tenant }
      const slots = await changeKeySlots(place, choose, change).catch(async (error: unknown) => {
        // Only a conflict proves that the new key file opens nothing.
        const isRefused = error instanceof CofferError && error.code === 'conflict'
        for (const path of saved)
          if (isRefused) await rm(path, { force: true })
          else await printNotice(terminal, describeUncertain(path))
        throw error
      })
      for (const path of saved) await printNotice(terminal, `The new key file is ${path}.`)
      return slots
    },
  }
}

function describeUncertain(path: string): string {
  return (
    `The new key file ${path} is written, but it may not open the vault. If \`coffer vault keys list\` shows no new ` +
    'slot, remove the file and repeat the command.'
  )
}

function findTarget(context: CommandContext, to: string, passwordFile: string | undefined): VaultLocation {
  if (!isStore(to)) {
    if (passwordFile === undefined) return placeOf(context, resolveDirectory(context.cwd, to))
    throw usage('--to-password-file is for a store, and --to is a directory.')
  }
  const { text, hasPassword, warning } = parseStoreAddress(to)
  if (hasPassword)
    throw usage('--to takes an address without a password. Use --to-password-file, or a PGPASSFILE.')
  const place = placeOf(context, text)
  if (warning !== undefined) place.notice(warning)
  const storePassword = async () =>
    passwordFile === undefined ? undefined : context.input.readSecretFile(passwordFile, '--to-password-file')
  return { ...place, storePassword }
}

/** `noteSaved`: called with the path of a new key file. */
async function createOpener(
  context: CommandContext,
  { kind, file }: NewSlot,
  noteSaved: (path: string) => void,
): Promise<NewOpener> {
  const flag = '--new-passphrase-file'
  if (kind === 'passphrase' && file !== undefined)
    return { kind, passphrase: await context.input.readSecretFile(file, flag) }
  if (kind === 'passphrase') return { kind, passphrase: await askNewPassphrase(context, flag) }
  const save = async (_: string, text: string) => {
    await saveKeyFile(file!, text)
    noteSaved(file!)
  }
  return { kind, save }
}
