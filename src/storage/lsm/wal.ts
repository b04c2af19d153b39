/**
 * The write-ahead log: sealed frames, each chained to the one before, in a file `journal-*`; and a file `head-*` with
 * its id, which says how far the frames were acknowledged. Both exist before `state` names the log, so a vault
 * without one of them is damaged.
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
/** log id 16 | frames u48 | end u48 | last tag 16 */
const HEAD_PLAIN = 44

export interface WalContext {
  files: Files
  directory: string
  vault: Uint8Array
  wal: Cipher
  head: Cipher
}

export interface WalRef {
  id: Uint8Array
  /** The tag that its first frame is chained to. */
  previous: Uint8Array
}

export function walPath(directory: string, id: Uint8Array): string {
  return `${directory}/journal-${encodeId(id)}`
}

function headPath(directory: string, id: Uint8Array): string {
  return `${directory}/head-${encodeId(id)}`
}

/** Removes the files of a log that no `state` names. */
export function removeWal(files: Files, directory: string, id: Uint8Array): void {
  removeQuietly(files, walPath(directory, id))
  removeQuietly(files, headPath(directory, id))
}

/** The id in the name of one of a log's files; undefined for any other name. */
export function walIdOf(name: string): string | undefined {
  return /^(?:journal|head)-(.*)$/.exec(name)?.[1]
}

function encodeWalHeader(id: Uint8Array, vault: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(WAL_HEADER)
  bytes.set(MAGIC)
  bytes.writeUInt16LE(1, 8)
  bytes.set(id, 12)
  bytes.set(vault, 28)
  return bytes
}

/** An open log, for appending. It holds two descriptors until {@link Wal.close}. */
export class Wal {
  readonly id: Uint8Array
  readonly previous: Uint8Array
  readonly #context: WalContext
  readonly #file: number
  readonly #head: number
  #position: WalPosition

  constructor(context: WalContext, { id, previous }: WalRef, open: OpenWalFiles, position: WalPosition) {
    this.id = id
    this.previous = previous
    this.#context = context
    this.#file = open.file
    this.#head = open.head
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

  /** Syncs without blocking the process. Resolves to whether that worked. */
  syncBeside(): Promise<boolean> {
    const { files, directory } = this.#context
    return files.syncDataBeside(walPath(directory, this.id)).then(
      () => true,
      () => false,
    )
  }

  truncate(position: WalPosition): void {
    this.#context.files.truncate(this.#file, position.end)
    this.#position = position
  }

  /** Notes in the head, without a sync, that all frames so far were acknowledged. */
  acknowledge(): void {
    this.#context.files.write(this.#head, sealHead(this.#context, this.id, this.#position), 0)
  }

  close(): void {
    this.#context.files.close(this.#file)
    this.#context.files.close(this.#head)
  }
}

/** Its length never changes and it fits into a sector, so a crash leaves an earlier one or this one. */
function sealHead(
  { head, vault }: WalContext,
  id: Uint8Array,
  { frames, end, tag }: WalPosition,
): Uint8Array {
  const plain = Buffer.allocUnsafe(HEAD_PLAIN)
  plain.set(id)
  plain.writeUIntLE(frames, 16, 6)
  plain.writeUIntLE(end, 22, 6)
  plain.set(tag, 28)
  return head.seal(plain, vault)
}

/** A new, empty log; its files and their names are durable when it returns. */
export function createWal(context: WalContext, random: RandomSource, previous: Uint8Array): Wal {
  const { files, directory, vault } = context
  const id = random.bytes(16)
  const position: WalPosition = { frames: 0, end: WAL_HEADER, tag: previous }
  const written: number[] = []
  const create = (path: string, bytes: Uint8Array) => {
    const file = files.open(path, 'create')
    if (file === undefined) throw new CofferError('vault_missing', `${directory} is gone.`)
    written.push(file)
    files.write(file, bytes, 0)
    files.sync(file)
    return file
  }
  try {
    const file = create(walPath(directory, id), encodeWalHeader(id, vault))
    const head = create(headPath(directory, id), sealHead(context, id, position))
    files.syncDirectory(directory)
    return new Wal(context, { id, previous }, { file, head }, position)
  } catch (error) {
    for (const file of written) files.close(file)
    removeWal(files, directory, id)
    throw error
  }
}

interface OpenWalFiles {
  file: number
  head: number
}

export interface OpenedWal {
  wal: Wal
  frames: Frame[]
  /** Bytes after the last whole frame. */
  torn: number
  acknowledged: WalPosition
}

/**
 * Reads a log that `state` names, whole. Acknowledged frames must open and be chained; a first broken frame after them
 * that no later frame is chained to is a torn tail.
 * @throws CofferError `vault_damaged`.
 */
export function openWal(context: WalContext, ref: WalRef): OpenedWal {
  const path = walPath(context.directory, ref.id)
  const bytes = readWal(context, path)
  if (!isEqual(bytes.subarray(0, WAL_HEADER), encodeWalHeader(ref.id, context.vault)))
    throw damaged(`${path} does not begin as it should`)
  const acknowledged = readHead(context, ref.id)
  const { frames, position } = readIntact(context.wal, path, bytes, ref, acknowledged)
  const file = openToWrite(context, path)
  const head = openToWrite(context, headPath(context.directory, ref.id))
  const wal = new Wal(context, ref, { file, head }, position)
  return { wal, frames, torn: bytes.length - position.end, acknowledged }
}

/** Reads every frame that opens. @throws CofferError `vault_damaged` when there is no file */
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
  { frames: count, end, tag }: WalPosition,
) {
  const frames: Frame[] = []
  let position: WalPosition = { frames: 0, end: WAL_HEADER, tag: previous }
  for (;;) {
    if (position.end === end && (position.frames !== count || !isEqual(position.tag, tag)))
      throw damaged(`${path} does not lead where it was acknowledged`)
    const next = openFrame(cipher, bytes, id, position)
    if (next === undefined) break
    frames.push(next.frame)
    position = next.position
  }
  if (position.end < end) throw damaged(`${path} has a broken frame that was acknowledged`)
  if (position.end > end && position.frames <= count)
    throw damaged(`${path} does not lead where it was acknowledged`)
  if (findFrame(cipher, bytes, id, position) !== undefined)
    throw damaged(`${path} has a broken frame before a whole one`)
  return { frames, position }
}

/** @throws CofferError `vault_damaged` if the head is missing or does not open */
function readHead(context: WalContext, id: Uint8Array): WalPosition {
  const { files, directory, vault } = context
  const path = headPath(directory, id)
  const sealed = readWhole(files, path, HEAD_PLAIN + SEAL_BYTES)
  const lost = 'changes at the end of the write-ahead log may be missing, and nothing else can tell'
  if (sealed === undefined) throw damaged(`${path} is missing: ${lost}`)
  const opened = sealed.length === HEAD_PLAIN + SEAL_BYTES ? context.head.open(sealed, vault) : undefined
  const plain = opened && asBuffer(opened)
  if (plain === undefined || !isEqual(plain.subarray(0, 16), id))
    throw damaged(`${path} does not open: ${lost}`)
  return { frames: plain.readUIntLE(16, 6), end: plain.readUIntLE(22, 6), tag: plain.subarray(28) }
}

function openToWrite({ files }: WalContext, path: string): number {
  const file = files.open(path, 'write')
  if (file === undefined) throw damaged(`${path} is missing`)
  return file
}
