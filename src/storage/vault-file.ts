import type { Header, RandomSource } from '../crypto/ports.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { CofferError, conflict } from '../errors.js'
import { toHex } from './bytes.js'
import { type Files, makeDirectories, readWhole } from './files.js'
import { replaceWhole } from './whole-file.js'

export type { Header } from '../crypto/ports.js'

export const FORMAT = 1

const HEADER_FILE = 'vault.json'
/**
 * Marks a vault whose creation has not ended. The last step of the creation renames this file to `vault.json`. A
 * creation that finds this file starts over.
 */
const DRAFT_FILE = 'being-created'
export const STATE_FILE = 'state'
/** Matches the names of files that only a vault has. Excludes the header and the segments. */
const REMAINS = /^(?:state|state\.next|(?:journal|head|aside)-.*)$/
const HEADER_LIMIT = 64 * 1024

const EXPOSED = 0o077

/**
 * Refuses a vault with symbolic links, or with files that other users own or may read. @throws CofferError
 * `vault_missing`, `vault_exposed`, `vault_damaged`
 */
export function checkExposure(files: Files, directory: string): void {
  requireHeader(files, directory)
  checkPath(files, directory, 'directory')
  checkPath(files, `${directory}/${HEADER_FILE}`, 'file')
  checkPath(files, `${directory}/${STATE_FILE}`, 'file')
  checkPath(files, `${directory}/segments`, 'directory')
}

export function noVault(directory: string): CofferError {
  return new CofferError(
    'vault_missing',
    `There is no vault in ${directory}. Create one with: coffer init --vault ${quoteWord(directory)}`,
  )
}

function checkPath(files: Files, path: string, kind: 'file' | 'directory'): void {
  const stat = files.stat(path)
  if (stat === undefined) return
  const refuse = (problem: string) => {
    throw new CofferError('vault_exposed', problem)
  }
  if (stat.kind !== kind) refuse(`${path} is not a plain ${kind}. Put the real ${kind} in its place.`)
  const word = quoteWord(path)
  const { user } = files
  if (user === undefined) return
  if (stat.owner !== user) {
    const own = `Use a vault of your own, or run \`chown ${user} ${word}\`.`
    refuse(`${path} belongs to another user (id ${stat.owner}). ${own}`)
  }
  const mode = kind === 'directory' ? '700' : '600'
  if ((stat.mode & EXPOSED) !== 0)
    refuse(`Other users may read ${path}. Run \`chmod ${mode} ${word}\` first.`)
}

export function hasHeader(files: Files, directory: string): boolean {
  return files.stat(`${directory}/${HEADER_FILE}`) !== undefined
}

function requireHeader(files: Files, directory: string): void {
  switch (examineDirectory(files, directory)) {
    case 'vault':
      return
    case 'headless':
      throw headless(files, directory)
    case 'begun':
      throw new CofferError(
        'vault_missing',
        `The creation of the vault in ${directory} has not ended. If no command is creating it now, run the ` +
          `interrupted command again, for example: coffer init --vault ${quoteWord(directory)}`,
      )
    default:
      throw noVault(directory)
  }
}

/**
 * `begun`: a creation was interrupted or is in progress. `headless`: the vault's header is missing, so no key opens the
 * vault.
 */
export function examineDirectory(files: Files, directory: string): 'vault' | 'begun' | 'headless' | 'none' {
  if (files.stat(directory) === undefined) return 'none'
  if (hasHeader(files, directory)) return 'vault'
  if (files.stat(`${directory}/${DRAFT_FILE}`) !== undefined) return 'begun'
  return findRemains(files, directory).length > 0 ? 'headless' : 'none'
}

function findRemains(files: Files, directory: string): string[] {
  const segments = `${directory}/segments`
  const hasSegments = files.stat(segments)?.kind === 'directory' && files.list(segments).length > 0
  const names = files.list(directory).filter((name) => REMAINS.test(name))
  return [...names, ...(hasSegments ? ['segments'] : [])].sort()
}

function headless(files: Files, directory: string): CofferError {
  const found = new Set(findRemains(files, directory).map((name) => name.replace(/-.*/, '-…')))
  const toCallers =
    'The vault has lost its header. The owner of the vault can see details with: coffer vault status'
  return new CofferError(
    'vault_damaged',
    `${directory} has files of a vault (${[...found].join(', ')}) but no ${HEADER_FILE}. ` +
      `Without ${HEADER_FILE}, these files cannot be read. ` +
      `Put ${HEADER_FILE} back from any copy of this directory. A backup has this file too: run \`coffer vault restore BACKUP ` +
      `--vault NEW\`, then \`cp NEW/${HEADER_FILE} ${quoteWord(directory)}\`. If these files do not belong to a vault, choose ` +
      'another directory.',
    { toCallers },
  )
}

