/** Frames of a write-ahead log: finds them in its bytes, and opens them by what they are chained to. */
import type { Cipher } from '../../crypto/ports.js'
import { decodeFrame, FRAME_HEAD, type Frame } from './sstable/row-change.js'

/** "COFFERJ1" 8 | format u16 | 0 u16 | log id 16 | vault id 16 | 0 … */
export const WAL_HEADER = 64
/** Most bytes of a frame after its length words: nonce 24, ciphertext, tag 16. */
export const FRAME_LIMIT = 4 * 1024 * 1024
/** Bytes a sealed frame has beyond its plain ones. */
export const SEAL_BYTES = 40
const LENGTH_WORDS = 8
const LEAST_FRAME = LENGTH_WORDS + SEAL_BYTES + FRAME_HEAD

export interface WalPosition {
  frames: number
  /** Offset of the first byte after the last frame. */
  end: number
  /** The last frame's tag, which the next one is chained to. */
  tag: Uint8Array
}

/** Associated data of a sealed frame: id of the log or backup ‖ frame number u48 ‖ previous tag. */
export function associateFrame(id: Uint8Array, number: number, previous: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(38)
  bytes.set(id)
  bytes.writeUIntLE(number, 16, 6)
  bytes.set(previous, 22)
  return bytes
}

/** The bytes of the frame that follows `position`, its length words before it, and the position after it. */
export function sealFrame(
  cipher: Cipher,
  plain: Uint8Array,
  id: Uint8Array,
  { frames, end, tag }: WalPosition,
) {
  const sealed = cipher.seal(plain, associateFrame(id, frames, tag))
  const bytes = Buffer.allocUnsafe(LENGTH_WORDS + sealed.length)
  bytes.writeUInt32LE(sealed.length, 0)
  bytes.writeUInt32LE(~sealed.length >>> 0, 4)
  bytes.set(sealed, LENGTH_WORDS)
  const position: WalPosition = {
    frames: frames + 1,
    end: end + bytes.length,
    tag: sealed.slice(sealed.length - 16),
  }
  return { bytes, position }
}

/** The sealed frame at an offset; undefined when its length words disagree or reach past the end. */
function frameAt(bytes: Buffer, at: number): Buffer | undefined {
  if (at + LENGTH_WORDS > bytes.length) return undefined
  const length = bytes.readUInt32LE(at)
  if (~length >>> 0 !== bytes.readUInt32LE(at + 4)) return undefined
  const start = at + LENGTH_WORDS
  if (length <= SEAL_BYTES || length > FRAME_LIMIT || start + length > bytes.length) return undefined
  return bytes.subarray(start, start + length)
}

/** The frame at `position` and where the next one begins; undefined when it does not open. */
export function openFrame(cipher: Cipher, bytes: Buffer, id: Uint8Array, { frames, end, tag }: WalPosition) {
  const sealed = frameAt(bytes, end)
  const plain = sealed === undefined ? undefined : cipher.open(sealed, associateFrame(id, frames, tag))
  if (sealed === undefined || plain === undefined) return undefined
  const position: WalPosition = {
    frames: frames + 1,
    end: end + LENGTH_WORDS + sealed.length,
    // A copy, because a view would keep the bytes of the whole log in memory.
    tag: Uint8Array.from(sealed.subarray(sealed.length - 16)),
  }
  return { frame: decodeFrame(plain), position }
}

/**
 * Finds the first frame that opens after the broken one at `position`. A frame is chained to the 16 bytes before it,
 * and the bytes between limit its number.
 */
export function findFrame(cipher: Cipher, bytes: Buffer, id: Uint8Array, { frames, end }: WalPosition) {
  for (let at = end + 16; at + LEAST_FRAME <= bytes.length; at++) {
    const sealed = frameAt(bytes, at)
    if (sealed === undefined) continue
    const tag = Uint8Array.from(bytes.subarray(at - 16, at))
    const most = frames + 1 + Math.floor((at - end) / LEAST_FRAME)
    for (let number = frames + 1; number <= most; number++) {
      if (cipher.open(sealed, associateFrame(id, number, tag)) !== undefined)
        return { frames: number, end: at, tag }
    }
  }
  return undefined
}

export interface ReadableFrames {
  frames: Frame[]
  /** Bytes that are in no frame that opens, and the number of frames that open before them. */
  gaps: { at: number; bytes: number; before: number }[]
}

export function readFrames(
  cipher: Cipher,
  bytes: Buffer,
  id: Uint8Array,
  position: WalPosition,
): ReadableFrames {
  const found: ReadableFrames = { frames: [], gaps: [] }
  for (let at: WalPosition | undefined = position; at !== undefined && at.end < bytes.length; ) {
    const next = openFrame(cipher, bytes, id, at)
    if (next !== undefined) found.frames.push(next.frame)
    const from: number = at.end
    at = next?.position ?? findFrame(cipher, bytes, id, at)
    if (next === undefined)
      found.gaps.push({ at: from, bytes: (at?.end ?? bytes.length) - from, before: found.frames.length })
  }
  return found
}
