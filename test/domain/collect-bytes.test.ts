import { Readable } from 'node:stream'
import t from 'tap'
import { collectBytes } from '../../src/domain/proxy/collect-bytes.js'

t.test('bytes are collected up to the limit, and more than that not read to the end', async (t) => {
  const pieces = [Buffer.from('ab'), Buffer.from('c'), Buffer.from('d')]
  const read: string[] = []
  async function* give() {
    for (const piece of pieces) {
      read.push(piece.toString())
      yield piece
    }
  }
  t.equal((await collectBytes(give(), 4))?.toString(), 'abcd')
  t.equal((await collectBytes([], 0))?.length, 0)
  read.length = 0
  t.equal(await collectBytes(give(), 2), undefined)
  t.same(read, ['ab', 'c'])
  const stream = Readable.from(pieces)
  t.equal(await collectBytes(stream, 3), undefined)
  t.ok(stream.destroyed)
  const broken = Readable.from(pieces)
  broken.destroy(new Error('gone'))
  await t.rejects(collectBytes(broken, 9), { message: 'gone' })
})
