/**
 * The journal: sealed frames, each chained to the one before, and `head`, which says how far they were
 * acknowledged. Knows what a torn tail is; not what the rows inside a frame are for.
 */

import type { Cipher, RandomSource } from '../../crypto/ports.js'
import { AFTER_DAMAGE, CofferError } from '../../errors.js'
import { asBuffer, encodeId, isEqual } from '../bytes.js'
import { type Files, removeQuietly } from '../files.js'
import {
  associateFrame,
  findFrame,
  LENGTH_WORDS,
  openFrame,
  type ReadableFrames,
  readFrames,
  SEAL_BYTES,
  WAL_HEADER,
  type WalPosition,
} from './frames.js'
import type { Frame } from './row-change.js'

/** Far beyond what folding lets a journal grow to; more is not read into memory. */
export const WAL_LIMIT = 1024 * 1024 * 1024

const MAGIC = Buffer.from('COFFERJ1')
const HEAD_FILE = 'head'
/** journal id 16 | frames u48 | end u48 | last tag 16 */
const HEAD_PLAIN = 44

/** What reading and writing the journal takes. */
export interface WalContext {
  files: Files
  directory: string
  vault: Uint8Array
  wal: Cipher
  head: Cipher
}

/** Path of the journal with this id. */
export function walPath(directory: string, id: Uint8Array): string {
  return `${directory}/journal-${encodeId(id)}`
}

function encodeWalHeader(id: Uint8Array, vault: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(WAL_HEADER)
  bytes.set(MAGIC)
  bytes.writeUInt16LE(1, 8)
  bytes.set(id, 12)
  bytes.set(vault, 28)
  return bytes
}

/** An open journal at its end. It holds a descriptor until {@link Wal.close}. */
export class Wal {
  readonly id: Uint8Array
  /** The tag that its first frame chains to. */
  readonly previous: Uint8Array
  readonly #context: WalContext
  readonly #file: number
  #position: WalPosition
  #head: number | undefined

  constructor(
    context: WalContext,
    id: Uint8Array,
    previous: Uint8Array,
    file: number,
    position: WalPosition,
  ) {
    this.id = id
    this.previous = previous
    this.#context = context
    this.#file = file
    this.#position = position
  }

  get position(): WalPosition {
    return this.#position
  }

  /**
   * Seals a frame and writes it behind the last, without a sync.
   * @throws CofferError `storage_failed`; the caller then cuts back to the mark from before.
   */
  append(plain: Uint8Array): void {
    const { frames, end, tag } = this.#position
    const sealed = this.#context.wal.seal(plain, associateFrame(this.id, frames, tag))
    const bytes = Buffer.allocUnsafe(LENGTH_WORDS + sealed.length)
    bytes.writeUInt32LE(sealed.length, 0)
    bytes.writeUInt32LE(~sealed.length >>> 0, 4)
    bytes.set(sealed, LENGTH_WORDS)
    this.#context.files.write(this.#file, bytes, end)
    this.#position = { frames: frames + 1, end: end + bytes.length, tag: sealed.slice(sealed.length - 16) }
  }

  /** Everything appended so far is safe when it returns. */
  sync(): void {
    this.#context.files.syncData(this.#file)
  }

  /** Forgets what was appended after `mark`. */
  truncate(position: WalPosition): void {
    this.#context.files.truncate(this.#file, position.end)
    this.#position = position
  }

