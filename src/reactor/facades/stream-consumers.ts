type Chunks = AsyncIterable<unknown>

async function buffer(chunks: Chunks): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const chunk of chunks)
    all.push(typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk as Uint8Array))
  return Buffer.concat(all)
}

const text = async (chunks: Chunks) => new TextDecoder().decode(await buffer(chunks))

export default {
  buffer,
  text,
  arrayBuffer: async (chunks: Chunks) => new Uint8Array(await buffer(chunks)).buffer,
  blob: async (chunks: Chunks) => new Blob([new Uint8Array(await buffer(chunks))]),
  json: async (chunks: Chunks) => JSON.parse(await text(chunks)) as unknown,
}
