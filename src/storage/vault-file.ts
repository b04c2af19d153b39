/**
 * The vault's small documents, read and replaced whole through lowdb: `vault.json` (plain header), `state`
 * (sealed); their shapes, and the permissions that the files must have.
 */

import { type Adapter, Low } from 'lowdb'
import type { Cipher, RandomSource } from '../crypto/ports.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { CofferError, conflict, damaged } from '../errors.js'
import { decodeId, encodeId } from './bytes.js'
import { type Files, makeDirectories, readWhole, replaceWhole } from './files.js'
import { type Counters, createCounters } from './lsm/counters.js'

export const FORMAT = 1

const HEADER_FILE = 'vault.json'
const STATE_FILE = 'state'
const NEXT_STATE_FILE = 'state.next'
const HEADER_LIMIT = 64 * 1024
const STATE_LIMIT = 16 * 1024 * 1024

/** `vault.json`. Slots and mac are made and checked by the keyring; `vault` is base32 of 16 bytes, lower case. */
export interface Header {
  format: number
  vault: string
  created: string
  cipher: string
  slots: unknown[]
  mac: string
}

/** One sorted table; `dead` and `due` are row numbers encoded by `packRows`. */
export interface StateSSTable {
  id: string
  /** The footer's tag, base64 of 16 bytes. */
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
  /** Write-ahead logs, oldest first; `previous` is the tag that the first frame is chained to, base64 of 16 bytes. */
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
  if (stat.kind !== kind)
    throw new CofferError(
      'vault_exposed',
      `${path} is not a plain ${kind}. Put the real ${kind} in its place.`,
    )
  if (files.user === undefined) return
  if (stat.owner !== files.user)
    throw new CofferError(
      'vault_exposed',
      `${path} belongs to another user (id ${stat.owner}). Use a vault of your own, or run \`chown ${files.user} ${quoteWord(path)}\`.`,
    )
  if ((stat.mode & EXPOSED) === 0) return
  const mode = kind === 'directory' ? '700' : '600'
  throw new CofferError(
    'vault_exposed',
    `Other users may read ${path}. Run \`chmod ${mode} ${quoteWord(path)}\` first.`,
  )
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
  const document = new Low<unknown>(headerAdapter(files, directory, ''), null)
  await document.read()
  return checkHeader(document.data, `${directory}/${HEADER_FILE}`)
}

/** Replaces `vault.json` whole; durable when it resolves. */
export async function writeHeader(files: Files, directory: string, random: RandomSource, header: Header) {
  const nonce = encodeId(random.bytes(10))
  await new Low<unknown>(headerAdapter(files, directory, nonce), header).write()
}

/** The text whose digest is in `state`: equal for equal headers. */
export function headerText(header: Header): string {
  return `${JSON.stringify(header, undefined, 2)}\n`
}

function headerAdapter(files: Files, directory: string, nonce: string): Adapter<unknown> {
  return {
    read: async () => {
      const bytes = readWhole(files, `${directory}/${HEADER_FILE}`, HEADER_LIMIT)
      return bytes === undefined ? null : parse(bytes, `${directory}/${HEADER_FILE}`)
    },
    write: async (header) =>
      replaceWhole(files, directory, HEADER_FILE, Buffer.from(headerText(header as Header)), nonce),
  }
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
  const header = value as Partial<Record<keyof Header, unknown>> | null
  if (typeof header !== 'object' || header === null) throw malformed(path)
  const { format, vault, created, cipher, slots, mac } = header
  if (typeof format === 'number' && Number.isInteger(format) && format > FORMAT)
    throw new CofferError(
      'vault_unsupported',
      `${path} has format ${format}, and this program knows ${FORMAT}. Use a newer coffer.`,
    )
  const texts = [vault, created, cipher, mac]
  if (format !== FORMAT || !texts.every((text) => typeof text === 'string') || !Array.isArray(slots))
    throw malformed(path)
  if (decodeId(vault as string)?.length !== 16) throw malformed(path)
  return value as Header
}

function malformed(path: string): CofferError {
  return new CofferError('vault_damaged', `${path} is not the header of a vault. Restore it from a backup.`)
}

export type StateDocument = Low<State>

export interface DocumentContext {
  cipher: Cipher
  random: RandomSource
  vault: Uint8Array
}

/**
 * The `state` document: `read()` fills `data`, `write()` replaces the file, sealed and bound to the vault. A state that
 * is missing, too large or does not open is damage. `next`: a change of the root key writes it and puts it in place.
 */
export function stateDocument(
  files: Files,
  directory: string,
  context: DocumentContext,
  which: 'present' | 'next' = 'present',
): StateDocument {
  const name = which === 'present' ? STATE_FILE : NEXT_STATE_FILE
  return new Low<State>(sealedAdapter(files, directory, name, context), EMPTY)
}

/**
 * Ends a change of the root key that a crash interrupted after the new header was in place: replaces the present state
 * by the next one. False if there is no next state that opens.
 */
export function adoptNextState(files: Files, directory: string, { cipher, vault }: DocumentContext): boolean {
  const sealed = readWhole(files, `${directory}/${NEXT_STATE_FILE}`, STATE_LIMIT)
  if (sealed === undefined || cipher.open(sealed, vault) === undefined) return false
  files.rename(`${directory}/${NEXT_STATE_FILE}`, `${directory}/${STATE_FILE}`)
  files.syncDirectory(directory)
  return true
}

function sealedAdapter(
  files: Files,
  directory: string,
  name: string,
  { cipher, random, vault }: DocumentContext,
): Adapter<State> {
  const path = `${directory}/${name}`
  return {
    read: async () => {
      const sealed = readWhole(files, path, STATE_LIMIT)
      if (sealed === undefined) throw damaged(`${path} is missing`)
      const plain = cipher.open(sealed, vault)
      if (plain === undefined) throw damaged(`${path} does not open`)
      return parse(plain, path) as State
    },
    write: async (content) => {
      const sealed = cipher.seal(Buffer.from(JSON.stringify(content)), vault)
      if (sealed.length > STATE_LIMIT)
        throw new CofferError(
          'storage_failed',
          `${path} would outgrow its limit. Run \`coffer vault compact\`.`,
        )
      replaceWhole(files, directory, name, sealed, encodeId(random.bytes(10)))
    },
  }
}

const EMPTY: State = Object.freeze({
  headers: [],
  counters: createCounters(),
  journals: [],
  segments: [],
})
