/**
 * The journal: sealed frames, each chained to the one before, and `head`, which says how far they were
 * acknowledged. Knows what a torn tail is; not what the rows inside a frame are for.
 */

import type { Cipher, Random } from '../../crypto/ports.js'
import { AFTER_DAMAGE, CofferError } from '../../errors.js'
import { asBuffer, encodeId, isEqual } from '../bytes.js'
import { type Files, removeQuietly } from '../files.js'
import {
  associateFrame,
  findFrame,
  JOURNAL_HEADER,
  LENGTH_WORDS,
  type Mark,
  openFrame,
  type Readable,
  readFrames,
  SEAL_BYTES,
} from './frames.js'
import type { Frame } from './row-change.js'

/** Far beyond what folding lets a journal grow to; more is not read into memory. */
export const JOURNAL_LIMIT = 1024 * 1024 * 1024

const MAGIC = Buffer.from('COFFERJ1')
const HEAD_FILE = 'head'
/** journal id 16 | frames u48 | end u48 | last tag 16 */
const HEAD_PLAIN = 44

/** What reading and writing the journal takes. */
export interface JournalPlace {
  files: Files
  directory: string
  vault: Uint8Array
  journal: Cipher
  head: Cipher
}

/** Path of the journal with this id. */
export function journalPath(directory: string, id: Uint8Array): string {
  return `${directory}/journal-${encodeId(id)}`
}

function encodeJournalHeader(id: Uint8Array, vault: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(JOURNAL_HEADER)
  bytes.set(MAGIC)
  bytes.writeUInt16LE(1, 8)
  bytes.set(id, 12)
  bytes.set(vault, 28)
  return bytes
}

/** An open journal at its end. It holds a descriptor until {@link Journal.close}. */
export class Journal {
  readonly id: Uint8Array
  /** The tag that its first frame chains to. */
  readonly previous: Uint8Array
  readonly #place: JournalPlace
  readonly #file: number
  #mark: Mark
  #head: number | undefined

  constructor(place: JournalPlace, id: Uint8Array, previous: Uint8Array, file: number, mark: Mark) {
    this.id = id
    this.previous = previous
    this.#place = place
    this.#file = file
    this.#mark = mark
  }

  get mark(): Mark {
    return this.#mark
  }

  /**
   * Seals a frame and writes it behind the last, without a sync.
   * @throws CofferError `storage_failed`; the caller then cuts back to the mark from before.
   */
  append(plain: Uint8Array): void {
    const { frames, end, tag } = this.#mark
    const sealed = this.#place.journal.seal(plain, associateFrame(this.id, frames, tag))
    const bytes = Buffer.allocUnsafe(LENGTH_WORDS + sealed.length)
    bytes.writeUInt32LE(sealed.length, 0)
    bytes.writeUInt32LE(~sealed.length >>> 0, 4)
    bytes.set(sealed, LENGTH_WORDS)
    this.#place.files.write(this.#file, bytes, end)
    this.#mark = { frames: frames + 1, end: end + bytes.length, tag: sealed.slice(sealed.length - 16) }
  }

  /** Everything appended so far is safe when it returns. */
  sync(): void {
    this.#place.files.syncData(this.#file)
  }

  /** Forgets what was appended after `mark`. */
  cut(mark: Mark): void {
    this.#place.files.truncate(this.#file, mark.end)
    this.#mark = mark
  }

