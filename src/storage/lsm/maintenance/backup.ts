/**
 * Writes a backup: a whole vault in one file, its header in the clear, because its key slots open the rest, then sealed
 * frames, each chained to the one before, so that nothing can be left out, swapped or cut off.
 */
import type { EngineKeys, RandomSource } from '../../../crypto/ports.js'
import { CofferError, conflict } from '../../../errors.js'
import { type Files, removeQuietly } from '../../files.js'
import { type Header, headerText } from '../../vault-file.js'
import { sealFrame, type WalPosition } from '../frames.js'

/** "COFFERB1" 8 | format u16 | 0 u16 | header length u32 | header | backup id 16 | frames: n u32, ~n u32, sealed n */
export const MAGIC = Buffer.from('COFFERB1')
export const FORMAT = 1
export const FIXED = 16
export const ID = 16
/** First byte of a frame's plain bytes. */
export const FILE = 1
export const DATA = 2
export const END = 3
/** Bytes of a file in one frame. */
export const PIECE = 1024 * 1024

/** What the first frame is chained to, so that no other header fits. */
export function chainHeader(keys: EngineKeys, text: Uint8Array): Uint8Array {
  return keys.chain(text, 16)
}

export interface BackupContext {
  files: Files
  keys: EngineKeys
  random: RandomSource
}

export type BackupWriter = ReturnType<typeof createBackupWriter>

/** @throws CofferError `conflict` when there is something at `path`, `storage_failed` when it cannot be made. */
export function createBackupWriter(context: BackupContext, path: string, header: Header) {
  const file = openNew(context.files, path)
  const id = context.random.bytes(ID)
  const text = Buffer.from(headerText(header))
  const start = Buffer.alloc(FIXED)
  start.set(MAGIC)
  start.writeUInt16LE(FORMAT, 8)
  start.writeUInt32LE(text.length, 12)
  const head = Buffer.concat([start, text, id])
  let position: WalPosition = { frames: 0, end: head.length, tag: chainHeader(context.keys, text) }
  let copied = 0
  try {
    context.files.write(file, head, 0)
  } catch (error) {
    abandon()
    throw error
  }

  return { copy, finish, abandon }

  /** Copies a file in pieces and yields the length of each. A file that is gone is left out. */
  function* copy(directory: string, name: string): Generator<number, void> {
    const { files } = context
    const file = files.open(`${directory}/${name}`, 'read')
    if (file === undefined) return
    try {
      copied++
      append(FILE, Buffer.from(name))
      const size = files.size(file)
      for (let at = 0; at < size; at += PIECE) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE, size - at))
        files.read(file, piece, at)
        append(DATA, piece)
        yield piece.length
      }
    } finally {
      files.close(file)
    }
  }

  /** Ends and syncs the backup. Returns its length in bytes. */
  function finish(): number {
    const count = Buffer.alloc(4)
    count.writeUInt32LE(copied)
    append(END, count)
    context.files.sync(file)
    context.files.close(file)
    return position.end
  }

  function abandon(): void {
    context.files.close(file)
    removeQuietly(context.files, path)
  }

  function append(kind: number, bytes: Uint8Array): void {
    const plain = Buffer.allocUnsafe(1 + bytes.length)
    plain[0] = kind
    plain.set(bytes, 1)
    const frame = sealFrame(context.keys.wal, plain, id, position)
    context.files.write(file, frame.bytes, position.end)
    position = frame.position
  }
}

function openNew(files: Files, path: string): number {
  if (files.stat(path) !== undefined) throw conflict(`There is a file ${path} already. Choose another name.`)
  const file = files.open(path, 'create')
  if (file !== undefined) return file
  throw new CofferError('storage_failed', `Cannot create ${path}: its directory is missing. Create it first.`)
}
