/** Frames read back as they were written; what is cut short is refused. */
import t from 'tap'
import {
  type Change,
  decodeFrame,
  encodeFrame,
  INSERT,
  REMOVE,
  tombstone,
} from '../../src/storage/lsm/row-change.js'

const fill = (byte: number, length: number) => new Uint8Array(length).fill(byte)

t.test('a frame', (t) => {
  const numbers = { seq: 5, created: 0x010203040506, modified: 7, expires: 8 }
  const row = { kind: 3, tenant: 0x0102, id: fill(0xaa, 16), rev: 9, ...numbers }
  const changes: Change[] = [
    { kind: INSERT, row: { ...row, keys: fill(0xbb, 16), sealed: fill(0xcc, 5) } },
    { kind: REMOVE, row: tombstone(3, 1, fill(0x11, 16), 10) },
  ]
  const plain = encodeFrame(changes, 0x1234)
  t.strictSame(encodeFrame(decodeFrame(plain).changes, 0x1234), plain, 'reads back as it was')
  for (let cut = 0; cut < plain.length; cut++) {
    t.throws(() => decodeFrame(plain.subarray(0, cut)), { code: 'vault_damaged' }, `cut at ${cut}`)
  }
  t.end()
})
