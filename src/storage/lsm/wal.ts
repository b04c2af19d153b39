/**
 * The write-ahead log ("log" in this file). The file `journal-*` contains the frames. The file `head-*` contains the
 * position up to which the frames were acknowledged. Both files exist before `state` lists the log.
 */
import type { Cipher } from '../../crypto/ports.js'
import { type CofferError, damaged } from '../../errors.js'
import { asBuffer, fromBase64, isEqual, toBase64, toHex } from '../bytes.js'
import { openPart, readWhole, removeQuietly } from '../files.js'
import { decodeFrame, FRAME_HEAD, type Frame } from '../rows/frame.js'
import type { LsmOptions } from './context.js'

/**
 * The most bytes of a sealed frame: nonce 24, ciphertext, tag 16. A log is flushed long before its size reaches this
 * limit.
 */
export const FRAME_LIMIT = 512 * 1024 * 1024
/** The bytes that a seal adds to the plain bytes: nonce and tag. */
export const SEAL_BYTES = 40
/** The two words before a sealed frame: its length, and the complement of its length. */
export const LENGTH_WORDS = 8
const MIN_FRAME = LENGTH_WORDS + SEAL_BYTES + FRAME_HEAD

export interface WalPosition {
  frames: number
  end: number
  /** The tag of the last frame. The next frame is chained to this tag. */
  tag: Uint8Array
}

/** Associated data of a sealed frame: id of the log or backup ‖ frame number u48 ‖ previous tag. */
function associateFrame(id: Uint8Array, number: number, previous: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(38)
  bytes.set(id)
  bytes.writeUIntLE(number, 16, 6)
  bytes.set(previous, 22)
  return bytes
}

export function sealFrame(cipher: Cipher, plain: Uint8Array, id: Uint8Array, position: WalPosition) {
  const { frames, end, tag } = position
  const sealed = cipher.seal(plain, associateFrame(id, frames, tag))
  const bytes = Buffer.allocUnsafe(LENGTH_WORDS + sealed.length)
  bytes.writeUInt32LE(sealed.length, 0)
  bytes.writeUInt32LE(~sealed.length >>> 0, 4)
  bytes.set(sealed, LENGTH_WORDS)
  return { bytes, position: positionAfter(sealed, frames, end) }
}

function positionAfter(sealed: Uint8Array, frames: number, end: number): WalPosition {
  // The tag is copied, because a view would keep all bytes of the frame in memory.
  const tag = Uint8Array.from(sealed.subarray(sealed.length - 16))
  return { frames: frames + 1, end: end + LENGTH_WORDS + sealed.length, tag }
}

/** Returns undefined if the length words of the frame disagree, or if the frame reaches beyond the end. */
function frameAt(bytes: Buffer, at: number): Buffer | undefined {
  if (at + LENGTH_WORDS > bytes.length) return undefined
  const length = bytes.readUInt32LE(at)
  if (~length >>> 0 !== bytes.readUInt32LE(at + 4)) return undefined
  const start = at + LENGTH_WORDS
  if (length <= SEAL_BYTES || length > FRAME_LIMIT || start + length > bytes.length) return undefined
  return bytes.subarray(start, start + length)
}

export function openFrame(cipher: Cipher, bytes: Buffer, id: Uint8Array, { frames, end, tag }: WalPosition) {
  const sealed = frameAt(bytes, end)
  const plain = sealed && cipher.open(sealed, associateFrame(id, frames, tag))
  return plain && { plain, position: positionAfter(sealed!, frames, end) }
}

/**
 * Finds the first intact frame after a broken frame. To open a frame, its number and the tag of the previous frame are
 * necessary. The tag is in the bytes before the frame. The number is unknown, so the function tries every number that
 * is possible.
 */
function findFrame(cipher: Cipher, bytes: Buffer, id: Uint8Array, { frames, end }: WalPosition) {
  for (let at = end + 16; at + MIN_FRAME <= bytes.length; at++) {
    const sealed = frameAt(bytes, at)
    if (sealed === undefined) continue
    const tag = Uint8Array.from(bytes.subarray(at - 16, at))
    const most = frames + 1 + Math.floor((at - end) / MIN_FRAME)
    for (let number = frames + 1; number <= most; number++) {
      if (cipher.open(sealed, associateFrame(id, number, tag)) !== undefined)
        return { frames: number, end: at, tag }
    }
  }
  return undefined
}

/**
 * A log is flushed long before its size reaches this limit. A larger file is refused without being read.
 */
export const WAL_LIMIT = 1024 * 1024 * 1024
/** The first log of a vault is chained to this tag. */
export const NO_TAG = new Uint8Array(16)
/** frames u48 | end u48 | last tag 16; sealed with the log's id as associated data */
const HEAD_PLAIN = 28

export interface WalRef {
  id: string
  /** The tag to which the first frame is chained, in base64. */
  previous: string
}

export function walPath({ directory }: LsmOptions, id: string): string {
  return `${directory}/journal-${id}`
}

