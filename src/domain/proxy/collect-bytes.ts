/** After this number of parts, the parts are joined, because even a part of one byte takes 400 bytes of memory. */
const MAX_PARTS = 1000

export class ByteCollector {
  length = 0
  readonly #joined: Uint8Array[] = []
  #latest: Uint8Array[] = []

  add(part: Uint8Array): void {
    this.length += part.length
    this.#latest.push(part)
    if (this.#latest.length < MAX_PARTS) return
    this.#joined.push(Buffer.concat(this.#latest))
    this.#latest = []
  }

  join(): Buffer {
    const [first, ...more] = [...this.#joined, ...this.#latest]
    if (first === undefined) return Buffer.alloc(0)
    if (more.length > 0) return Buffer.concat([first, ...more])
    return Buffer.from(first.buffer, first.byteOffset, first.byteLength)
  }
}

export async function collectBytes(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, most: number) {
  const bytes = new ByteCollector()
  for await (const part of chunks) {
    if (bytes.length + part.length > most) return undefined
    bytes.add(part)
  }
  return bytes.join()
}
