/** `head-*` says how far the frames of `journal-*` were acknowledged. Both exist before `state` names it. */
import { type CofferError, damaged } from '../../errors.js'
import { asBuffer, fromBase64, toBase64, toHex } from '../bytes.js'
import { readWhole, removeQuietly } from '../files.js'
import type { LsmOptions } from './context.js'
import { type FoundFrames, findFrames, SEAL_BYTES, sealFrame, type WalPosition } from './frames.js'

/** Far more than a log grows to before it is flushed; a larger file is not read into memory. */
export const WAL_LIMIT = 1024 * 1024 * 1024
/** The first log of a vault is chained to this tag. */
export const NO_TAG = new Uint8Array(16)
/** frames u48 | end u48 | last tag 16; sealed with the log's id as associated data */
const HEAD_PLAIN = 28

export interface WalRef {
  /** 16 bytes in hexadecimal. */
  id: string
  /** The tag that its first frame is chained to, base64. */
  previous: string
}

export function walPath({ directory }: LsmOptions, id: string): string {
  return `${directory}/journal-${id}`
}

function headPath({ directory }: LsmOptions, id: string): string {
  return `${directory}/head-${id}`
}

/** Removes the files of a log that no `state` names. */
export function removeWal(context: LsmOptions, id: string): void {
  removeQuietly(context.files, walPath(context, id))
  removeQuietly(context.files, headPath(context, id))
}

export class Wal implements WalRef {
  readonly id: string
  readonly previous: string
  readonly #context: LsmOptions
  readonly #id: Uint8Array
  readonly #file: number
  readonly #head: number
  position: WalPosition

  /** @param open the descriptors of its two files */
  constructor(context: LsmOptions, ref: WalRef, open: readonly number[], position: WalPosition) {
    this.id = ref.id
    this.previous = ref.previous
    this.#context = context
    this.#id = Buffer.from(ref.id, 'hex')
    this.#file = open[0]!
    this.#head = open[1]!
    this.position = position
  }

  /** Seals and writes a frame, unsynced. @throws CofferError `storage_failed`; the caller then truncates to before */
  append(plain: Uint8Array): void {
    const { bytes, position } = sealFrame(this.#context.keys.wal, plain, this.#id, this.position)
    this.#context.files.write(this.#file, bytes, this.position.end)
    this.position = position
  }

  sync(): void {
    this.#context.files.syncData(this.#file)
  }

  /** Syncs without blocking the process. Resolves to whether that worked. */
  syncBeside(): Promise<boolean> {
    return this.#context.files.syncDataBeside(walPath(this.#context, this.id)).then(
      () => true,
      () => false,
    )
  }

  truncate(position: WalPosition): void {
    this.#context.files.truncate(this.#file, position.end)
    this.position = position
  }

  /** Notes in the head, without a sync, that all frames so far were acknowledged. */
  acknowledge(): void {
    this.#context.files.write(this.#head, sealHead(this.#context, this.#id, this.position), 0)
  }

  close(): void {
    this.#context.files.close(this.#file)
    this.#context.files.close(this.#head)
  }
}

/** Its length never changes and it fits into a sector, so a crash leaves an earlier one or this one. */
function sealHead({ keys }: LsmOptions, id: Uint8Array, { frames, end, tag }: WalPosition): Uint8Array {
  const plain = Buffer.allocUnsafe(HEAD_PLAIN)
  plain.writeUIntLE(frames, 0, 6)
  plain.writeUIntLE(end, 6, 6)
  plain.set(tag, 12)
  return keys.head.seal(plain, id)
}

/** A new, empty log; its files and their names are durable when it returns. */
export function createWal(context: LsmOptions, previous: Uint8Array): Wal {
  const { files, directory, random } = context
  const bytes = random.bytes(16)
  const id = toHex(bytes)
  const position: WalPosition = { frames: 0, end: 0, tag: previous }
  const open: number[] = []
  try {
    for (const path of [walPath(context, id), headPath(context, id)]) open.push(files.create(path))
    files.write(open[1]!, sealHead(context, bytes, position), 0)
    for (const file of open) files.sync(file)
    files.syncDirectory(directory)
    return new Wal(context, { id, previous: toBase64(previous) }, open, position)
  } catch (error) {
    for (const file of open) files.close(file)
    removeWal(context, id)
    throw error
  }
}

export interface WalContents extends FoundFrames {
  acknowledged: WalPosition | undefined
  /** Bytes after the intact frames. */
  torn: number
  /** Why the log is damaged, if more than a torn tail is. */
  problem: CofferError | undefined
}

/** A broken frame, not acknowledged and the last, is a torn tail. @throws CofferError `vault_damaged` */
export function readWal(context: LsmOptions, ref: WalRef): WalContents {
  const path = walPath(context, ref.id)
  const bytes = readWhole(context.files, path, WAL_LIMIT)
  if (bytes === undefined) throw damaged(`${path} is missing`)
  const id = Buffer.from(ref.id, 'hex')
  const acknowledged = readHead(context, ref.id)
  const start = { id, previous: fromBase64(ref.previous) }
  const found = findFrames(context.keys.wal, asBuffer(bytes), start, acknowledged)
  let problem: CofferError | undefined
  if (acknowledged === undefined)
    problem = damaged(
      `${headPath(context, ref.id)} is missing or does not open: changes at the end of the write-ahead log may be ` +
        'missing, and nothing else can tell',
    )
  else if (!found.hasAcknowledged) problem = damaged(`${path} has a broken frame that was acknowledged`)
  else if (found.frames.length > found.intact.frames)
    problem = damaged(`${path} has a broken frame before a whole one`)
  return { ...found, acknowledged, torn: bytes.length - found.intact.end, problem }
}

function readHead(context: LsmOptions, id: string): WalPosition | undefined {
  const path = headPath(context, id)
  if ((context.files.stat(path)?.size ?? 0) > HEAD_PLAIN + SEAL_BYTES) return undefined
  const sealed = readWhole(context.files, path, HEAD_PLAIN + SEAL_BYTES)
  const opened =
    sealed?.length === HEAD_PLAIN + SEAL_BYTES
      ? context.keys.head.open(sealed, Buffer.from(id, 'hex'))
      : undefined
  if (opened === undefined) return undefined
  const plain = asBuffer(opened)
  return { frames: plain.readUIntLE(0, 6), end: plain.readUIntLE(6, 6), tag: plain.subarray(12) }
}

/** Opens a log for appending, at the end of its intact frames. */
export function openWal(context: LsmOptions, ref: WalRef, { intact }: WalContents): Wal {
  const paths = [walPath(context, ref.id), headPath(context, ref.id)]
  const open = paths.map((path) => {
    const file = context.files.open(path, 'write')
    if (file === undefined) throw damaged(`${path} is missing`)
    return file
  })
  return new Wal(context, ref, open, intact)
}