export function prepareDirectory(files: Files, directory: string): void {
  const found = examineDirectory(files, directory)
  if (found === 'vault')
    throw conflict(`There is already a vault in ${directory}. Choose another directory: --vault DIRECTORY`)
  if (found === 'headless') throw headless(files, directory)
  makeDirectories(files, directory)
  checkPath(files, directory, 'directory')
}

/**
 * Begins the creation of a vault, and removes the files of an interrupted creation. {@link completeVault} ends the
 * creation. Requires: the caller has the lock. @throws CofferError `conflict`, `vault_damaged`, `vault_exposed`
 */
export function beginVault(files: Files, directory: string): void {
  prepareDirectory(files, directory)
  const draft = `${directory}/${DRAFT_FILE}`
  if (files.stat(draft) !== undefined) removeBegun(files, directory)
  else {
    files.close(files.create(draft))
    files.syncDirectory(directory)
  }
  files.makeDirectory(`${directory}/segments`)
}

/**
 * Writes the header of a new vault. When the header is written, the vault exists. Requires: all other files of the
 * vault are synced.
 */
export function completeVault(files: Files, directory: string, header: Header): void {
  const draft = `${directory}/${DRAFT_FILE}`
  const file = files.open(draft, 'write')
  if (file === undefined) throw new CofferError('internal', `${draft} is missing.`)
  try {
    files.truncate(file, 0)
    files.write(file, Buffer.from(headerText(header)), 0)
    files.sync(file)
  } finally {
    files.close(file)
  }
  files.rename(draft, `${directory}/${HEADER_FILE}`)
  files.syncDirectory(directory)
}

/**
 * Removes the files of a failed creation. If the removal fails, the next creation removes the files. Requires: the
 * caller has the lock.
 */
export function abandonVault(files: Files, directory: string): void {
  try {
    if (examineDirectory(files, directory) !== 'begun') return
    removeBegun(files, directory)
    files.remove(`${directory}/${DRAFT_FILE}`)
  } catch {
    // The error of the removal is ignored, because the caller reports why the creation failed.
  }
}

function removeBegun(files: Files, directory: string): void {
  const segments = `${directory}/segments`
  if (files.stat(segments)?.kind === 'directory')
    for (const name of files.list(segments)) files.remove(`${segments}/${name}`)
  for (const name of files.list(directory))
    if (REMAINS.test(name) || isUnfinished(name)) files.remove(`${directory}/${name}`)
}

/** Returns true for the name of a temporary file. A crash can leave temporary files. */
export function isUnfinished(name: string): boolean {
  return /^(?:vault\.json|state|state\.next|aside-[0-9a-f-]+)\.tmp-/.test(name)
}

/** @throws CofferError `vault_missing`, `vault_exposed`, `vault_damaged`, `vault_unsupported`. */
export async function readHeader(files: Files, directory: string): Promise<Header> {
  // The MAC of the header is not checked here, because the keyring checks it.
  checkExposure(files, directory)
  const path = `${directory}/${HEADER_FILE}`
  const bytes = readWhole(files, path, HEADER_LIMIT)
  return checkHeader(bytes && parseDocument(bytes, path), path)
}

export function writeHeader(files: Files, directory: string, random: RandomSource, header: Header): void {
  replaceWhole(files, directory, HEADER_FILE, Buffer.from(headerText(header)), toHex(random.bytes(10)))
}

/** The text of `vault.json`. Equal headers must have equal texts, because `state` contains a digest of the text. */
export function headerText(header: Header): string {
  return `${JSON.stringify(header, undefined, 2)}\n`
}

export function parseDocument(bytes: Uint8Array, path: string): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (cause) {
    throw new CofferError('vault_damaged', `${path} is not readable as JSON. Restore it from a backup.`, {
      cause,
    })
  }
}

export function checkHeader(value: unknown, path: string): Header {
  const header = value as Partial<Record<keyof Header, unknown>> | null | undefined
  if (typeof header !== 'object' || header === null) throw malformed(path)
  const { format, vault, created, cipher, slots, mac } = header
  if (typeof format === 'number' && Number.isInteger(format) && format > FORMAT)
    throw new CofferError(
      'vault_unsupported',
      `${path} has format ${format}, and this version of Coffer reads format ${FORMAT}. Use a newer version.`,
    )
  const texts = [vault, created, cipher, mac]
  const isWhole = format === FORMAT && texts.every((text) => typeof text === 'string') && Array.isArray(slots)
  if (!isWhole || !/^[0-9a-f]{32}$/.test(vault as string)) throw malformed(path)
  return value as Header
}

function malformed(path: string): CofferError {
  return new CofferError('vault_damaged', `${path} is not the header of a vault. Restore it from a backup.`)
}
