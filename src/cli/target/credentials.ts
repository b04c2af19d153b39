/** Finds the vault of this run and the key file or passphrase that opens it. */

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError, usage } from '../../errors.js'
import { SETTINGS } from '../../global-flags.js'
import type { App } from '../../vault/app.js'
import {
  type LockedVault,
  type Opener,
  openVault,
  parseStoreAddress,
  reachSession,
  reachVault,
  resolveDirectory,
  type VaultLocation,
} from '../../vault/open.js'
import type { Vault } from '../../vault/vault.js'
import type { CommandContext } from '../context.js'
import { SECRET_LIMIT_BYTES } from '../input/input.js'
import { printNotice } from '../output/output.js'
import { readSession } from './unlock-session.js'

const VAULT_DIRECTORY = '.coffer'
/** The directory of `coffer serve --demo`; used if there is no other vault. */
export const DEMO_DIRECTORY = '.coffer-demo'

/** The end of a refusal where a server is named. */
export const NEEDS_VAULT =
  'needs the vault itself. Run it where the vault is, without --url, COFFER_URL or a profile with one.'

/** The place of a new vault: the address of its store, or its directory, by default `.coffer` in the current one. */
export function newVaultDirectory({ config, cwd }: CommandContext): string {
  if (config.store !== undefined) return parseStoreAddress(config.store).text
  if (config.url !== undefined) throw usage(`This ${NEEDS_VAULT}`)
  return resolveDirectory(cwd, config.vault ?? VAULT_DIRECTORY)
}

/**
 * The vault of this run: from the settings, which may also name the directory that it is in, or a store; else `.coffer`
 * in the current or the nearest parent directory; else the demo vault in the current directory.
 * @throws CofferError `vault_missing`, `usage` when a server is named instead
 */
export function findVaultDirectory(context: CommandContext): string {
  const found = locateVault(context)
  if (found !== undefined) return found
  throw new CofferError(
    'vault_missing',
    'There is no vault in this or a parent directory. Create one with: coffer init',
  )
}

function locateVault(context: CommandContext): string | undefined {
  const { vault, url, store } = context.config
  if (store !== undefined) return newVaultDirectory(context)
  if (vault !== undefined || url !== undefined) {
    const given = newVaultDirectory(context)
    return ['', VAULT_DIRECTORY, 'vault'].map((name) => join(given, name)).find(isVault) ?? given
  }
  for (let directory = context.cwd; ; directory = dirname(directory)) {
    const candidate = join(directory, VAULT_DIRECTORY)
    if (isVault(candidate)) return candidate
    if (directory === dirname(directory)) break
  }
  const demo = join(context.cwd, DEMO_DIRECTORY, 'vault')
  return isVault(demo) ? demo : undefined
}

function isVault(directory: string): boolean {
  return existsSync(join(directory, 'vault.json'))
}

/** Checks that the vault exists, before prompting for input. @throws CofferError `vault_missing` */
export function requireVault(context: CommandContext): void {
  const directory = findVaultDirectory(context)
  if (context.config.store !== undefined || existsSync(directory)) return
  throw new CofferError(
    'vault_missing',
    `There is no vault in ${directory}. Create one with: coffer init --vault ${quoteWord(directory)}`,
  )
}

/** The default path of the key file of a vault. */
export function keyFilePath({ config }: CommandContext, vault: string): string {
  return join(config.directory, 'keys', `${vault}.key`)
}

/** The key file of the vault `id`, in its default path or beside the vault. */
export function findKeyFile(context: CommandContext, id: string): string | undefined {
  const usual = keyFilePath(context, id)
  const place = context.config.store === undefined ? locateVault(context) : undefined
  const beside = join(dirname(place ?? usual), 'vault.key')
  return [context.config.keyFile ?? usual, beside].find((path) => existsSync(path))
}

/** Opens the vault of this run. @throws CofferError as {@link openVault} */
export function unlockVault(
  context: CommandContext,
  options: Pick<VaultLocation, 'role' | 'migrates'> = {},
): Promise<App> {
  return noticing(context, (place) =>
    openVault({ ...place, ...options }, (vault) => chooseOpener(context, vault)),
  )
}

/** The vault of this run, wherever it is open. @throws CofferError as {@link reachVault} */
export async function reachThisVault(
  context: CommandContext,
  role: 'command' | 'server' = 'command',
): Promise<Vault> {
  const unlocked = await reachUnlocked(context)
  if (unlocked !== undefined) return unlocked
  return noticing(context, (place) => reachVault({ ...place, role }, (vault) => chooseOpener(context, vault)))
}

/** The vault of this run, if `coffer unlock` keeps it open: without any key. */
export async function reachUnlocked(context: CommandContext): Promise<Vault | undefined> {
  const session = await readSession(context, findVaultDirectory(context))
  return session && reachSession(placeOf(context), session.secret)
}

/** A vault location with the effects of this run. */
export function placeOf(
  context: CommandContext,
  directory = findVaultDirectory(context),
  notice: (text: string) => void = () => {},
): VaultLocation {
  const storePassword = () => readStorePassword(context)
  return { directory, storePassword, pid: context.pid, clock: context.clock, notice }
}

/** The place of the vault, for an answer. */
export function describePlace({ config }: CommandContext, place: string): Record<string, string> {
  return config.store === undefined ? { directory: place } : { store: place }
}

/** From a file or a descriptor, else from the address; without one the database's client looks for a `PGPASSFILE`. */
async function readStorePassword({ config, input, typed }: CommandContext): Promise<string | undefined> {
  const { store, storePasswordFile: file, storePasswordFd: descriptor } = config
  if (store === undefined) return undefined
  const { password } = parseStoreAddress(store).connection
  if (file !== undefined) return input.readSecretFile(file, '--store-password-file')
  if (descriptor === undefined) return typeof password === 'string' ? password : undefined
  typed.storePassword ??= await input.readDescriptor(descriptor, '--store-password-fd')
  return typed.storePassword
}

