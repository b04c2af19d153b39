/** Documents on a server with a control plane: clients of the library, faults, forks and resets. */
import t from 'tap'
import { createClient, startServer } from '../../src/index.js'

const KIB64 = 64 * 1024
const bytes = new Uint8Array(3 * KIB64).map((_, at) => at % 251)

async function* pieces() {
  for (let at = 0; at < bytes.length; at += 10_000) yield bytes.subarray(at, at + 10_000)
}

async function collect(content: AsyncIterable<Uint8Array>) {
  const found: Uint8Array[] = []
  for await (const piece of content) found.push(piece)
  return Buffer.concat(found)
}

t.test('clients of the library send and get documents as streams', async (t) => {
  await using server = await startServer({})
  const { url, keys } = server
  const clients = { socket: createClient({ url, key: keys.private! }), 'no socket': server.as(keys.private!) }
  for (const [name, { documents }] of Object.entries(clients)) {
    for (const document of [bytes, pieces(), Buffer.from(bytes)]) {
      const metadata = { 'attribute 1': 'é' }
      const { id } = await documents.create({ document, content_type: 'image/png', metadata })
      t.match(await documents.get({ id }), { content_type: 'image/png', metadata })
      const content = await documents.data({ id })
      t.strictSame([content.type, content.size], ['image/png', bytes.length], name)
      t.ok((await collect(content)).equals(bytes))
      await documents.delete({ id })
      await t.rejects(documents.data({ id }), { code: 'not_found' })
    }
    const text = await documents.create({ document: '--coffer\r\né' })
    t.equal((await collect(await documents.data({ id: text.id }))).toString(), '--coffer\r\né')
    await t.rejects(documents.create({} as never), {
      code: 'validation',
      errors: { document: ['is required'] },
    })
    for (const wrong of [
      { document: 5 },
      { document: { upload: text.id } },
      { document: 'x', content_type: 'a\nb' },
    ])
      await t.rejects(documents.create(wrong as never), { code: 'validation' }, JSON.stringify(wrong))
    const failing = async function* () {
      yield bytes
      throw new Error('the source failed')
    }
    await t.rejects(documents.create({ document: failing() }))
  }
  const log = JSON.stringify(await server.control.requests.list())
  t.notMatch(log, /attribute|alert/, 'recorded requests have neither metadata nor content')
})

t.test(
  'a fault rule with a condition on the body does not stop an upload, and a fault can end a download early',
  async (t) => {
    await using server = await startServer({})
    const { documents } = server.as(server.keys.private!)
    await server.control.faults.set({
      rules: [{ path: '/documents', body: { 'metadata.a': 'b' }, kind: 'status', status: 503 }],
    })
    t.ok((await documents.create({ document: bytes })).id)
    await server.control.faults.set({ rules: [{ operation: 'document data', kind: 'cut', bytes: 100_000 }] })
    const { id } = await documents.create({ document: pieces() })
    await t.rejects(documents.data({ id }).then(collect))
  },
)

t.test('a fork has its own documents, and a reset removes documents and ends downloads', async (t) => {
  await using server = await startServer({})
  const { documents } = server.as(server.keys.private!)
  const { id } = await documents.create({ document: bytes })
  const fork = await server.control.fork()
  const own = fork.as(fork.keys.private!).documents
  const made = await own.create({ document: 'x' })
  await t.rejects(own.get({ id }), { code: 'not_found' })
  await t.rejects(documents.get({ id: made.id }), { code: 'not_found' })
  await fork.stop()
  const content = (await server.ask('document data', { id }))[Symbol.asyncIterator]()
  await content.next()
  await server.control.snapshots.create({ name: 'with a document' })
  await server.control.reset()
  await t.rejects(content.next())
  await t.rejects(documents.get({ id }), { code: 'not_found' })
  await server.control.snapshots.restore({ name: 'with a document' })
  t.ok((await collect(await documents.data({ id }))).equals(bytes))
})
