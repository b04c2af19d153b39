/** Collects all bytes of `chunks`. Stops reading and returns undefined if there are more than `most`. */
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