function headPath({ directory }: LsmOptions, id: string): string {
  return `${directory}/head-${id}`
}

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

  constructor(context: LsmOptions, ref: WalRef, open: readonly number[], position: WalPosition) {
    this.id = ref.id
    this.previous = ref.previous
    this.#context = context
    this.#id = Buffer.from(ref.id, 'hex')
    this.#file = open[0]!
    this.#head = open[1]!
    this.position = position
  }

  /** Does not sync. @throws CofferError `storage_failed`, after which the caller must truncate the log */
  append(plain: Uint8Array): void {
    const { bytes, position } = sealFrame(this.#context.keys.wal, plain, this.#id, this.position)
    this.#context.files.write(this.#file, bytes, this.position.end)
    this.position = position
  }

  sync(): void {
    this.#context.files.syncData(this.#file)
  }

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

  /** Writes the current position to the head, without a sync. */
  acknowledge(): void {
    this.#context.files.write(this.#head, sealHead(this.#context, this.#id, this.position), 0)
  }

  close(): void {
    this.#context.files.close(this.#file)
    this.#context.files.close(this.#head)
  }
}

/** The head has a fixed length and fits into a sector, so a crash leaves the old head or the new head. */
function sealHead({ keys }: LsmOptions, id: Uint8Array, { frames, end, tag }: WalPosition): Uint8Array {
  const plain = Buffer.allocUnsafe(HEAD_PLAIN)
  plain.writeUIntLE(frames, 0, 6)
  plain.writeUIntLE(end, 6, 6)
  plain.set(tag, 12)
  return keys.head.seal(plain, id)
}

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

export interface WalContents {
  frames: Frame[]
  /** The position after the last intact frame before the first broken frame. */
  intact: WalPosition
  acknowledged: WalPosition | undefined
  torn: number
  /** The damage of the log. A torn tail is not damage, because a crash may leave a torn tail. */
  problem: CofferError | undefined
}

/**
 * A broken last frame that was not acknowledged is a torn tail, and no damage. @throws CofferError `vault_damaged` if
 * the file is missing, is not a file, is larger than {@link WAL_LIMIT} or contains a malformed frame
 */
export function readWal(context: LsmOptions, ref: WalRef): WalContents {
  const path = walPath(context, ref.id)
  const file = readWhole(context.files, path, WAL_LIMIT)
  if (file === undefined) throw damaged(`${path} is missing`)
  const { wal: cipher } = context.keys
  const [bytes, id, acknowledged] = [asBuffer(file), Buffer.from(ref.id, 'hex'), readHead(context, ref.id)]
  const isAcknowledged = ({ frames, end, tag }: WalPosition) =>
    acknowledged?.end === end && acknowledged.frames === frames && isEqual(acknowledged.tag, tag)
  const frames: Frame[] = []
  let intact: WalPosition = { frames: 0, end: 0, tag: fromBase64(ref.previous) }
  let hasAcknowledged = isAcknowledged(intact)
  let hasGap = false
  for (let at: WalPosition | undefined = intact; at !== undefined && at.end < bytes.length; ) {
    const next = openFrame(cipher, bytes, id, at)
    at = next?.position ?? findFrame(cipher, bytes, id, at)
    hasGap ||= next === undefined
    if (next !== undefined) frames.push(decodeFrame(next.plain))
    if (next === undefined || hasGap) continue
    intact = next.position
    hasAcknowledged ||= isAcknowledged(intact)
  }
  let problem: CofferError | undefined
  if (acknowledged === undefined)
    problem = damaged(
      `${headPath(context, ref.id)} is missing, is not a file or does not open, so it is unknown whether changes at the end of the ` +
        'write-ahead log are missing',
    )
  else if (!hasAcknowledged) problem = damaged(`${path} has a broken frame that was acknowledged`)
  else if (frames.length > intact.frames)
    problem = damaged(`${path} has a broken frame before an intact frame`)
  return { frames, intact, acknowledged, torn: bytes.length - intact.end, problem }
}

function readHead(context: LsmOptions, id: string): WalPosition | undefined {
  const path = headPath(context, id)
  const stat = context.files.stat(path)
  // A head that is not a file, or that is too large, counts as missing, and the caller still reads the log.
  if (stat !== undefined && (stat.kind !== 'file' || stat.size > HEAD_PLAIN + SEAL_BYTES)) return undefined
  const sealed = readWhole(context.files, path, HEAD_PLAIN + SEAL_BYTES)
  const opened =
    sealed?.length === HEAD_PLAIN + SEAL_BYTES
      ? context.keys.head.open(sealed, Buffer.from(id, 'hex'))
      : undefined
  if (opened === undefined) return undefined
  const plain = asBuffer(opened)
  return { frames: plain.readUIntLE(0, 6), end: plain.readUIntLE(6, 6), tag: plain.subarray(12) }
}

export function openWal(context: LsmOptions, ref: WalRef, { intact }: WalContents): Wal {
  const paths = [walPath(context, ref.id), headPath(context, ref.id)]
  const open = paths.map((path) => {
    const file = openPart(context.files, path, 'write')
    if (file === undefined) throw damaged(`${path} is missing`)
    return file
  })
  return new Wal(context, ref, open, intact)
}
