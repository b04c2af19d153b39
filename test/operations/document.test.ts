/** Documents: their content in chunks, interrupted uploads, deletion and damage. */
import t, { type Test } from 'tap'
import { CHUNK_BYTES } from '../../src/domain/document/chunks.js'
import type { DocumentChunkRecord } from '../../src/domain/records/document-record.js'
import { chunkId } from '../../src/operations/document/document.js'
import { readAll } from '../../src/storage/store.js'
import { openTestVault, setSetting } from '../support/test-vault.js'

const HOUR_MS = 60 * 60 * 1000

/** Three chunks, the last of which has one byte. */
const bytes = new Uint8Array(2 * CHUNK_BYTES + 1).map((_, at) => at % 251)

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { ask, app } = vault
  const { number: tenant } = await app.tenant()
  const create = async (content: unknown = bytes, more: object = {}) =>
    (await ask('document create', { document: content, ...more })).id
  const read = async (id: string) => {
    const pieces: Uint8Array[] = []
    for await (const piece of await ask('document data', { id })) pieces.push(piece)
    return Buffer.concat(pieces)
  }
  const change = (id: string, change: (record: DocumentChunkRecord) => DocumentChunkRecord) =>
    app.store.write(async (store) => {
      const record = await store.get('document_chunk', tenant, id)
      await store.replace('document_chunk', tenant, change(record!))
    })
  return {
    ...vault,
    create,
    read,
    change,
    tenant,
    chunks: () => readAll(app.store, 'document_chunk', tenant),
    records: () => readAll(app.store, 'document', tenant),
    append: (input: object) => ask('document append', { ...input }),
  }
}

async function* pieces(...parts: (Uint8Array | Error)[]) {
  for (const part of parts) {
    if (part instanceof Error) throw part
    yield part
  }
}

t.test(
  'the content of a document can be a text, bytes or an iterable, and is returned unchanged',
  async (t) => {
    const { create, read, ask, chunks } = await open(t)
    t.equal((await read(await create('é'))).toString(), 'é')
    t.ok((await read(await create())).equals(bytes))
    const parts = [bytes.subarray(0, 10), bytes.subarray(10, 100_000), bytes.subarray(100_000)]
    t.ok((await read(await create(pieces(...parts)))).equals(bytes))
    t.equal((await read(await create(''))).length, 0)
    t.equal((await chunks()).length, 1 + 3 + 3 + 1)
    const { type, size } = await ask('document data', { id: await create('ab', { content_type: 'a/b' }) })
    t.strictSame([type, size], ['a/b', 2])
  },
)

t.test('the stored records do not contain the content', async (t) => {
  const { create, chunks } = await open(t)
  const text = 'a passport number '.repeat(20)
  await create(text)
  const [{ sealed }] = (await chunks()) as [DocumentChunkRecord]
  t.notOk(Buffer.from(sealed, 'base64').toString('latin1').includes('passport'))
})

t.test('content, content type and metadata are checked before anything is stored', async (t) => {
  const { ask, records } = await open(t)
  for (const [input, path] of [
    [{}, 'document'],
    [{ document: 5 }, 'document'],
    [{ document: {} }, 'document'],
    [{ document: 'x', content_type: 'text/html\r\nset-cookie: a' }, 'content_type'],
    [{ document: 'x', metadata: { a: { b: 'c' } } }, 'metadata.a'],
    [{ document: 'x', metadata: { 'a\n': 'b' } }, 'metadata'],
    [{ document: 'x', metadata: { a: 'b'.repeat(2001) } }, 'metadata.a'],
  ] as const)
    await t.rejects(ask('document create', input), { code: 'validation', errors: { [path]: [String] } })
  await t.rejects(ask('document create', { document: { upload: 'unknown' } }), { code: 'not_found' })
  t.strictSame(await records(), [])
})

t.test(
  'a document may be as large as the setting allows, and a larger document leaves nothing behind',
  async (t) => {
    const { create, app, chunks, records } = await open(t)
    await setSetting(app, 'documents.limit_bytes', String(bytes.length))
    await create()
    await t.rejects(create(pieces(bytes, bytes.subarray(0, 1))), { code: 'too_large' })
    t.equal((await chunks()).length, 3)
    t.equal((await records()).length, 1)
    await t.rejects(setSetting(app, 'documents.limit_bytes', String(64 * 2 ** 20 + 1)), {
      code: 'validation',
    })
  },
)

