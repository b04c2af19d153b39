import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError, codeOf, conflict, noRevealError, usage } from '../../errors.js'
import type { ReactorOptions } from '../../framework/ports/reactors.js'
import { SETTINGS } from '../../global-flags.js'
import {
  identifyVault,
  isStore,
  type LockedVault,
  type Opener,
  parseStoreAddress,
  resolveDirectory,
  type VaultLocation,
} from '../../vault/open.js'
import type { CommandContext } from '../context.js'
import { SECRET_LIMIT_BYTES } from '../input/input.js'
import { printNotice } from '../output/output.js'
import { readUserSettings, type Texts, writeUserSettings } from '../user-settings.js'

const VAULT_DIRECTORY = '.coffer'
/** The directory of `coffer serve --demo`; used if there is no other vault. */
export const DEMO_DIRECTORY = '.coffer-demo'
const DEMO_VAULT = join(DEMO_DIRECTORY, 'vault')

/** The end of a refusal where a server is named. */
export const NEEDS_VAULT =
  'needs the vault itself. Run it where the vault is, without --url, COFFER_URL or a profile with one.'

/** The place of a new vault: the address of its store, or its directory, by default `.coffer` in the current one. */
export function newVaultDirectory({ config, cwd }: CommandContext): string {
  if (config.store !== undefined) return parseStoreAddress(config.store).text
  if (config.url !== undefined) throw usage(`This ${NEEDS_VAULT}`)
  return resolveDirectory(cwd, config.vault ?? VAULT_DIRECTORY)
}

/** By settings; else `.coffer` or a demo vault, here or above. @throws CofferError `vault_missing`, `usage` */
export function findVaultDirectory(context: CommandContext): string {
  const found = locateVault(context)
  if (found !== undefined) return found
  const own = findVault(context.cwd, ['', '..'])
  if (own !== undefined)
    throw new CofferError('vault_missing', `This directory is in a vault. Name it: --vault ${quoteWord(own)}`)
  throw vaultMissing('this or a parent directory', 'coffer init')
}

function locateVault(context: CommandContext): string | undefined {
  const { vault, url, store } = context.config
  if (store !== undefined) return newVaultDirectory(context)
  if (vault !== undefined || url !== undefined) {
    const given = newVaultDirectory(context)
    return findVault(given, ['', VAULT_DIRECTORY, 'vault']) ?? given
  }
  for (let directory = context.cwd; ; directory = dirname(directory)) {
    const found = findVault(directory, [VAULT_DIRECTORY, DEMO_VAULT])
    if (found !== undefined || directory === dirname(directory)) return found
  }
}

function findVault(directory: string, names: readonly string[]): string | undefined {
  return names.map((name) => join(directory, name)).find((path) => existsSync(join(path, 'vault.json')))
}

function vaultMissing(where: string, command: string): CofferError {
  return new CofferError('vault_missing', `There is no vault in ${where}. Create one with: ${command}`)
}

/** Checks that the vault exists, before prompting for input. @throws CofferError `vault_missing` */
export function requireVault(context: CommandContext): void {
  const directory = findVaultDirectory(context)
  if (context.config.store === undefined && !existsSync(directory))
    throw vaultMissing(directory, `coffer init --vault ${quoteWord(directory)}`)
}

export function keyFilePath({ config }: CommandContext, vault: string): string {
  return join(config.directory, 'keys', `${vault}.key`)
}

/** The key file of the vault `id`: at its default path, or beside a demo vault. */
export function findKeyFile(context: CommandContext, id: string): string | undefined {
  const place = locateVault(context) ?? ''
  const beside = place.endsWith(DEMO_VAULT) ? [join(dirname(place), 'vault.key')] : []
  return [context.config.keyFile ?? keyFilePath(context, id), ...beside].find((path) => existsSync(path))
}

