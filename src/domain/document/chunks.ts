/**
 * The size of each stored chunk of a document, except the last one. Small chunks keep the memory of an upload small:
 * while a chunk is sealed and stored, memory has about ten copies of the chunk.
 */
export const CHUNK_BYTES = 64 * 1024

export interface Chunk {
  bytes: Uint8Array
  isLast: boolean
}

/**
 * Divides bytes into chunks of {@link CHUNK_BYTES}. Only the last chunk may be smaller, and a chunk is empty only if
 * the source is empty. The next iteration overwrites the bytes of the previous chunk.
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
