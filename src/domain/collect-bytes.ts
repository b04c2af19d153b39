/** Reading a stream of bytes to its end, up to a limit. */

/** All bytes of `chunks`; undefined, and the stream is left, as soon as they are more than `most`. */
export async function collectBytes(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, most: number) {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of chunks) {
    length += part.length
    if (length > most) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts)
}
