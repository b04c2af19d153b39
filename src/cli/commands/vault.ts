/** `coffer init` and `coffer vault …`: the vault itself rather than what it holds. */
import { mkdir, open, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { about } from '../../domain/property-errors.js'
import { checkTenantName } from '../../domain/tenant-name.js'
import { CofferError } from '../../errors.js'
import type { App } from '../../vault/app.js'
import { createVault, type NewOpener } from '../../vault/open.js'
import type { Desk } from '../context.js'
import { findVaultDirectory, keyFilePath, newVaultDirectory, readGivenPassphrase } from '../credentials.js'
import { chooseFormat, printNotice, printResult } from '../output/output.js'
import { ensureStarters } from './sample-applications.js'
import { findTenantChoice } from './tenant-choice.js'

const DEFAULT_TENANT = 'default'

/**
 * Creates a vault, its first tenant, and what opens it.
 * @throws CofferError `conflict` over a vault that is there
 */
export async function initVault(desk: Desk, flags: Readonly<Record<string, unknown>>): Promise<void> {
  const { terminal, config } = desk
  const directory = newVaultDirectory(desk)
  const tenantName = readTenantName(flags.name)
  let keyFile: string | undefined
  const opener = await chooseNewOpener(desk, flags.passphrase === true, (path) => {
    keyFile = path
  })
  const wantsStarters = flags.starterApps === true || (await wishesForStarters(desk))
  let app: App
  try {
    app = await createVault(
      { directory, pid: desk.pid, clock: desk.clock, notice: () => {} },
      tenantName,
      opener,
    )
  } catch (error) {
    // A key to nothing would only confuse.
    if (keyFile !== undefined) await rm(keyFile, { force: true })
    throw error
  }
  const { id, name, owner_id } = await app.tenant()
  const applications = wantsStarters ? await ensureStarters(app) : undefined
  await app.close()
  const result = {
    vault: app.header?.vault,
    directory,
    ...(keyFile === undefined ? {} : { key_file: keyFile }),
    tenant: { id, name, owner_id },
    ...(applications === undefined ? {} : { applications }),
  }
  await printResult(terminal, result, {
    format: chooseFormat(terminal, config.output),
    fields: config.fields,
  })
  if (wantsStarters) await printNotice(terminal, 'The keys of the applications are shown this once.')
  await printNotice(terminal, adviseAfterInit(flags, keyFile))
}

async function wishesForStarters({ terminal, config }: Desk): Promise<boolean> {
  if (!terminal.mayPrompt || config.yes) return false
  const { confirm } = await import('../input/prompt.js')
  return confirm(terminal, {
    message: 'Create a management, a private and a public application to begin with?',
    missing: '--starter-apps',
  })
}

/** What was said on this line has to be said again on the next; what a variable said has not. */
function adviseAfterInit(flags: Readonly<Record<string, unknown>>, keyFile: string | undefined): string {
  const vault = typeof flags.vault === 'string' ? ` --vault ${flags.vault}` : ''
  const key = typeof flags.keyFile === 'string' ? ` --key-file ${flags.keyFile}` : ''
  const loss =
    keyFile === undefined
      ? 'Nothing but the passphrase opens this vault: if it is forgotten, everything in it is lost.'
      : 'Keep a copy of the key file in a safe place: without it, everything in the vault is lost.'
  return `${loss}

Store something:  echo '{"type":"card","data":{"number":"4242424242424242"}}' | coffer token create${vault}${key}
See it:           coffer token list${vault}${key}`
}

/** @throws CofferError `usage` */
function readTenantName(name: unknown): string {
  if (name === undefined) return DEFAULT_TENANT
  about('--name', () => checkTenantName(String(name)))
  return String(name)
}

async function chooseNewOpener(
  desk: Desk,
  wantsPassphrase: boolean,
  saved: (path: string) => void,
): Promise<NewOpener> {
  const given = await readGivenPassphrase(desk)
  if (given !== undefined) return { kind: 'passphrase', passphrase: given }
  if (wantsPassphrase) return { kind: 'passphrase', passphrase: await askNewPassphrase(desk) }
  return {
    kind: 'key-file',
    save: async (vault, text) => {
      const { keyFile } = desk.config
      const path = keyFile === undefined ? keyFilePath(desk, vault) : resolve(desk.cwd, keyFile)
      await saveKeyFile(path, text)
      saved(path)
    },
  }
}

export async function askNewPassphrase(
  { terminal }: Desk,
  missing = '--passphrase-file, --passphrase-fd or --passphrase-command',
): Promise<string> {
  const { askTwice } = await import('../input/prompt.js')
  return askTwice(terminal, {
    message: 'New passphrase',
    again: 'The same again',
    missing,
    validate: (answer) => (answer.length >= 8 ? true : 'A passphrase has at least 8 characters.'),
  })
}

/** Never over a file that is there, which may be the only key of another vault. */
export async function saveKeyFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  try {
    const file = await open(path, 'wx', 0o600)
    await file.writeFile(text)
    await file.sync()
    await file.close()
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    if (isThere)
      throw new CofferError(
        'conflict',
        `There is a file ${path} already; it may be the key of another vault. Name another file.`,
      )
    throw new CofferError(
      'storage_failed',
      `The key file could not be written to ${path}. Check its directory, or name another file.`,
      { cause: error },
    )
  }
}

/** Where the vault is, what opens it, what it holds and how large it is. */
export async function showStatus(desk: Desk): Promise<void> {
  const { terminal, config } = desk
  const tenant = await findTenantChoice(desk)
  const input = tenant === undefined ? {} : { tenant }
  const status = await desk.reachVault((vault) => vault.command('vault status', input))
  const result = { directory: findVaultDirectory(desk), ...(status as object) }
  await printResult(terminal, result, {
    format: chooseFormat(terminal, config.output),
    fields: config.fields,
  })
}
