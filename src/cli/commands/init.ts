/** `coffer init`: creates a vault, its first tenant, and its key file or passphrase. */
import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { checkTenantName } from '../../domain/invitation/tenant-name.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { about } from '../../domain/property-errors.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import type { App } from '../../vault/app.js'
import { createVault, type NewOpener } from '../../vault/open.js'
import { ensureSampleApplications } from '../../vault/sample-applications.js'
import type { CommandContext } from '../context.js'
import { printForRun, printNotice } from '../output/output.js'
import {
  askNewPassphrase,
  describePlace,
  keyFilePath,
  newVaultDirectory,
  placeOf,
  readGivenPassphrase,
} from '../target/credentials.js'
import { saveKeyFile } from '../target/save-key-file.js'
import type { Options } from '../task.js'

const DEFAULT_TENANT = 'default'

/** @throws CofferError `conflict` if the vault exists */
export async function initVault(context: CommandContext, flags: Options): Promise<void> {
  const { terminal } = context
  const directory = newVaultDirectory(context)
  const tenantName = readTenantName(flags.name)
  let keyFile: string | undefined
  const opener = await chooseNewOpener(context, flags.passphrase === true, (path) => {
    keyFile = path
  })
  const wantsSamples = flags.starterApps === true
  let app: App
  try {
    app = await createVault(placeOf(context, directory), tenantName, opener)
  } catch (error) {
    // The saved key file opens nothing.
    if (keyFile !== undefined) await rm(keyFile, { force: true })
    throw error
  }
  const { id, name, owner_id } = await app.tenant()
  const applications = wantsSamples ? await ensureSampleApplications(app) : undefined
  await app.close()
  const result = {
    vault: app.header?.vault,
    ...describePlace(context, directory),
    key_file: keyFile,
    tenant: { id, name, owner_id },
    applications,
  }
  await printForRun(context, omitUndefined(result))
  if (wantsSamples) await printNotice(terminal, 'The keys of the applications are shown only once.')
  const repeated = flags.store === undefined ? flags : { ...flags, store: directory }
  await printNotice(terminal, adviseAfterInit(context, repeated, keyFile))
}

/** Repeats flags that later commands need; variables stay in the environment. */
function adviseAfterInit(
  { program }: CommandContext,
  { vault, store, storePasswordFile, keyFile: key }: Options,
  keyFile: string | undefined,
): string {
  const repeat = (flag: string, value: unknown) =>
    typeof value === 'string' ? ` ${flag} ${quoteWord(value)}` : ''
  const place = repeat('--vault', vault) + repeat('--store', store)
  const flags = place + repeat('--store-password-file', storePasswordFile) + repeat('--key-file', key)
  const loss =
    keyFile === undefined
      ? 'Only the passphrase opens this vault: if it is forgotten, all data is lost.'
      : 'Keep a copy of the key file in a safe place: without it, everything in the vault is lost.'
  return `${loss}

Store a card:  echo '{"type":"card","data":{"number":"4242424242424242"}}' | ${program} token create${flags}
List tokens:   ${program} token list${flags}
Serve it:      ${program} serve --starter-apps${flags}`
}

/** @throws CofferError `usage` */
function readTenantName(name: unknown): string {
  if (name === undefined) return DEFAULT_TENANT
  about('--name', () => checkTenantName(String(name)))
  return String(name)
}

async function chooseNewOpener(
  context: CommandContext,
  wantsPassphrase: boolean,
  saved: (path: string) => void,
): Promise<NewOpener> {
  const given = await readGivenPassphrase(context)
  if (given !== undefined) return { kind: 'passphrase', passphrase: given }
  if (wantsPassphrase) return { kind: 'passphrase', passphrase: await askNewPassphrase(context) }
  return {
    kind: 'key-file',
    save: async (vault, text) => {
      const { keyFile } = context.config
      const path = keyFile === undefined ? keyFilePath(context, vault) : resolve(context.cwd, keyFile)
      await saveKeyFile(path, text)
      saved(path)
    },
  }
}
