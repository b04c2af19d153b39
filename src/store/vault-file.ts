/**
 * The vault's two small documents, read and replaced whole through lowdb: `vault.json` (plain header) and
 * `state` (sealed). Knows their shapes and who may read them, not what key slots or segments mean.
 */
import { type Adapter, Low } from 'lowdb'
import { CofferError } from '../errors.js'
import { decodeId, encodeId } from './bytes.js'
import { type Files, readWhole, replaceWhole } from './files.js'
import type { Cipher, Random } from './store.js'

/** The format this program reads and writes. */
export const FORMAT = 1

const HEADER_FILE = 'vault.json'
const STATE_FILE = 'state'
const HEADER_LIMIT = 64 * 1024
const STATE_LIMIT = 16 * 1024 * 1024

/** `vault.json`. Slots and mac are made and checked by the keyring; `vault` is base32 of 16 bytes, lower case. */
export interface Header {
  format: 1
  vault: string
  created: string
  cipher: string
  digest: string
  slots: unknown[]
  mac: string
}

/** Numbers that the next row gets, and how far each tenant's chain of log rows has come. */
export interface StateCounters {
  seq: number
  logSeq: number
  rev: number
  time: number
  /** By tenant number; `value` is base64 of 16 bytes. */
  chains: Record<string, { value: string; count: number }>
}

