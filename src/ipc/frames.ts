/** Messages between processes as length-prefixed frames: a big-endian u32, then that many bytes: JSON, or a body as it is. */
import { Buffer } from 'node:buffer'

const PREFIX_BYTES = 4

export function encodeFrame(message: unknown): Buffer {
  const text = JSON.stringify(message)
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + Buffer.byteLength(text))
  frame.writeUInt32BE(frame.length - PREFIX_BYTES)
  frame.write(text, PREFIX_BYTES)
  return frame
}

/** The prefix of a frame of so many bytes. */
export function encodePrefix(length: number): Buffer {
  const prefix = Buffer.allocUnsafe(PREFIX_BYTES)
  prefix.writeUInt32BE(length)
  return prefix
}

/** Puts frames together from the chunks of a stream. */
export class FrameReader {
  #chunks: Buffer[] = []
  #bytes = 0

  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  /** The next frame; undefined while it is incomplete, and empty, hence no JSON, when it is too long. */
  next(mostBytes: number): Buffer | undefined {
    if (this.#bytes < PREFIX_BYTES) return undefined
    if (this.#chunks[0]!.length < PREFIX_BYTES) this.#join()
    const end = PREFIX_BYTES + this.#chunks[0]!.readUInt32BE()
    if (end > PREFIX_BYTES + mostBytes) return Buffer.alloc(0)
    if (this.#bytes < end) return undefined
    const bytes = this.#join()
    this.#chunks = [bytes.subarray(end)]
    this.#bytes -= end
    return bytes.subarray(PREFIX_BYTES, end)
  }

  #join(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0]!
  }
}
