import { existsSync, lstatSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { CofferError, conflict, usage } from '../../errors.js'
import { type LockedVault, type Opener, refuseKeyFile } from '../../vault/open.js'
import type { CommandContext } from '../context.js'
import { SECRET_LIMIT_BYTES } from '../input/input.js'
import { printError } from '../output/output.js'
import { DEMO_VAULT, locateVault } from './place.js'

export function keyFilePath({ config }: CommandContext, vault: string): string {
  return join(config.directory, 'keys', `${vault}.key`)
}

export function findKeyFile(context: CommandContext, id: string): string | undefined {
  const place = locateVault(context) ?? ''
  const beside = place.endsWith(DEMO_VAULT) ? [join(dirname(place), 'vault.key')] : []
  return [context.config.keyFile ?? keyFilePath(context, id), ...beside].find((path) => existsSync(path))
}

/** Prefers a key file to a prompt for the passphrase. */
export async function chooseOpener(context: CommandContext, { id, slots }: LockedVault): Promise<Opener> {
  const { config, input } = context
  const readKeyFile = async (path: string, flag: string): Promise<Opener> => {
    return { kind: 'key-file', text: await input.readSecretFile(path, flag, refuseKeyFile) }
  }
  if (config.keyFile !== undefined) {
    if (isMissing(resolve(context.cwd, config.keyFile)))
      throw usage(`--key-file (${config.keyFile}) does not exist. ${describeWayOut(slots)}`)
    return readKeyFile(config.keyFile, '--key-file')
  }
  const passphrase = await readGivenPassphrase(context)
  if (passphrase !== undefined) return { kind: 'passphrase', passphrase }
  const found = slots.includes('key-file') ? findKeyFile(context, id) : undefined
  if (found !== undefined) return readKeyFile(found, 'the key file')
  if (slots.includes('passphrase')) return askPassphrase(context)
  const where = `The key file of this vault is not at ${keyFilePath(context, id)}.`
  const way = `Give its path with --key-file FILE. ${describeWayOut(slots)}`
  throw new CofferError('vault_locked', `${where} ${way}`)
}

/** Returns true only if the file certainly does not exist. If the path cannot be examined, the file may exist. */
function isMissing(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
  } catch {
    return false
  }
}

function describeWayOut(slots: LockedVault['slots']): string {
  if (slots.includes('passphrase'))
    return 'If it is lost: a passphrase opens this vault too, without --key-file.'
  if (slots.length > 1) return `If it is lost: each of the ${slots.length} key files of this vault opens it.`
  return 'It is the only key of this vault: if it is lost, and there is no copy, the data is lost.'
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
    const { triesLeft } = typed
    if (triesLeft !== undefined) await printError(terminal, 'Wrong passphrase.')
    const message = triesLeft === undefined ? 'Passphrase' : `Passphrase (tries left: ${triesLeft})`
    typed.passphrase = await ask(terminal, { message, sensitive: true, isUnchecked: true })
  }
  return { kind: 'passphrase', passphrase: typed.passphrase }
}

/** The command comes only from the user's own settings, so it may run in a shell. */
async function runPassphraseCommand(command: string): Promise<string> {
  const { spawnSync } = await import('node:child_process')
  const options = { maxBuffer: SECRET_LIMIT_BYTES, encoding: 'utf8' } as const
  const { status, signal, stdout } = spawnSync('/bin/sh', ['-c', command], options)
  // The message does not contain the output, which may contain the passphrase.
  const end = signal ?? `exit ${status}`
  if (status !== 0) throw new CofferError('vault_locked', `The passphrase command failed (${end}).`)
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

/**
 * Saves a new key. Never overwrites a file, because that file may be the only key of another vault.
 * @throws CofferError
 */
export async function saveKeyFile(path: string, text: string): Promise<void> {
  const { writeUserFile } = await import('../../vault/user-file.js')
  try {
    writeUserFile(path, text)
  } catch (error) {
    if (!(error instanceof CofferError) || error.code !== 'conflict') throw error
    throw conflict(`${path} exists already; it may be the key of another vault. Choose another file.`)
  }
}
