/** Performs operations that run without an open vault, with the effects of this run. */
import { usage } from '../../errors.js'
import type { AnyOperation, OfflineSession, OperationInput } from '../../framework/operation.js'
import { performOffline } from '../../framework/perform.js'
import type { ReactorRuntime } from '../../framework/ports/reactors.js'
import type { NewSlot } from '../../framework/ports/vault.js'
import { validateInput } from '../../framework/validate.js'
import { openReactors } from '../../vault/app.js'
import { createOfflineVault } from '../../vault/offline.js'
import {
  isStore,
  type NewOpener,
  parseStoreAddress,
  resolveDirectory,
  type VaultLocation,
} from '../../vault/open.js'
import type { CommandContext } from '../context.js'
import { printNotice } from '../output/output.js'
import { createProgress } from '../output/progress.js'
import { askNewPassphrase, chooseOpener, newVaultDirectory, placeOf, retryPassphrase } from './credentials.js'
import { reactorOptions } from './reactor-options.js'
import { saveKeyFile } from './save-key-file.js'
import { findTenantChoice } from './tenant-choice.js'

/** @throws CofferError those of the operation */
export async function askOffline(
  context: CommandContext,
  definition: AnyOperation,
  input: OperationInput,
): Promise<unknown> {
  let reactors: Promise<ReactorRuntime> | undefined
  const progress = createRowProgress(context)
  const session: OfflineSession = {
    vault: createOfflineVault({
      find: () => placeOf(context),
      findNew: () => placeOf(context, newVaultDirectory(context)),
      findTarget: (to, file) => findTarget(context, to, file, session.notice),
      tenant: () => findTenantChoice(context),
      choose: (vault) => chooseOpener(context, vault),
      createOpener: (slot) => createOpener(context, slot),
      progress: progress.show,
    }),
    reactors: () => (reactors ??= reactorOptions(context).then(openReactors)),
    notice: async (text) => {
      await progress.finish()
      await printNotice(context.terminal, text)
    },
    ask: async ({ name }) => {
      const as = { reveal: false, tenant: await findTenantChoice(context) }
      return context.reachVault(async (vault) => (await vault.ask({ operation: name, input: {}, as })).result)
    },
  }
  try {
    return await retryPassphrase(context, () => performOffline(session, definition, input, validateInput))
  } finally {
    await progress.finish()
    await (await reactors?.catch(() => undefined))?.close()
  }
}

/** A progress bar that appears with the first step. */
function createRowProgress({ terminal, clock }: CommandContext) {
  let bar: ReturnType<typeof createProgress> | undefined
  return {
    show: (done: number, total: number, label: string) => {
      bar ??= createProgress(terminal, { label, total }, clock)
      void bar.show(done).catch(() => undefined)
    },
    finish: async () => {
      await bar?.finish()
      bar = undefined
    },
  }
}

/** The target of a copy. @throws CofferError `usage` */
function findTarget(
  context: CommandContext,
  to: string,
  passwordFile: string | undefined,
  notice: OfflineSession['notice'],
): VaultLocation {
  if (!isStore(to)) {
    if (passwordFile === undefined) return placeOf(context, resolveDirectory(context.cwd, to))
    throw usage('--to-password-file is for a store, and --to is a directory.')
  }
  const { text, hasPassword, warning } = parseStoreAddress(to)
  if (hasPassword)
    throw usage('--to takes an address without a password. Use --to-password-file, or a PGPASSFILE.')
  if (warning !== undefined) void notice(warning)
  const storePassword = async () =>
    passwordFile === undefined ? undefined : context.input.readSecretFile(passwordFile, '--to-password-file')
  return { ...placeOf(context, text), storePassword }
}

/** The secret of a new slot: a passphrase from a file or a prompt, or a new key file. */
async function createOpener(context: CommandContext, { kind, file }: NewSlot): Promise<NewOpener> {
  if (kind === 'passphrase') {
    const passphrase =
      file === undefined
        ? await askNewPassphrase(context, '--new-passphrase-file')
        : await context.input.readSecretFile(file, '--new-passphrase-file')
    return { kind, passphrase }
  }
  return {
    kind,
    save: async (_, text) => {
      await saveKeyFile(file!, text)
      await printNotice(context.terminal, `The new key file is ${file}.`)
    },
  }
}