t.test('an upload whose source fails leaves nothing behind', async (t) => {
  const { create, chunks, records } = await open(t)
  await t.rejects(create(pieces(bytes, bytes, new Error('the source failed'))), {
    message: 'the source failed',
  })
  t.strictSame(await chunks(), [])
  t.strictSame(await records(), [])
})

t.test(
  'an upload that was cut off is not visible, and is removed an hour after its last chunk',
  async (t) => {
    const { append, ask, clock, app, chunks, records } = await open(t)
    const { upload } = await append({ bytes: bytes.subarray(0, CHUNK_BYTES), is_last: false })
    for (let index = 0; index < 40; index++)
      await append({ upload, bytes: bytes.subarray(0, CHUNK_BYTES), is_last: false })
    for (const operation of ['document get', 'document data', 'document delete'])
      await t.rejects(ask(operation, { id: upload }), { code: 'not_found' })
    const left = await append({ bytes: new Uint8Array(CHUNK_BYTES), is_last: false })
    clock.now += HOUR_MS - 1
    await app.sweep()
    t.equal((await chunks()).length, 42, 'nothing is removed too early')
    await append({ upload: left.upload, bytes: new Uint8Array(1), is_last: true })
    clock.now += 1
    await t.rejects(append({ upload, bytes: new Uint8Array(1), is_last: true }), { code: 'not_found' })
    await app.sweep()
    t.equal((await chunks()).length, 2, 'more chunks than one unit of work removes')
    t.match(await records(), [{ id: left.upload, state: 'received' }])
    clock.now += HOUR_MS
    await app.sweep()
    t.strictSame(
      [await chunks(), await records()],
      [[], []],
      'a complete upload without a document is removed too',
    )
    const part = await append({ bytes: new Uint8Array(CHUNK_BYTES), is_last: false })
    await t.rejects(ask('document create', { document: part }), { code: 'not_found' })
    t.strictSame(await chunks(), [], 'an incomplete upload never becomes a document')
  },
)

t.test(
  'a chunk needs the size that an upload requires, and only the caller that began the upload can append it',
  async (t) => {
    const { append, askAs, createApplication, ask } = await open(t)
    for (const size of [CHUNK_BYTES + 1, CHUNK_BYTES - 1, 0])
      await t.rejects(append({ bytes: new Uint8Array(size), is_last: false }), { code: 'validation' })
    const permissions = ['documents:create', 'documents:read'] as const
    const [own, other] = [
      await createApplication('private', { permissions }),
      await createApplication('private', { permissions }),
    ]
    const { upload } = await askAs(own.key, 'document append', { bytes: 'aGk=', is_last: true })
    const more = { upload, bytes: '', is_last: true }
    await t.rejects(askAs(own.key, 'document append', more), { code: 'conflict' })
    await t.rejects(askAs(other.key, 'document append', more), { code: 'not_found' })
    await t.rejects(askAs(other.key, 'document create', { document: { upload } }), { code: 'not_found' })
    t.match(await askAs(other.key, 'document discard', { upload }), { is_done: true }, 'nothing to do')
    const { id } = await askAs(own.key, 'document create', { document: { upload } })
    t.equal(id, upload)
    await t.rejects(askAs(own.key, 'document create', { document: { upload } }), { code: 'not_found' })
    t.match(await ask('document get', { id }), { id }, 'the document stays')
  },
)

t.test('deleting a document removes its chunks and ends its download', async (t) => {
  const { create, ask, chunks, records } = await open(t)
  const long = await create(new Uint8Array(40 * CHUNK_BYTES))
  const kept = await create('kept')
  const download = (await ask('document data', { id: long }))[Symbol.asyncIterator]()
  t.equal((await download.next()).value.length, CHUNK_BYTES)
  await ask('document delete', { id: long })
  await t.rejects(download.next(), { code: 'not_found' })
  await t.rejects(ask('document delete', { id: long }), { code: 'not_found' })
  t.equal((await chunks()).length, 1)
  t.match(await records(), [{ id: kept }])
})

t.test('a deletion that was interrupted is completed by the sweep', async (t) => {
  const { create, ask, app, clock, tenant, chunks, records } = await open(t)
  const id = await create()
  await app.store.write(async (store) => {
    const record = { ...(await store.get('document', tenant, id))!, state: 'deleted' as const }
    await store.replace('document', tenant, record, { expires: clock.now + HOUR_MS })
  })
  await t.rejects(ask('document get', { id }), { code: 'not_found' })
  await t.rejects(ask('document discard', { upload: id }).then(() => ask('document get', { id })))
  t.equal((await chunks()).length, 3, 'a deletion is no upload')
  clock.now += HOUR_MS
  await app.sweep()
  t.strictSame([await chunks(), await records()], [[], []])
})

