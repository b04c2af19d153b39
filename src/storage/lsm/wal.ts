/**
 * The write-ahead log: sealed frames, each chained to the one before, in a file `journal-*`; and the file `head`, which
 * says how far the frames were acknowledged.
 */
import type { Cipher, RandomSource } from '../../crypto/ports.js'
import { CofferError, damaged } from '../../errors.js'
import { asBuffer, encodeId, isEqual } from '../bytes.js'
import { type Files, readWhole, removeQuietly } from '../files.js'
import {
  findFrame,
  openFrame,
  type ReadableFrames,
  readFrames,
  SEAL_BYTES,
  sealFrame,
  WAL_HEADER,
  type WalPosition,
} from './frames.js'
import type { Frame } from './sstable/row-change.js'

/** Far more than a log grows to before it is flushed; a larger file is not read into memory. */
export const WAL_LIMIT = 1024 * 1024 * 1024

const MAGIC = Buffer.from('COFFERJ1')
const HEAD_FILE = 'head'
/** log id 16 | frames u48 | end u48 | last tag 16 */
const HEAD_PLAIN = 44

/** What logs are read and written with. */
export interface WalContext {
  files: Files
  directory: string
  vault: Uint8Array
  wal: Cipher
  head: Cipher
}

/** Names a log. */
export interface WalRef {
  id: Uint8Array
  /** The tag that its first frame is chained to. */
  previous: Uint8Array
}

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

/** An open log, for appending. It holds a descriptor until {@link Wal.close}. */
export class Wal {
  readonly id: Uint8Array
  readonly previous: Uint8Array
  readonly #context: WalContext
  readonly #file: number
  #position: WalPosition
  #head: number | undefined

  constructor(context: WalContext, { id, previous }: WalRef, file: number, position: WalPosition) {
    this.id = id
    this.previous = previous
    this.#context = context
    this.#file = file
    this.#position = position
  }

  get position(): WalPosition {
    return this.#position
  }

  /** Seals and writes a frame, unsynced. @throws CofferError `storage_failed`; the caller then truncates to before */
  append(plain: Uint8Array): void {
    const { bytes, position } = sealFrame(this.#context.wal, plain, this.id, this.#position)
    this.#context.files.write(this.#file, bytes, this.#position.end)
    this.#position = position
  }

  /** Makes everything appended so far durable. */
  sync(): void {
    this.#context.files.syncData(this.#file)
  }

  /** The same while the process goes on. Resolves to whether it worked. */
  syncBeside(): Promise<boolean> {
    const { files, directory } = this.#context
    return files.syncDataBeside(walPath(directory, this.id)).then(
      () => true,
      () => false,
    )
  }

  /** Removes what was appended after `position`. */
  truncate(position: WalPosition): void {
    this.#context.files.truncate(this.#file, position.end)
    this.#position = position
  }

  /** Notes in `head`, without a sync, that all frames so far were acknowledged. */
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

/** A new, empty log; its file and name are durable when it returns. */
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
  return new Wal(context, { id, previous }, file, { frames: 0, end: WAL_HEADER, tag: previous })
}

export interface OpenedWal {
  wal: Wal
  frames: Frame[]
  /** Bytes after the last whole frame. */
  torn: number
  /** How far the log was acknowledged; undefined when `head` does not say. */
  acknowledged: WalPosition | undefined
}

/**
 * Reads a log that `state` names, whole. Acknowledged frames must open and be chained; a first broken frame after them
 * that no later frame is chained to is a torn tail.
 * @throws CofferError `vault_damaged`.
 */
export function openWal(context: WalContext, ref: WalRef): OpenedWal {
  const path = walPath(context.directory, ref.id)
  const acknowledged = readAcknowledged(context, ref.id)
  const bytes = readWal(context, path)
  if (!isEqual(bytes.subarray(0, WAL_HEADER), encodeWalHeader(ref.id, context.vault)))
    throw damaged(`${path} does not begin as it should`)
  const { frames, position } = readIntact(context.wal, path, bytes, ref, acknowledged)
  const file = context.files.open(path, 'write')
  if (file === undefined) throw damaged(`${path} is missing`)
  const wal = new Wal(context, ref, file, position)
  return { wal, frames, torn: bytes.length - position.end, acknowledged }
}

/** What can be read of a damaged log, from `previous` on. @throws CofferError `vault_damaged` when there is no file */
export function readDamagedWal(context: WalContext, { id, previous }: WalRef): ReadableFrames {
  const bytes = readWal(context, walPath(context.directory, id))
  return readFrames(context.wal, bytes, id, { frames: 0, end: WAL_HEADER, tag: previous })
}

function readWal({ files }: WalContext, path: string): Buffer {
  const bytes = readWhole(files, path, WAL_LIMIT)
  if (bytes === undefined) throw damaged(`${path} is missing`)
  return asBuffer(bytes)
}

/** The frames up to the first that does not open, and where that is. */
function readIntact(
  cipher: Cipher,
  path: string,
  bytes: Buffer,
  { id, previous }: WalRef,
  acknowledged: WalPosition | undefined,
) {
  const frames: Frame[] = []
  let position: WalPosition = { frames: 0, end: WAL_HEADER, tag: previous }
  const { frames: count, end, tag } = acknowledged ?? { ...position, end: 0 }
  for (;;) {
    if (position.end === end && (position.frames !== count || !isEqual(position.tag, tag)))
      throw damaged(`${path} does not lead where it was acknowledged`)
    const next = openFrame(cipher, bytes, id, position)
    if (next === undefined) break
    frames.push(next.frame)
    position = next.position
  }
  if (position.end < end) throw damaged(`${path} has a broken frame that was acknowledged`)
  if (acknowledged !== undefined && position.end > end && position.frames <= count)
    throw damaged(`${path} does not lead where it was acknowledged`)
  if (findFrame(cipher, bytes, id, position) !== undefined)
    throw damaged(`${path} has a broken frame before a whole one`)
  return { frames, position }
}

/** How far `head` says that this log was acknowledged; undefined when it is missing, unreadable or of another log. */
function readAcknowledged(context: WalContext, id: Uint8Array): WalPosition | undefined {
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
  if (!isEqual(plain.subarray(0, 16), id)) return undefined
  return { frames: plain.readUIntLE(16, 6), end: plain.readUIntLE(22, 6), tag: plain.subarray(28) }
}