/** Tells, once and before the store is asked anything, what is less than it should be about the way to it. */
export async function warnOfStore({ config, env, terminal, typed }: CommandContext): Promise<void> {
  if (config.store === undefined || typed.isStoreTold === true) return
  typed.isStoreTold = true
  const { hasPassword, warning } = parseStoreAddress(config.store)
  if (hasPassword && env[SETTINGS.store.variable] !== config.store)
    await printNotice(
      terminal,
      'The password of the store is in the command line, where others may see it. Use --store-password-file.',
    )
  if (warning !== undefined) await printNotice(terminal, warning)
}

/** Prints notices of opening a vault after it succeeds, and later notices immediately. */
async function noticing<V>(context: CommandContext, open: (place: VaultLocation) => Promise<V>): Promise<V> {
  await warnOfStore(context)
  const early: string[] = []
  let isOpen = false
  const notice = (text: string) => {
    if (isOpen) void printNotice(context.terminal, text)
    else early.push(text)
  }
  const { config, cwd, typed } = context
  const place = placeOf(context, findVaultDirectory(context), notice)
  const vault = await retryPassphrase(context, () => open(place))
  const isDemo = config.vault === undefined && place.directory === join(cwd, DEMO_DIRECTORY, 'vault')
  if (isDemo && typed.isDemoTold !== true)
    notice(`This is the demo vault in ${DEMO_DIRECTORY}. Create yours: coffer init`)
  typed.isDemoTold = true
  isOpen = true
  for (const text of early) await printNotice(context.terminal, text)
  return vault
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
  const usual = keyFilePath(context, id)
  const found = findKeyFile(context, id)
  if (slots.includes('key-file') && found !== undefined) {
    if (found !== usual) await tellOfForeignKey(context, found, usual)
    return readKeyFile(found, 'the key file')
  }
  if (slots.includes('passphrase')) return askPassphrase(context)
  const where = `The key file of this vault is not at ${usual}.`
  throw new CofferError('vault_locked', `${where} Give its path with --key-file FILE.`)
}

/** Warns that the maker of a directory with a vault and its key can read what is stored there. The demo is an exception. */
async function tellOfForeignKey(context: CommandContext, path: string, usual: string): Promise<void> {
  const { terminal, typed } = context
  const isDemo = findVaultDirectory(context).endsWith(join(DEMO_DIRECTORY, 'vault'))
  if (typed.isKeyTold === true || isDemo) return
  typed.isKeyTold = true
  const danger = `The key of this vault was found beside it, at ${path}: who else has that file can read what you store.`
  await printNotice(terminal, `${danger} If it is yours, move it to ${usual}`)
}

/** The passphrase from the file, descriptor or command in the settings; undefined without one. */
export async function readGivenPassphrase({ config, input }: CommandContext): Promise<string | undefined> {
  const { passphraseFile, passphraseFd, passphraseCommand } = config
  if (passphraseFile !== undefined) return input.readSecretFile(passphraseFile, '--passphrase-file')
  if (passphraseFd !== undefined) return input.readDescriptor(passphraseFd, '--passphrase-fd')
  if (passphraseCommand !== undefined) return runPassphraseCommand(passphraseCommand)
  return undefined
}

async function askPassphrase({ terminal, typed }: CommandContext): Promise<Opener> {
  if (typed.passphrase !== undefined) return { kind: 'passphrase', passphrase: typed.passphrase }
  if (!terminal.mayPrompt)
    throw new CofferError(
      'vault_locked',
      'This vault needs a passphrase. Give it with --passphrase-file, --passphrase-fd or --passphrase-command.',
    )
  const { ask } = await import('../input/prompt.js')
  const { triesLeft } = typed
  const passphrase = await ask(terminal, {
    message:
      triesLeft === undefined ? 'Passphrase' : `Wrong passphrase. Passphrase (tries left: ${triesLeft})`,
    missing: '--passphrase-file',
    sensitive: true,
  })
  typed.passphrase = passphrase
  return { kind: 'passphrase', passphrase }
}

/** Runs the command in a shell, because it is written for one; only the user's own settings contain it. */
async function runPassphraseCommand(command: string): Promise<string> {
  const { execFile } = await import('node:child_process')
  const { promisify } = await import('node:util')
  let passphrase: string
  try {
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command], {
      maxBuffer: SECRET_LIMIT_BYTES,
    })
    passphrase = stdout.split('\n')[0]!.replace(/\r$/, '')
  } catch (error) {
    // The output may contain the passphrase, so it is not part of the message.
    const exit = error instanceof Error && 'code' in error ? ` (exit ${String(error.code)})` : ''
    throw new CofferError('vault_locked', `The passphrase command failed${exit}.`)
  }
  if (passphrase !== '') return passphrase
  throw usage('The first line of output of the passphrase command is empty.')
}

/** Prompts twice for a new passphrase. */
export async function askNewPassphrase(
  { terminal }: CommandContext,
  missing = '--passphrase-file, --passphrase-fd or --passphrase-command',
): Promise<string> {
  const { askTwice } = await import('../input/prompt.js')
  return askTwice(terminal, {
    message: 'New passphrase',
    missing,
    validate: (answer) => (answer.length >= 8 ? true : 'A passphrase has at least 8 characters.'),
  })
}

/** The API key of the caller; undefined for the owner. */
export async function readApiKey({ config, input }: CommandContext): Promise<string | undefined> {
  return config.apiKeyStdin ? input.readStdinLine('--api-key-stdin') : config.apiKey
}