t.test('changed, exchanged and missing chunks are detected before any wrong byte is returned', async (t) => {
  const { create, ask, change, app, tenant, chunks } = await open(t)
  const faults: Record<string, (id: string, other: string) => Promise<unknown>> = {
    changed: (id) =>
      change(chunkId(id, 1), (chunk) => ({ ...chunk, sealed: chunk.sealed.replace(/^..../, 'AAAA') })),
    exchanged: async (id) => {
      const [, , second] = (await chunks()).filter(({ id: name }) => name.startsWith(id)).reverse()
      await change(chunkId(id, 1), (chunk) => ({ ...chunk, sealed: second!.sealed }))
    },
    'of another document': async (id, other) => {
      const found = (await chunks()).find(({ id: name }) => name === chunkId(other, 1))
      await change(chunkId(id, 1), (chunk) => ({ ...chunk, sealed: found!.sealed }))
    },
    missing: (id) => app.store.write((store) => store.remove('document_chunk', tenant, chunkId(id, 1))),
    'cut off': (id) =>
      app.store.write(async (store) => {
        const record = (await store.get('document', tenant, id))!
        await store.replace('document', tenant, { ...record, chunks: 2 })
      }),
  }
  for (const [name, fault] of Object.entries(faults)) {
    const [id, other] = [await create(), await create()]
    await fault(id, other)
    const download = (await ask('document data', { id }))[Symbol.asyncIterator]()
    t.equal((await download.next()).value.length, CHUNK_BYTES, name)
    await t.rejects(download.next(), { code: 'vault_damaged' }, name)
    t.match(await download.next(), { done: true })
    await ask('document delete', { id })
  }
  const id = await create('short')
  await change(chunkId(id, 0), (chunk) => ({ ...chunk, sealed: '' }))
  await t.rejects(ask('document data', { id }), { code: 'vault_damaged' }, 'the first chunk')
})

t.test('each operation on a document needs its own permission and writes its own log record', async (t) => {
  const { ask, askAs, createApplication, create, createTenant, app } = await open(t)
  const id = await create()
  const key = async (
    permission: 'documents:create' | 'documents:read' | 'documents:reveal' | 'documents:delete',
  ) => (await createApplication('private', { permissions: [permission] })).key
  const reader = await key('documents:read')
  t.match(await askAs(reader, 'document get', { id }), { id })
  await t.rejects(askAs(reader, 'document data', { id }), { code: 'forbidden' })
  const creator = await createApplication('public', { permissions: ['documents:create'] })
  const made = await askAs(creator.key, 'document create', { document: 'x' })
  t.equal(made.created_by, creator.id)
  await t.rejects(askAs(creator.key, 'document get', { id: made.id }), { code: 'forbidden' })
  await t.rejects(ask('app create', { name: 'p', type: 'public', permissions: ['documents:read'] }), {
    code: 'validation',
  })
  await askAs(await key('documents:reveal'), 'document data', { id })
  await askAs(await key('documents:delete'), 'document delete', { id })
  const { data } = await ask('log list', { entity_type: 'document', entity_id: id })
  t.strictSame(
    data.map(({ operation, message }) => [operation, message]),
    [
      ['delete', 'Document deleted'],
      ['read', 'Content of document retrieved'],
      ['read', 'Document retrieved'],
      ['create', 'Document created'],
    ],
  )
  await createTenant('other')
  for (const operation of ['document get', 'document data', 'document delete'])
    await t.rejects(ask(operation, { id: made.id }, 'other'), { code: 'not_found' })
  const refused = app.ask({
    operation: 'document data',
    input: { id: made.id },
    as: { reveal: false },
    noReveal: true,
  })
  await t.rejects(refused, { code: 'forbidden' })
})

t.test('the chunks of a tenant are removed with the tenant', async (t) => {
  const { ask, app, createTenant } = await open(t)
  await createTenant('other')
  const { number } = await app.tenant('other')
  await ask('document create', { document: bytes }, 'other')
  await ask('tenant delete', {}, 'other')
  await t.rejects(readAll(app.store, 'document_chunk', number), { code: 'not_found' })
})
