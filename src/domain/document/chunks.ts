/**
 * The size of stored chunks, except the last one. The size is small, because memory holds about ten copies of each
 * chunk during an upload.
 */
export const CHUNK_BYTES = 64 * 1024

export interface Chunk {
  bytes: Uint8Array
  isLast: boolean
}

/**
 * Only the last chunk can be smaller than {@link CHUNK_BYTES}. An empty source gives one empty chunk. Each iteration
 * overwrites the bytes of the previous chunk.
 */
export async function* splitIntoChunks(source: AsyncIterable<Uint8Array>): AsyncGenerator<Chunk> {
  const held = new Uint8Array(CHUNK_BYTES)
  let length = 0
  try {
    for await (const part of source) {
      for (let at = 0; at < part.length; ) {
        if (length === CHUNK_BYTES) {
          yield { bytes: held, isLast: false }
          length = 0
        }
        const taken = part.subarray(at, at + CHUNK_BYTES - length)
        held.set(taken, length)
        length += taken.length
        at += taken.length
      }
    }
    yield { bytes: held.subarray(0, length), isLast: true }
  } finally {
    held.fill(0)
  }
}
