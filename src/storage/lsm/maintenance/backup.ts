/**
 * Writes a backup: a whole vault in one file, its header in the clear, because its key slots open the rest, then sealed
 * frames, each chained to the one before, so that nothing can be left out, swapped or cut off.
 */

import type { EngineKeys, RandomSource } from '../../../crypto/ports.js'
import { CofferError } from '../../../errors.js'
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

export class BackupWriter {
  readonly #context: BackupContext
  readonly #path: string
  readonly #file: number
  readonly #id: Uint8Array
  #position: WalPosition
  #count = 0

  /** @throws CofferError `conflict` when there is something at `path`, `storage_failed` when it cannot be made. */
  constructor(context: BackupContext, path: string, header: Header) {
    if (context.files.stat(path) !== undefined)
      throw new CofferError('conflict', `There is a file ${path} already. Choose another name.`)
    const file = context.files.open(path, 'create')
    if (file === undefined)
      throw new CofferError(
        'storage_failed',
        `Cannot create ${path}: its directory is missing. Create it first.`,
      )
    this.#context = context
    this.#path = path
    this.#file = file
    this.#id = context.random.bytes(ID)
    const text = Buffer.from(headerText(header))
    const start = Buffer.alloc(FIXED)
    start.set(MAGIC)
    start.writeUInt16LE(FORMAT, 8)
    start.writeUInt32LE(text.length, 12)
    const head = Buffer.concat([start, text, this.#id])
    this.#position = { frames: 0, end: head.length, tag: chainHeader(context.keys, text) }
    try {
      context.files.write(file, head, 0)
    } catch (error) {
      this.abandon()
      throw error
    }
  }

  /** Copies a file in pieces and yields the length of each. A file that is gone is left out. */
  *copy(directory: string, name: string): Generator<number, void> {
    const { files } = this.#context
    const file = files.open(`${directory}/${name}`, 'read')
    if (file === undefined) return
    try {
      this.#count++
      this.#frame(FILE, Buffer.from(name))
      const size = files.size(file)
      for (let at = 0; at < size; at += PIECE) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE, size - at))
        files.read(file, piece, at)
        this.#frame(DATA, piece)
        yield piece.length
      }
    } finally {
      files.close(file)
    }
  }

  /** Ends and syncs the backup. Returns its length in bytes. */
  finish(): number {
    const count = Buffer.alloc(4)
    count.writeUInt32LE(this.#count)
    this.#frame(END, count)
    this.#context.files.sync(this.#file)
    this.#context.files.close(this.#file)
    return this.#position.end
  }

  abandon(): void {
    this.#context.files.close(this.#file)
    removeQuietly(this.#context.files, this.#path)
  }

  #frame(kind: number, bytes: Uint8Array): void {
    const plain = Buffer.allocUnsafe(1 + bytes.length)
    plain[0] = kind
    plain.set(bytes, 1)
    const frame = sealFrame(this.#context.keys.wal, plain, this.#id, this.#position)
    this.#context.files.write(this.#file, frame.bytes, this.#position.end)
    this.#position = frame.position
  }
}