/** Opens the vault of this run by `reachVault`, or by `openVault` in this process. @throws CofferError those of `open` */
export async function openThisVault<V>(
  context: CommandContext,
  role: 'command' | 'server',
  open: (location: VaultLocation, choose: (locked: LockedVault) => Promise<Opener>) => Promise<V>,
): Promise<V> {
  await warnOfStore(context)
  const place = { ...placeOf(context), role }
  const vault = await retryPassphrase(context, () => open(place, (locked) => chooseOpener(context, locked)))
  if (context.config.vault === undefined && place.directory.endsWith(DEMO_VAULT))
    await noticeOnce(context, `This is the demo vault in ${DEMO_DIRECTORY}. Create yours: coffer init`)
  return vault
}

/** Opening the vault again does not repeat its notices. */
async function noticeOnce({ terminal, typed }: CommandContext, text: string): Promise<void> {
  if (typed.told.has(text)) return
  typed.told.add(text)
  await printNotice(terminal, text)
}

export function placeOf(context: CommandContext, directory = findVaultDirectory(context)): VaultLocation {
  const storePassword = () => readStorePassword(context)
  const notice = (text: string) => void noticeOnce(context, text)
  return { directory, storePassword, pid: context.pid, clock: context.clock, notice }
}

export function describePlace(place: string): { directory: string } | { store: string } {
  return isStore(place) ? { store: place } : { directory: place }
}

export async function askOwned(context: CommandContext, operation: string): Promise<unknown> {
  const as = { reveal: false, tenant: await findTenantChoice(context) }
  return context.reachVault(async (vault) => (await vault.ask({ operation, input: {}, as })).result)
}

/** From a file or a descriptor, else from the address; without one the database's client looks for a `PGPASSFILE`. */
async function readStorePassword({ config, input, typed }: CommandContext): Promise<string | undefined> {
  const { store, storePasswordFile: file, storePasswordFd: descriptor } = config
  if (store === undefined) return undefined
  if (file !== undefined) return input.readSecretFile(file, '--store-password-file')
  const { password } = parseStoreAddress(store).connection
  if (descriptor === undefined) return typeof password === 'string' ? password : undefined
  typed.storePassword ??= await input.readDescriptor(descriptor, '--store-password-fd')
  return typed.storePassword
}

/** Warns, before the store is connected to, of a visible password and of a weaker connection. */
export async function warnOfStore(context: CommandContext): Promise<void> {
  const { store } = context.config
  if (store === undefined) return
  const { hasPassword, warning } = parseStoreAddress(store)
  const danger = 'The password of the store is in the command line, where others may see it.'
  if (hasPassword && context.env[SETTINGS.store.variable] !== store)
    await noticeOnce(context, `${danger} Use --store-password-file.`)
  if (warning !== undefined) await noticeOnce(context, warning)
}

/** Opens again, twice at most, after a wrong passphrase was typed. */
export async function retryPassphrase<V>({ typed }: CommandContext, open: () => Promise<V>): Promise<V> {
  for (let left = 2; ; left--) {
    try {
      return await open()
    } catch (error) {
      const isWrong = error instanceof CofferError && error.code === 'vault_locked'
      if (!isWrong || typed.passphrase === undefined || left === 0) throw error
      delete typed.passphrase
      typed.triesLeft = left
    }
  }
}

/** An existing key file is preferred to a passphrase, because it needs no prompt. */
export async function chooseOpener(context: CommandContext, { id, slots }: LockedVault): Promise<Opener> {
  const { config, input } = context
  const readKeyFile = async (path: string, flag: string): Promise<Opener> => {
    return { kind: 'key-file', text: await input.readSecretFile(path, flag) }
  }
  if (config.keyFile !== undefined) return readKeyFile(config.keyFile, '--key-file')
  const passphrase = await readGivenPassphrase(context)
  if (passphrase !== undefined) return { kind: 'passphrase', passphrase }
  const found = slots.includes('key-file') ? findKeyFile(context, id) : undefined
  if (found !== undefined) return readKeyFile(found, 'the key file')
  if (slots.includes('passphrase')) return askPassphrase(context)
  const where = `The key file of this vault is not at ${keyFilePath(context, id)}.`
  throw new CofferError('vault_locked', `${where} Give its path with --key-file FILE.`)
}

export async function readGivenPassphrase({ config, input }: CommandContext): Promise<string | undefined> {
  const { passphraseFile, passphraseFd, passphraseCommand } = config
  if (passphraseFile !== undefined) return input.readSecretFile(passphraseFile, '--passphrase-file')
  if (passphraseFd !== undefined) return input.readDescriptor(passphraseFd, '--passphrase-fd')
  return passphraseCommand === undefined ? undefined : runPassphraseCommand(passphraseCommand)
}

