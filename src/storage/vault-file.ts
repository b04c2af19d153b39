import type { Header, RandomSource } from '../crypto/ports.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { CofferError, conflict } from '../errors.js'
import { toHex } from './bytes.js'
import { type Files, makeDirectories, readWhole, replaceWhole } from './files.js'

export type { Header } from '../crypto/ports.js'

export const FORMAT = 1

const HEADER_FILE = 'vault.json'
export const STATE_FILE = 'state'
const HEADER_LIMIT = 64 * 1024

const EXPOSED = 0o077

/** Refuses links, and what others own or may read. @throws CofferError `vault_missing`, `vault_exposed` */
export function checkExposure(files: Files, directory: string): void {
  if (files.stat(directory) === undefined || !hasHeader(files, directory)) throw noVault(directory)
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

/** Creates the directories of a new vault. @throws CofferError `conflict`, `vault_exposed`. */
export function beginVault(files: Files, directory: string): void {
  if (hasHeader(files, directory))
    throw conflict(`There is already a vault in ${directory}. Choose another directory: --vault DIRECTORY`)
  makeDirectories(files, directory)
  checkPath(files, directory, 'directory')
  files.makeDirectory(`${directory}/segments`)
}

/** @throws CofferError `vault_missing`, `vault_exposed`, `vault_damaged`, `vault_unsupported`. */
export async function readHeader(files: Files, directory: string): Promise<Header> {
  // The keyring checks the mac.
  checkExposure(files, directory)
  const path = `${directory}/${HEADER_FILE}`
  const bytes = readWhole(files, path, HEADER_LIMIT)
  return checkHeader(bytes && parseDocument(bytes, path), path)
}

/** Replaces `vault.json` whole, durably. */
export function writeHeader(files: Files, directory: string, random: RandomSource, header: Header): void {
  replaceWhole(files, directory, HEADER_FILE, Buffer.from(headerText(header)), toHex(random.bytes(10)))
}

/** The text whose digest is in `state`: equal for equal headers. */
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

/** @throws CofferError `vault_damaged`, `vault_unsupported`. */
export function checkHeader(value: unknown, path: string): Header {
  const header = value as Partial<Record<keyof Header, unknown>> | null | undefined
  if (typeof header !== 'object' || header === null) throw malformed(path)
  const { format, vault, created, cipher, slots, mac } = header
  if (typeof format === 'number' && Number.isInteger(format) && format > FORMAT)
    throw new CofferError(
      'vault_unsupported',
      `${path} has format ${format}, and this program knows ${FORMAT}. Use a newer coffer.`,
    )
  const texts = [vault, created, cipher, mac]
  const isWhole = format === FORMAT && texts.every((text) => typeof text === 'string') && Array.isArray(slots)
  if (!isWhole || !/^[0-9a-f]{32}$/.test(vault as string)) throw malformed(path)
  return value as Header
}

function malformed(path: string): CofferError {
  return new CofferError('vault_damaged', `${path} is not the header of a vault. Restore it from a backup.`)
}