  /** Notes in `head`, unsynced, that all frames so far were acknowledged. */
  acknowledge(): void {
    const { files, directory, head, vault } = this.#context
    this.#head ??=
      files.open(`${directory}/${HEAD_FILE}`, 'write') ?? files.open(`${directory}/${HEAD_FILE}`, 'create')
    if (this.#head === undefined) throw new CofferError('vault_missing', `${directory} is gone.`)
    const plain = Buffer.allocUnsafe(HEAD_PLAIN)
    plain.set(this.id)
    plain.writeUIntLE(this.#position.frames, 16, 6)
    plain.writeUIntLE(this.#position.end, 22, 6)
    plain.set(this.#position.tag, 28)
    files.write(this.#head, head.seal(plain, vault), 0)
  }

  close(): void {
    this.#context.files.close(this.#file)
    if (this.#head !== undefined) this.#context.files.close(this.#head)
  }
}

/** A new, empty journal; file and name are safe when it returns. */
export function createWal(context: WalContext, random: RandomSource, previous: Uint8Array): Wal {
  const { files, directory, vault } = context
  const id = random.bytes(16)
  const path = walPath(directory, id)
  const file = files.open(path, 'create')
  if (file === undefined) throw new CofferError('vault_missing', `${directory} is gone.`)
  try {
    files.write(file, encodeWalHeader(id, vault), 0)
    files.sync(file)
    files.syncDirectory(directory)
  } catch (error) {
    files.close(file)
    removeQuietly(files, path)
    throw error
  }
  return new Wal(context, id, previous, file, { frames: 0, end: WAL_HEADER, tag: previous })
}

export interface OpenedWal {
  wal: Wal
  frames: Frame[]
  /** Bytes after the last whole frame; the owner sets the journal aside and cuts them off. */
  torn: number
}

/**
 * Reads a journal that `state` names, whole. `covered` is what `head` says of it; frames up to there must open and
 * chain, a first broken one after it that nothing chains to is a torn tail.
 * @throws CofferError `vault_damaged`.
 */
export function openWal(
  context: WalContext,
  id: Uint8Array,
  previous: Uint8Array,
  acknowledged: WalPosition | undefined,
): OpenedWal {
  const { files, directory, vault } = context
  const path = walPath(directory, id)
  const file = files.open(path, 'write')
  if (file === undefined) throw damaged(path, 'is missing')
  try {
    const bytes = readWal(files, path, file)
    if (!isEqual(bytes.subarray(0, WAL_HEADER), encodeWalHeader(id, vault))) {
      throw damaged(path, 'does not begin as it should')
    }
    const { frames, position } = replay(context.wal, path, bytes, { id, previous, acknowledged })
    const torn = bytes.subarray(position.end).length
    return { wal: new Wal(context, id, previous, file, position), frames, torn }
  } catch (error) {
    files.close(file)
    throw error
  }
}

function readWal(files: Files, path: string, file: number): Buffer {
  const size = files.size(file)
  if (size > WAL_LIMIT) throw damaged(path, 'is larger than it can be')
  const bytes = Buffer.allocUnsafe(size)
  if (files.read(file, bytes, 0) < size) throw damaged(path, 'shrank while it was read')
  return bytes
}

/**
 * What can be read of a journal however damaged it is. The first frame is only found where `previous` is right.
 * @throws CofferError `vault_damaged` when there is no such file.
 */
export function readDamagedWal(
  { files, directory, wal }: WalContext,
  id: Uint8Array,
  previous: Uint8Array,
): ReadableFrames {
  const path = walPath(directory, id)
  const file = files.open(path, 'read')
  if (file === undefined) throw damaged(path, 'is missing')
  try {
    const start = { frames: 0, end: WAL_HEADER, tag: previous }
    return readFrames(wal, readWal(files, path, file), id, start)
  } finally {
    files.close(file)
  }
}

interface Expected {
  id: Uint8Array
  previous: Uint8Array
  acknowledged: WalPosition | undefined
}

function replay(cipher: Cipher, path: string, bytes: Buffer, { id, previous, acknowledged }: Expected) {
  const frames: Frame[] = []
  let position: WalPosition = { frames: 0, end: WAL_HEADER, tag: previous }
  for (;;) {
    if (acknowledged !== undefined && position.end === acknowledged.end && !isSame(position, acknowledged)) {
      throw damaged(path, 'does not lead where it was acknowledged')
    }
    const next = openFrame(cipher, bytes, id, position)
    if (next === undefined) break
    frames.push(next.frame)
    position = next.position
  }
  if (acknowledged !== undefined && position.end < acknowledged.end)
    throw damaged(path, 'has a broken frame that was acknowledged')
  if (
    acknowledged !== undefined &&
    position.end > acknowledged.end &&
    position.frames <= acknowledged.frames
  ) {
    throw damaged(path, 'does not lead where it was acknowledged')
  }
  if (findFrame(cipher, bytes, id, position) !== undefined)
    throw damaged(path, 'has a broken frame before a whole one')
  return { frames, position }
}

/** What `head` says, or undefined when it is missing or unreadable. */
export function readHead(context: WalContext): (WalPosition & { wal: Uint8Array }) | undefined {
  const { files, directory, vault } = context
  const file = files.open(`${directory}/${HEAD_FILE}`, 'read')
  if (file === undefined) return undefined
  const sealed = new Uint8Array(HEAD_PLAIN + SEAL_BYTES)
  const count = files.read(file, sealed, 0)
  const size = files.size(file)
  files.close(file)
  const opened = count === sealed.length && size === count ? context.head.open(sealed, vault) : undefined
  if (opened === undefined || opened.length !== HEAD_PLAIN) return undefined
  const plain = asBuffer(opened)
  return {
    wal: plain.subarray(0, 16),
    frames: plain.readUIntLE(16, 6),
    end: plain.readUIntLE(22, 6),
    tag: plain.subarray(28),
  }
}

function isSame(left: WalPosition, right: WalPosition): boolean {
  return left.frames === right.frames && left.end === right.end && isEqual(left.tag, right.tag)
}

function damaged(path: string, what: string): CofferError {
  return new CofferError('vault_damaged', `${path} ${what}. ${AFTER_DAMAGE}`)
}
