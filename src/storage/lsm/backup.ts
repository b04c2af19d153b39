/**
 * A whole vault in one file: its header in the clear (its slots open the rest), then sealed frames, each chained to
 * the one before, so that nothing can be left out, swapped or cut. Knows the file, not who may see the vault.
 */

import type { EngineKeys, RandomSource } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { type Files, removeQuietly } from '../files.js'
import { type Header, headerText } from '../vault-file.js'
import { associateFrame } from './frames.js'

/** "COFFERB1" 8 | format u16 | 0 u16 | header length u32 | header | backup id 16 | frames: n u32, ~n u32, sealed n */
export const MAGIC = Buffer.from('COFFERB1')
export const FORMAT = 1
export const FIXED = 16
export const ID = 16
/** First byte of a frame's plain bytes. */
export const FILE = 1
export const DATA = 2
export const END = 3
/** Plain bytes of a file that one frame takes. */
export const PIECE = 1024 * 1024

/** The first frame chains to the header, so that another header does not fit. */
export function chainHeader(keys: EngineKeys, text: Uint8Array): Uint8Array {
  return keys.chain(text, 16)
}

export interface BackupContext {
  files: Files
  keys: EngineKeys
  random: RandomSource
}

/** Writes a backup from front to back. */
export class BackupWriter {
  readonly #context: BackupContext
  readonly #path: string
  readonly #file: number
  readonly #id: Uint8Array
  #previous: Uint8Array
  #position = 0
  #frames = 0
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
    try {
      for (const bytes of [start, text, this.#id]) this.#write(bytes)
    } catch (error) {
      this.abandon()
      throw error
    }
    this.#previous = chainHeader(context.keys, text)
  }

  /** What follows belongs to the file of this name, relative to the vault's directory. */
  begin(name: string): void {
    this.#count++
    this.#frame(FILE, Buffer.from(name))
  }

  /** At most {@link PIECE} bytes. */
  add(bytes: Uint8Array): void {
    this.#frame(DATA, bytes)
  }

  /** Copies the file `name` of `directory` in pieces; yields the length of each. One that is gone by now is left out. */
  *copy(directory: string, name: string): Generator<number, void> {
    const { files } = this.#context
    const file = files.open(`${directory}/${name}`, 'read')
    if (file === undefined) return
    try {
      this.begin(name)
      const size = files.size(file)
      for (let at = 0; at < size; at += PIECE) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE, size - at))
        files.read(file, piece, at)
        this.add(piece)
        yield piece.length
      }
    } finally {
      files.close(file)
    }
  }

  /** The backup is whole and safe when it returns. */
  finish(): number {
    const count = Buffer.alloc(4)
    count.writeUInt32LE(this.#count)
    this.#frame(END, count)
    this.#context.files.sync(this.#file)
    this.#context.files.close(this.#file)
    return this.#position
  }

  abandon(): void {
    this.#context.files.close(this.#file)
    removeQuietly(this.#context.files, this.#path)
  }

  #frame(kind: number, bytes: Uint8Array): void {
    const plain = Buffer.allocUnsafe(1 + bytes.length)
    plain[0] = kind
    plain.set(bytes, 1)
    const sealed = this.#context.keys.wal.seal(
      plain,
      associateFrame(this.#id, this.#frames++, this.#previous),
    )
    const words = Buffer.alloc(8)
    words.writeUInt32LE(sealed.length, 0)
    words.writeUInt32LE(~sealed.length >>> 0, 4)
    this.#write(words)
    this.#write(sealed)
    this.#previous = sealed.slice(sealed.length - 16)
  }

  #write(bytes: Uint8Array): void {
    this.#context.files.write(this.#file, bytes, this.#position)
    this.#position += bytes.length
  }
}