  /** Notes in `head`, unsynced, that all frames so far were acknowledged. */
  acknowledge(): void {
    const { files, directory, head, vault } = this.#place
    this.#head ??=
      files.open(`${directory}/${HEAD_FILE}`, 'write') ?? files.open(`${directory}/${HEAD_FILE}`, 'create')
    if (this.#head === undefined) throw new CofferError('vault_missing', `${directory} is gone.`)
    const plain = Buffer.allocUnsafe(HEAD_PLAIN)
    plain.set(this.id)
    plain.writeUIntLE(this.#mark.frames, 16, 6)
    plain.writeUIntLE(this.#mark.end, 22, 6)
    plain.set(this.#mark.tag, 28)
    files.write(this.#head, head.seal(plain, vault), 0)
  }

  close(): void {
    this.#place.files.close(this.#file)
    if (this.#head !== undefined) this.#place.files.close(this.#head)
  }
}

/** A new, empty journal; file and name are safe when it returns. */
export function createJournal(place: JournalPlace, random: Random, previous: Uint8Array): Journal {
  const { files, directory, vault } = place
  const id = random.bytes(16)
  const path = journalPath(directory, id)
  const file = files.open(path, 'create')
  if (file === undefined) throw new CofferError('vault_missing', `${directory} is gone.`)
  try {
    files.write(file, encodeJournalHeader(id, vault), 0)
    files.sync(file)
    files.syncDirectory(directory)
  } catch (error) {
    files.close(file)
    removeQuietly(files, path)
    throw error
  }
  return new Journal(place, id, previous, file, { frames: 0, end: JOURNAL_HEADER, tag: previous })
}

export interface OpenedJournal {
  journal: Journal
  frames: Frame[]
  /** Bytes after the last whole frame; the owner sets the journal aside and cuts them off. */
  torn: number
}

/**
 * Reads a journal that `state` names, whole. `covered` is what `head` says of it; frames up to there must open and
 * chain, a first broken one after it that nothing chains to is a torn tail.
 * @throws CofferError `vault_damaged`.
 */
export function openJournal(
  place: JournalPlace,
  id: Uint8Array,
  previous: Uint8Array,
  covered: Mark | undefined,
): OpenedJournal {
  const { files, directory, vault } = place
  const path = journalPath(directory, id)
  const file = files.open(path, 'write')
  if (file === undefined) throw damaged(path, 'is missing')
  try {
    const bytes = readJournal(files, path, file)
    if (!isEqual(bytes.subarray(0, JOURNAL_HEADER), encodeJournalHeader(id, vault))) {
      throw damaged(path, 'does not begin as it should')
    }
    const { frames, mark } = replay(place.journal, path, bytes, { id, previous, covered })
    const torn = bytes.subarray(mark.end).length
    return { journal: new Journal(place, id, previous, file, mark), frames, torn }
  } catch (error) {
    files.close(file)
    throw error
  }
}

function readJournal(files: Files, path: string, file: number): Buffer {
  const size = files.size(file)
  if (size > JOURNAL_LIMIT) throw damaged(path, 'is larger than it can be')
  const bytes = Buffer.allocUnsafe(size)
  if (files.read(file, bytes, 0) < size) throw damaged(path, 'shrank while it was read')
  return bytes
}

/**
 * What can be read of a journal however damaged it is. The first frame is only found where `previous` is right.
 * @throws CofferError `vault_damaged` when there is no such file.
 */
export function readDamagedJournal(
  { files, directory, journal }: JournalPlace,
  id: Uint8Array,
  previous: Uint8Array,
): Readable {
  const path = journalPath(directory, id)
  const file = files.open(path, 'read')
  if (file === undefined) throw damaged(path, 'is missing')
  try {
    const start = { frames: 0, end: JOURNAL_HEADER, tag: previous }
    return readFrames(journal, readJournal(files, path, file), id, start)
  } finally {
    files.close(file)
  }
}

interface Expected {
  id: Uint8Array
  previous: Uint8Array
  covered: Mark | undefined
}

function replay(cipher: Cipher, path: string, bytes: Buffer, { id, previous, covered }: Expected) {
  const frames: Frame[] = []
  let mark: Mark = { frames: 0, end: JOURNAL_HEADER, tag: previous }
  for (;;) {
    if (covered !== undefined && mark.end === covered.end && !isSame(mark, covered)) {
      throw damaged(path, 'does not lead where it was acknowledged')
    }
    const next = openFrame(cipher, bytes, id, mark)
    if (next === undefined) break
    frames.push(next.frame)
    mark = next.mark
  }
  if (covered !== undefined && mark.end < covered.end)
    throw damaged(path, 'has a broken frame that was acknowledged')
  if (covered !== undefined && mark.end > covered.end && mark.frames <= covered.frames) {
    throw damaged(path, 'does not lead where it was acknowledged')
  }
  if (findFrame(cipher, bytes, id, mark) !== undefined)
    throw damaged(path, 'has a broken frame before a whole one')
  return { frames, mark }
}

/** What `head` says, or undefined when it is missing or unreadable. */
export function readHead(place: JournalPlace): (Mark & { journal: Uint8Array }) | undefined {
  const { files, directory, vault } = place
  const file = files.open(`${directory}/${HEAD_FILE}`, 'read')
  if (file === undefined) return undefined
  const sealed = new Uint8Array(HEAD_PLAIN + SEAL_BYTES)
  const count = files.read(file, sealed, 0)
  const size = files.size(file)
  files.close(file)
  const opened = count === sealed.length && size === count ? place.head.open(sealed, vault) : undefined
  if (opened === undefined || opened.length !== HEAD_PLAIN) return undefined
  const plain = asBuffer(opened)
  return {
    journal: plain.subarray(0, 16),
    frames: plain.readUIntLE(16, 6),
    end: plain.readUIntLE(22, 6),
    tag: plain.subarray(28),
  }
}

function isSame(left: Mark, right: Mark): boolean {
  return left.frames === right.frames && left.end === right.end && isEqual(left.tag, right.tag)
}

function damaged(path: string, what: string): CofferError {
  return new CofferError('vault_damaged', `${path} ${what}. ${AFTER_DAMAGE}`)
}
