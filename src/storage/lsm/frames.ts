/** Frames of a write-ahead log: finds them in its bytes, and opens them by what they are chained to. */
import type { Cipher } from '../../crypto/ports.js'
import { isEqual } from '../bytes.js'
import { decodeFrame, FRAME_HEAD, type Frame } from './row-change.js'

/** Most bytes of a sealed frame: nonce 24, ciphertext, tag 16. A log is flushed when it is far shorter. */
export const FRAME_LIMIT = 512 * 1024 * 1024
/** Bytes a sealed frame has beyond its plain ones. */
export const SEAL_BYTES = 40
/** The length of a sealed frame, and its complement, before it. */
export const LENGTH_WORDS = 8
const LEAST_FRAME = LENGTH_WORDS + SEAL_BYTES + FRAME_HEAD

export interface WalPosition {
  frames: number
  /** Offset of the first byte after the last frame. */
  end: number
  /** The last frame's tag, which the next one is chained to. */
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

/** The bytes of the frame that follows `position`, its length words before it, and the position after it. */
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
  // A copy of the tag, because a view would keep all bytes in memory.
  const tag = Uint8Array.from(sealed.subarray(sealed.length - 16))
  return { frames: frames + 1, end: end + LENGTH_WORDS + sealed.length, tag }
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

/** The plain frame at `position` and where the next one begins; undefined when it does not open. */
export function openFrame(cipher: Cipher, bytes: Buffer, id: Uint8Array, { frames, end, tag }: WalPosition) {
  const sealed = frameAt(bytes, end)
  const plain = sealed && cipher.open(sealed, associateFrame(id, frames, tag))
  return plain && { plain, position: positionAfter(sealed!, frames, end) }
}

/** The first frame after a broken one: chained to the bytes before it; those between limit its number. */
function findFrame(cipher: Cipher, bytes: Buffer, id: Uint8Array, { frames, end }: WalPosition) {
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

export interface FoundFrames {
  frames: Frame[]
  /** The position after the frames before the first gap. */
  intact: WalPosition
  /** Whether these frames end where `acknowledged` says, or later. */
  hasAcknowledged: boolean
}

/** @param previous the tag that the first frame is chained to */
export function findFrames(
  cipher: Cipher,
  bytes: Buffer,
  { id, previous }: { id: Uint8Array; previous: Uint8Array },
  acknowledged: WalPosition | undefined,
): FoundFrames {
  const isAcknowledged = ({ frames, end, tag }: WalPosition) =>
    acknowledged?.end === end && acknowledged.frames === frames && isEqual(acknowledged.tag, tag)
  const intact: WalPosition = { frames: 0, end: 0, tag: previous }
  const found: FoundFrames = { frames: [], intact, hasAcknowledged: isAcknowledged(intact) }
  let hasGap = false
  for (let at: WalPosition | undefined = intact; at !== undefined && at.end < bytes.length; ) {
    const next = openFrame(cipher, bytes, id, at)
    at = next?.position ?? findFrame(cipher, bytes, id, at)
    hasGap ||= next === undefined
    if (next !== undefined) found.frames.push(decodeFrame(next.plain))
    if (next === undefined || hasGap) continue
    found.intact = next.position
    found.hasAcknowledged ||= isAcknowledged(next.position)
  }
  return found
}
