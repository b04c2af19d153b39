import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { about } from '../../domain/property-errors.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError, noRevealError } from '../../errors.js'
import { checkTenantName } from '../../operations/tenant/tenant-create.js'
import { createVault, identifyVault, type NewOpener, type VaultLocation } from '../../vault/open.js'
import { ensureSampleApplications } from '../../vault/sample-applications.js'
import type { CommandContext, Options } from '../context.js'
import { printForRun, printNotice } from '../output/output.js'
import { askNewPassphrase, keyFilePath, readGivenPassphrase, saveKeyFile } from '../target/opener.js'
import { describePlace, newVaultDirectory, placeOf } from '../target/place.js'

export async function initVault(context: CommandContext, _: unknown, flags: Options): Promise<void> {
  const { terminal, config, cwd } = context
  const directory = newVaultDirectory(context)
  const tenantName = String(flags.name ?? 'default')
  about('--name', () => checkTenantName(tenantName))
  if (config.noReveal && flags.starterApps === true) throw noRevealError('new keys (--starter-apps)')
  const passphrase =
    (await readGivenPassphrase(context)) ??
    (flags.passphrase === true ? await askNewPassphrase(context) : undefined)
  let keyFile: string | undefined
  const save = async (vault: string, text: string) => {
    const path = config.keyFile === undefined ? keyFilePath(context, vault) : resolve(cwd, config.keyFile)
    await saveKeyFile(path, text)
    keyFile = path
  }
  const opener: NewOpener =
    passphrase === undefined ? { kind: 'key-file', save } : { kind: 'passphrase', passphrase }
  const place = placeOf(context, directory)
  const app = await createVault(place, tenantName, opener).catch(async (error) => {
    if (keyFile !== undefined && (await isMissing(place))) await rm(keyFile, { force: true })
    throw error
  })
  const { id, name, owner_id } = await app.tenant()
  const applications = flags.starterApps === true ? await ensureSampleApplications(app) : undefined
  await app.close()
  const result = {
    vault: app.header?.vault,
    ...describePlace(directory),
    key_file: keyFile,
    tenant: { id, name, owner_id },
    applications,
  }
  await printForRun(context, omitUndefined(result)).catch((cause: CofferError) => {
    const made = `The vault was created in ${directory}.`
    const lost =
      applications && 'The keys of its applications are lost. Create others: coffer app key create NAME'
    throw new CofferError(cause.code, [made, cause.message, lost].filter(Boolean).join(' '), { cause })
  })
  if (applications !== undefined)
    await printNotice(terminal, 'The keys of the applications are shown only once.')
  const loss =
    keyFile === undefined
      ? 'Only the passphrase opens this vault: if it is forgotten, all data is lost.'
      : 'Keep a copy of the key file in a safe place: without it, everything in the vault is lost.'
  const { program } = context
  const store = `echo '{"type":"card","data":{"number":"4242424242424242"}}' | ${program} token create`
  const again = repeatFlags(flags, directory)
  await printNotice(
    terminal,
    `${loss}\n\nStore a card:  ${store}${again}\nServe it:      ${program} serve --starter-apps${again}`,
  )
}

/**
 * Returns true only if certainly no vault exists. A failed creation may still have created the vault, for example if
 * the connection broke after the commit. Then the key file must be kept.
 */
function isMissing(place: VaultLocation): Promise<boolean> {
  return identifyVault(place).then(
    () => false,
    (error: unknown) => error instanceof CofferError && error.code === 'vault_missing',
  )
}

/** Repeats only flags, because later commands read the environment variables again. */
function repeatFlags({ vault, store, storePasswordFile, keyFile }: Options, directory: string): string {
  const given = {
    '--vault': vault,
    // For a store, `directory` is the address without the password.
    '--store': store && directory,
    '--store-password-file': storePasswordFile,
    '--key-file': keyFile,
  }
  return Object.entries(given)
    .map(([flag, value]) => (typeof value === 'string' ? ` ${flag} ${quoteWord(value)}` : ''))
    .join('')
}