async function askPassphrase({ terminal, typed }: CommandContext): Promise<Opener> {
  if (typed.passphrase === undefined) {
    const advice = 'Give it with --passphrase-file, --passphrase-fd or --passphrase-command.'
    if (!terminal.mayPrompt) throw new CofferError('vault_locked', `This vault needs a passphrase. ${advice}`)
    const { ask } = await import('../input/prompt.js')
    const again = typed.triesLeft && `Wrong passphrase. Passphrase (tries left: ${typed.triesLeft})`
    typed.passphrase = await ask(terminal, { message: again || 'Passphrase', sensitive: true })
  }
  return { kind: 'passphrase', passphrase: typed.passphrase }
}

/** Runs the command in a shell, because it is written for one; only the user's own settings contain it. */
async function runPassphraseCommand(command: string): Promise<string> {
  const { spawnSync } = await import('node:child_process')
  const options = { maxBuffer: SECRET_LIMIT_BYTES, encoding: 'utf8' } as const
  const { status, stdout } = spawnSync('/bin/sh', ['-c', command], options)
  // The output may contain the passphrase, so it is not part of the message.
  if (status !== 0) throw new CofferError('vault_locked', `The passphrase command failed (exit ${status}).`)
  const passphrase = stdout.split('\n')[0]!.replace(/\r$/, '')
  if (passphrase !== '') return passphrase
  throw usage('The first line of output of the passphrase command is empty.')
}

export async function askNewPassphrase(
  { terminal }: CommandContext,
  missing = '--passphrase-file, --passphrase-fd or --passphrase-command',
): Promise<string> {
  const { askTwice } = await import('../input/prompt.js')
  const validate = (answer: string) => answer.length >= 8 || 'A passphrase has at least 8 characters.'
  return askTwice(terminal, { message: 'New passphrase', missing, validate })
}

/** Saves a new key. Does not overwrite a file, which may be the only key of another vault. @throws CofferError */
export async function saveKeyFile(path: string, text: string): Promise<void> {
  const { mkdir, writeFile } = await import('node:fs/promises')
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(path, text, { mode: 0o600, flag: 'wx', flush: true })
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST')
      throw new CofferError('storage_failed', `The key file could not be written to ${path}.`, { cause })
    throw conflict(`${path} exists already; it may be the key of another vault. Choose another file.`)
  }
}

/** Settings of this run for reactors. */
export async function reactorOptions({ config, input, cwd }: CommandContext): Promise<ReactorOptions> {
  const { allowNet, modules, ca: file, noReveal } = config
  if (noReveal && modules !== undefined) throw noRevealError('--modules, whose code is given data')
  const ca = file === undefined ? undefined : await input.readFile(file, '--ca')
  return omitUndefined({ ca, allowNet, modulesDirectory: modules && resolve(cwd, modules) })
}

/** The API key of the caller; undefined for the owner. */
export async function readApiKey({ config, input }: CommandContext): Promise<string | undefined> {
  return config.apiKeyStdin ? input.readDescriptor(0, '--api-key-stdin') : config.apiKey
}

/** The tenant of this run, from a flag or the environment, else the default; undefined for the first. */
export async function findTenantChoice(context: CommandContext): Promise<string | undefined> {
  if (context.config.tenant !== undefined) return context.config.tenant
  const { tenants } = await readUserSettings(context.config.directory)
  if (Object.keys(tenants).length === 0) return undefined
  return tenants[await identifyVault(placeOf(context))]
}

/** Stores the default tenant of the vault of this run; undefined removes it. @throws CofferError `storage_failed` */
export async function rememberTenant(context: CommandContext, tenantId: string | undefined): Promise<void> {
  const { directory } = context.config
  const settings = await readUserSettings(directory)
  const tenants = { ...settings.tenants, [await identifyVault(placeOf(context))]: tenantId }
  await writeUserSettings(directory, { ...settings, tenants: omitUndefined(tenants) as Texts })
}
