/** Messages between host and guest as length-prefixed frames: a little-endian u32, then UTF-8 JSON. Both sides use it. */
import { Buffer } from 'node:buffer'

const PREFIX_BYTES = 4

export function encodeFrame(message: unknown): Buffer {
  const text = JSON.stringify(message)
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + Buffer.byteLength(text))
  frame.writeUInt32LE(frame.length - PREFIX_BYTES)
  frame.write(text, PREFIX_BYTES)
  return frame
}

/** Puts frames together from chunks; holds at most one frame of `mostBytes`. */
export class FrameReader {
  readonly #mostBytes: number
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** The texts of all frames that `chunk` completes, or undefined once a frame claims to be too long. */
  push(chunk: Buffer): string[] | undefined {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    const texts: string[] = []
    for (;;) {
      if (this.#bytes < PREFIX_BYTES) return texts
      const length = this.#peekLength()
      if (length > this.#mostBytes) return undefined
      if (this.#bytes < PREFIX_BYTES + length) return texts
      const buffer = this.#join()
      texts.push(buffer.toString('utf8', PREFIX_BYTES, PREFIX_BYTES + length))
      this.#chunks = [buffer.subarray(PREFIX_BYTES + length)]
      this.#bytes -= PREFIX_BYTES + length
    }
  }

  #peekLength(): number {
    if (this.#chunks[0]!.length < PREFIX_BYTES) this.#join()
    return this.#chunks[0]!.readUInt32LE()
  }

  #join(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0]!
  }
}
