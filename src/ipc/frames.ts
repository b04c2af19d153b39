/**
 * A frame is a length (big-endian u32), then JSON without line breaks, and optionally a line break and a body.
 */
import { Buffer } from 'node:buffer'

const PREFIX_BYTES = 4

export function encodeFrame(message: unknown, body?: Uint8Array): Buffer {
  const text = JSON.stringify(message) + (body === undefined ? '' : '\n')
  const bytes = Buffer.byteLength(text) + (body?.length ?? 0)
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + bytes)
  frame.writeUInt32BE(bytes)
  frame.set(body ?? [], PREFIX_BYTES + frame.write(text, PREFIX_BYTES))
  return frame
}

export function splitFrame(frame: Buffer): [text: Buffer, body?: Buffer] {
  const end = frame.indexOf('\n')
  return end < 0 ? [frame] : [frame.subarray(0, end), frame.subarray(end + 1)]
}

export class FrameReader {
  #chunks: Buffer[] = []
  #bytes = 0

  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  /**
   * Returns the next frame. Returns undefined while the frame is incomplete. If the frame is too long, returns an empty
   * buffer, which is never JSON.
   */
  next(maxBytes: number): Buffer | undefined {
    if (this.#bytes < PREFIX_BYTES) return undefined
    if (this.#chunks[0]!.length < PREFIX_BYTES) this.#join()
    const end = PREFIX_BYTES + this.#chunks[0]!.readUInt32BE()
    if (end > PREFIX_BYTES + maxBytes) return Buffer.alloc(0)
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
