import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError, usage } from '../../errors.js'
import { SETTINGS } from '../../global-flags.js'
import {
  hasTraces,
  isStore,
  parseStoreAddress,
  resolveDirectory,
  type VaultLocation,
} from '../../vault/open.js'
import type { CommandContext } from '../context.js'
import { printNotice, printWarning } from '../output/output.js'

const VAULT_DIRECTORY = '.coffer'
/** The directory of `coffer serve --demo`. Commands use the demo vault if there is no other vault. */
export const DEMO_DIRECTORY = '.coffer-demo'
export const DEMO_VAULT = join(DEMO_DIRECTORY, 'vault')

export const NEEDS_VAULT =
  'needs the vault itself. Run it where the vault is, without --url, COFFER_URL or a profile with a URL.'

/**
 * Returns the address of the store, or the directory for a new vault. The default is `.coffer` in the current
 * directory.
 */
export function newVaultDirectory({ config, cwd }: CommandContext): string {
  if (config.store !== undefined) return parseStoreAddress(config.store).text
  if (config.url !== undefined) throw usage(`This ${NEEDS_VAULT}`)
  return resolveDirectory(cwd, config.vault ?? VAULT_DIRECTORY)
}

/**
 * Finds the vault that the settings name. If the settings name no vault, finds a `.coffer` or demo vault in this
 * directory or in a parent directory.
 * @throws CofferError `vault_missing`, `usage`
 */
export function findVaultDirectory(context: CommandContext): string {
  const found = locateVault(context)
  if (found !== undefined) return found
  const own = findVault(context.cwd, ['', '..'])
  if (own !== undefined)
    throw new CofferError(
      'vault_missing',
      `This directory is in a vault. Name the vault: --vault ${quoteWord(own)}`,
    )
  throw vaultMissing('this or a parent directory', 'coffer init')
}

export function locateVault(context: CommandContext): string | undefined {
  const { vault, url, store } = context.config
  if (store !== undefined) return newVaultDirectory(context)
  if (vault !== undefined || url !== undefined) {
    const given = newVaultDirectory(context)
    const names = ['', VAULT_DIRECTORY, 'vault']
    return findVault(given, names) ?? findTraces(given, names) ?? given
  }
  for (let directory = context.cwd; ; directory = dirname(directory)) {
    const names = [VAULT_DIRECTORY, DEMO_VAULT]
    // A vault that has lost its header counts too. If this vault were skipped, commands would use another vault
    // without notice.
    const found = findTraces(directory, names)
    if (found !== undefined || directory === dirname(directory)) return found
  }
}

function findVault(directory: string, names: readonly string[]): string | undefined {
  return names.map((name) => join(directory, name)).find((path) => existsSync(join(path, 'vault.json')))
}

/** Like {@link findVault}, but also finds a vault that has lost its header, or whose creation is incomplete. */
function findTraces(directory: string, names: readonly string[]): string | undefined {
  return names
    .map((name) => join(directory, name))
    .find((path) => {
      return existsSync(join(path, 'vault.json')) || (existsSync(path) && hasTraces(path))
    })
}

function vaultMissing(where: string, command: string): CofferError {
  return new CofferError('vault_missing', `There is no vault in ${where}. Create one with: ${command}`)
}

/** Call before the first prompt. @throws CofferError `vault_missing` */
export function requireVault(context: CommandContext): void {
  const directory = findVaultDirectory(context)
  if (context.config.store === undefined && !existsSync(directory))
    throw vaultMissing(directory, `coffer init --vault ${quoteWord(directory)}`)
}

export function hasVaultHeader(context: CommandContext): boolean {
  return context.config.store !== undefined || existsSync(join(findVaultDirectory(context), 'vault.json'))
}

export async function noticeOnce({ terminal, typed }: CommandContext, text: string): Promise<void> {
  if (typed.told.has(text)) return
  typed.told.add(text)
  await printNotice(terminal, text)
}

async function warnOnce({ terminal, typed }: CommandContext, text: string): Promise<void> {
  if (typed.told.has(text)) return
  typed.told.add(text)
  await printWarning(terminal, text)
}

export function placeOf(context: CommandContext, directory = findVaultDirectory(context)): VaultLocation {
  const storePassword = () => readStorePassword(context)
  // The engine warns of damage, of a clock that has jumped, and of failed writes.
  const notice = (text: string) => void warnOnce(context, text)
  return { directory, storePassword, pid: context.pid, clock: context.clock, notice }
}

export function describePlace(place: string): { directory: string } | { store: string } {
  return isStore(place) ? { store: place } : { directory: place }
}

/** If there is no password, the PostgreSQL client uses a `PGPASSFILE`. */
async function readStorePassword({ config, input, typed }: CommandContext): Promise<string | undefined> {
  const { store, storePasswordFile: file, storePasswordFd: descriptor } = config
  if (store === undefined) return undefined
  if (file !== undefined) return input.readSecretFile(file, '--store-password-file')
  const { password } = parseStoreAddress(store).connection
  if (descriptor === undefined) return typeof password === 'string' ? password : undefined
  typed.storePassword ??= await input.readDescriptor(descriptor, '--store-password-fd')
  return typed.storePassword
}

/** Call before the first connection to the store. */
export async function warnOfStore(context: CommandContext): Promise<void> {
  const { store } = context.config
  if (store === undefined) return
  const { hasPassword, warning } = parseStoreAddress(store)
  const danger = 'The password of the store is in the command line, where others may see it.'
  if (hasPassword && context.env[SETTINGS.store.variable] !== store)
    await warnOnce(context, `${danger} Use --store-password-file.`)
  if (warning !== undefined) await warnOnce(context, warning)
}