/** One segment; `dead` and `due` are row numbers as `packRows` spells them. */
export interface StateSegment {
  id: string
  family: 'records' | 'logs'
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

/** `state`: what the vault is made of. Whatever it names must be there; whatever it does not name is swept. */
export interface State {
  generation: number
  /** Digests of the `vault.json` that fits, base64; two while the header is being replaced. */
  headers: string[]
  counters: StateCounters
  /** Oldest first; `previous` is the tag the first frame chains to, base64 of 16 bytes. */
  journals: { id: string; previous: string }[]
  segments: StateSegment[]
}

const EXPOSED = 0o077

/**
 * Refuses a directory, `vault.json` or `state` that others may read, that someone else owns or that is a link.
 * @throws CofferError `vault_missing` when there is no vault, `vault_exposed` with the command that mends it.
 */
export function checkExposure(files: Files, directory: string): void {
  if (files.facts(directory) === undefined || files.facts(`${directory}/${HEADER_FILE}`) === undefined) {
    throw new CofferError(
      'vault_missing',
      `There is no vault in ${directory}. Create one with \`coffer init\`.`,
    )
  }
  checkDirectory(files, directory)
  checkPath(files, `${directory}/${HEADER_FILE}`, 'file')
  checkPath(files, `${directory}/${STATE_FILE}`, 'file')
}

/** Refuses a directory that others may enter. @throws CofferError `vault_exposed`. */
export function checkDirectory(files: Files, directory: string): void {
  checkPath(files, directory, 'directory')
}

function checkPath(files: Files, path: string, kind: 'file' | 'directory'): void {
  const facts = files.facts(path)
  if (facts === undefined) return
  if (facts.kind !== kind) {
    throw new CofferError(
      'vault_exposed',
      `${path} is not a plain ${kind}. Put the real ${kind} in its place.`,
    )
  }
  if (files.user === undefined) return
  if (facts.owner !== files.user) {
    throw new CofferError(
      'vault_exposed',
      `${path} belongs to another user (id ${facts.owner}). Use a vault of your own, or run \`chown ${files.user} ${path}\`.`,
    )
  }
  if ((facts.mode & EXPOSED) === 0) return
  const mode = kind === 'directory' ? '700' : '600'
  throw new CofferError('vault_exposed', `Other users may read ${path}. Run \`chmod ${mode} ${path}\` first.`)
}

/** True when the directory holds a vault's header. */
export function hasHeader(files: Files, directory: string): boolean {
  return files.facts(`${directory}/${HEADER_FILE}`) !== undefined
}

/**
 * The header as it stands; its mac is the keyring's to check.
 * @throws CofferError `vault_missing`, `vault_exposed`, `vault_damaged`, `vault_unsupported`.
 */
export async function readHeader(files: Files, directory: string): Promise<Header> {
  checkExposure(files, directory)
  const document = new Low<unknown>(headerAdapter(files, directory, ''), null)
  await document.read()
  return checkHeader(document.data, `${directory}/${HEADER_FILE}`)
}

/** Replaces `vault.json` whole; safe on disk when it resolves. */
export async function writeHeader(
  files: Files,
  directory: string,
  random: Random,
  header: Header,
): Promise<void> {
  const nonce = encodeId(random.bytes(10))
  await new Low<unknown>(headerAdapter(files, directory, nonce), header).write()
}

/** What the digest in `state` is taken over: equal text for equal headers. */
export function headerText(header: Header): string {
  return `${JSON.stringify(header, undefined, 2)}\n`
}

function headerAdapter(files: Files, directory: string, nonce: string): Adapter<unknown> {
  return {
    read: async () => {
      const bytes = readWhole(files, `${directory}/${HEADER_FILE}`, HEADER_LIMIT)
      return bytes === undefined ? null : parse(bytes, `${directory}/${HEADER_FILE}`)
    },
    write: async (header) => {
      const bytes = Buffer.from(headerText(header as Header))
      replaceWhole(files, directory, HEADER_FILE, bytes, nonce)
    },
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

/** The header that was read from `path`. @throws CofferError `vault_damaged`, `vault_unsupported`. */
export function checkHeader(value: unknown, path: string): Header {
  const header = value as Partial<Record<keyof Header, unknown>> | null
  if (typeof header !== 'object' || header === null) throw malformed(path)
  const { format, vault, created, cipher, digest, slots, mac } = header
  if (typeof format === 'number' && Number.isInteger(format) && format > FORMAT) {
    throw new CofferError(
      'vault_unsupported',
      `${path} has format ${format}, and this program knows up to ${FORMAT}. Use a newer coffer.`,
    )
  }
  const texts = [vault, created, cipher, digest, mac]
  if (format !== FORMAT || !texts.every((text) => typeof text === 'string') || !Array.isArray(slots)) {
    throw malformed(path)
  }
  if (decodeId(vault as string)?.length !== 16) throw malformed(path)
  return value as Header
}

function malformed(path: string): CofferError {
  return new CofferError('vault_damaged', `${path} is not the header of a vault. Restore it from a backup.`)
}

/**
 * The `state` document: `read()` fills `data`, `write()` replaces the file, both sealed and bound to the vault.
 * `data` is undefined until one of them was set; a state that is missing, too large or does not open is damage.
 */
export function stateDocument(
  files: Files,
  directory: string,
  powers: { cipher: Cipher; random: Random; vault: Uint8Array },
): Low<State> {
  const path = `${directory}/${STATE_FILE}`
  const adapter: Adapter<State> = {
    read: async () => {
      const sealed = readWhole(files, path, STATE_LIMIT)
      if (sealed === undefined) throw damagedState(path, 'is missing')
      const plain = powers.cipher.open(sealed, powers.vault)
      if (plain === undefined) throw damagedState(path, 'does not open')
      return parse(plain, path) as State
    },
    write: async (state) => {
      const sealed = powers.cipher.seal(Buffer.from(JSON.stringify(state)), powers.vault)
      if (sealed.length > STATE_LIMIT) {
        throw new CofferError(
          'storage_failed',
          `${path} would outgrow its limit. Run \`coffer vault compact\`.`,
        )
      }
      replaceWhole(files, directory, STATE_FILE, sealed, encodeId(powers.random.bytes(10)))
    },
  }
  return new Low<State>(adapter, EMPTY)
}

const EMPTY: State = Object.freeze({
  generation: 0,
  headers: [],
  counters: { seq: 1, logSeq: 1, rev: 1, time: 0, chains: {} },
  journals: [],
  segments: [],
})

function damagedState(path: string, what: string): CofferError {
  return new CofferError(
    'vault_damaged',
    `${path} ${what}. Run \`coffer vault verify\`, or restore a backup.`,
  )
}
