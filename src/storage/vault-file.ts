/**
 * The vault's small documents, read and replaced whole: `vault.json` (plain header) and `state` (sealed, through lowdb);
 * their shapes, and the permissions that the files must have.
 */
import { LowSync } from 'lowdb'
import type { Cipher, Header, RandomSource } from '../crypto/ports.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { CofferError, conflict, damaged } from '../errors.js'
import { toHex } from './bytes.js'
import { type Files, makeDirectories, readWhole, replaceWhole } from './files.js'
import { type Counters, createCounters } from './time.js'

export type { Header } from '../crypto/ports.js'

export const FORMAT = 1

const HEADER_FILE = 'vault.json'
const STATE_FILE = 'state'
export const NEXT_STATE_FILE = 'state.next'
const HEADER_LIMIT = 64 * 1024
const STATE_LIMIT = 16 * 1024 * 1024

/** One sorted table; `dead` and `due` are row numbers encoded by `packRows`. */
export interface StateSSTable {
  id: string
  /** The footer's tag, base64. */
  tag: string
  bytes: number
  rows: number
  /** Lowest and highest `seq`. */
  from: number
  to: number
  dead: string
  /** Dead rows whose bytes are still to be overwritten. */
  due: string
  /** Tenants whose rows here are all dead. */
  dropped: number[]
}

/** `state`: the files that make up the vault. Each that it names must exist; opening removes the others. */
export interface State {
  /** Digests of the valid `vault.json`, base64; two while the header is being replaced. */
  headers: string[]
  counters: Counters
  /** Write-ahead logs, oldest first; `previous` is the tag that the first frame is chained to, base64. */
  journals: { id: string; previous: string }[]
  segments: StateSSTable[]
}

const EXPOSED = 0o077

/**
 * Refuses a directory, `vault.json` or `state` that other users may read, that another user owns or that is a link.
 * @throws CofferError `vault_missing` when there is no vault, `vault_exposed` with the command that repairs it.
 */
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
    throw conflict(`There is a vault in ${directory} already. Choose another directory.`)
  makeDirectories(files, directory)
  checkPath(files, directory, 'directory')
  files.makeDirectory(`${directory}/segments`)
}

/**
 * Does not check the mac, which the keyring does.
 * @throws CofferError `vault_missing`, `vault_exposed`, `vault_damaged`, `vault_unsupported`.
 */
export async function readHeader(files: Files, directory: string): Promise<Header> {
  checkExposure(files, directory)
  const path = `${directory}/${HEADER_FILE}`
  const bytes = readWhole(files, path, HEADER_LIMIT)
  return checkHeader(bytes && parse(bytes, path), path)
}

/** Replaces `vault.json` whole, durably. */
export function writeHeader(files: Files, directory: string, random: RandomSource, header: Header): void {
  replaceWhole(files, directory, HEADER_FILE, Buffer.from(headerText(header)), toHex(random.bytes(10)))
}

/** The text whose digest is in `state`: equal for equal headers. */
export function headerText(header: Header): string {
  return `${JSON.stringify(header, undefined, 2)}\n`
}

function parse(bytes: Uint8Array, path: string): unknown {
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

/** How `state` is sealed: bound to the vault. */
export interface StateContext {
  files: Files
  directory: string
  cipher: Cipher
  random: RandomSource
  vault: Uint8Array
}

/** The `state` document. Reading throws CofferError `vault_damaged` if it is missing, too large or does not open. */
export function stateDocument(context: StateContext, name: string = STATE_FILE): LowSync<State> {
  const { files, directory, cipher, random, vault } = context
  const path = `${directory}/${name}`
  const adapter = {
    read() {
      const sealed = readWhole(files, path, STATE_LIMIT)
      if (sealed === undefined) throw damaged(`${path} is missing`)
      const plain = cipher.open(sealed, vault)
      if (plain === undefined) throw damaged(`${path} does not open`)
      return parse(plain, path) as State
    },
    write(state: State) {
      const sealed = cipher.seal(Buffer.from(JSON.stringify(state)), vault)
      if (sealed.length > STATE_LIMIT)
        throw new CofferError(
          'storage_failed',
          `${path} would outgrow its limit. Run \`coffer vault compact\`.`,
        )
      replaceWhole(files, directory, name, sealed, toHex(random.bytes(10)))
    },
  }
  return new LowSync(adapter, { headers: [], counters: createCounters(), journals: [], segments: [] })
}

/**
 * Puts the next state in place of the present one. A crash may have interrupted a change of the root key after the new
 * header was in place. False if there is no next state that opens.
 */
export function adoptNextState({ files, directory, cipher, vault }: StateContext): boolean {
  const sealed = readWhole(files, `${directory}/${NEXT_STATE_FILE}`, STATE_LIMIT)
  if (sealed === undefined || cipher.open(sealed, vault) === undefined) return false
  files.rename(`${directory}/${NEXT_STATE_FILE}`, `${directory}/${STATE_FILE}`)
  files.syncDirectory(directory)
  return true
}
