import fc from 'fast-check'
import t from 'tap'
import { CHUNK_BYTES, splitIntoChunks } from '../../src/domain/document/chunks.js'
import { checkContentType } from '../../src/domain/document/content-type.js'

t.test(
  'all chunks except the last have the full size, and the chunks together are the content',
  async (t) => {
    const sizes = fc.array(fc.integer({ min: 0, max: 2 * CHUNK_BYTES }), { maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(sizes, async (sizes) => {
        let next = 0
        const parts = sizes.map((size) => new Uint8Array(size).map(() => next++ % 251))
        async function* source() {
          yield* parts
        }
        const found: Buffer[] = []
        const ends: boolean[] = []
        for await (const { bytes, isLast } of splitIntoChunks(source())) {
          found.push(Buffer.from(bytes))
          ends.push(isLast)
        }
        t.ok(Buffer.concat(found).equals(Buffer.concat(parts)))
        t.ok(found.slice(0, -1).every(({ length }) => length === CHUNK_BYTES))
        t.strictSame(ends, [...found.slice(1).map(() => false), true])
        t.ok(found.at(-1)!.length > 0 || found.length === 1, 'only empty content has an empty chunk')
      }),
      { numRuns: 50, examples: [[[]], [[0]], [[CHUNK_BYTES]], [[CHUNK_BYTES, 1]], [[1, 2 * CHUNK_BYTES]]] },
    )
  },
)

t.test('a content type is a media type that can be a header', async (t) => {
  for (const text of [
    'text/plain',
    'image/svg+xml',
    'text/plain; charset=utf-8',
    'text/plain;charset="utf-8"; a=b',
    `a/${'b'.repeat(253)}`,
  ])
    t.equal(checkContentType(text), text)
  for (const text of [
    '',
    'text',
    'text/',
    '/plain',
    'text/plain\r\nx-a: b',
    'text/plain\n',
    'text/pl ain',
    'text/plain; charset',
    'text/plain; a="b\r\nc"',
    'text/é',
    'text/plain, text/html',
    `a/${'b'.repeat(254)}`,
  ])
    t.throws(() => checkContentType(text), { code: 'validation' }, JSON.stringify(text))
})
