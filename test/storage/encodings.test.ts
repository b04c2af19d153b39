/** Frames and lists of row numbers read back as they were written; what is cut short is refused. */
import t from 'tap'
import { packRows, unpackRows } from '../../src/storage/bytes.js'
import {
  type Change,
  decodeFrame,
  encodeFrame,
  INSERT,
  nameRow,
  REMOVE,
} from '../../src/storage/lsm/row-change.js'

const fill = (byte: number, length: number) => new Uint8Array(length).fill(byte)

t.test('a frame', (t) => {
  const numbers = { seq: 5, created: 0x010203040506, modified: 7, expires: 8 }
  const row = { kind: 3, tenant: 0x0102, id: fill(0xaa, 16), rev: 9, ...numbers }
  const changes: Change[] = [
    { kind: INSERT, row: { ...row, keys: fill(0xbb, 16), sealed: fill(0xcc, 5) } },
    { kind: REMOVE, row: nameRow(3, 1, fill(0x11, 16), 10) },
  ]
  const plain = encodeFrame(changes, 0x1234)
  const frame = decodeFrame(plain)
  t.match(frame, { rev: 9, time: 0x1234, changes: { length: 2 } })
  const { seq, created, modified, expires } = frame.changes[0]!.row
  t.strictSame({ seq, created, modified, expires }, numbers)
  t.strictSame(encodeFrame(frame.changes, frame.time), plain, 'reads back as it was')
  t.strictSame(
    frame.changes.map(({ row }) => row.rev),
    [9, 10],
  )
  for (let cut = 0; cut < plain.length; cut++) {
    t.throws(() => decodeFrame(plain.subarray(0, cut)), { code: 'vault_damaged' }, `cut at ${cut}`)
  }
  t.end()
})

t.test('lists of rows', (t) => {
  for (const rows of [[], [0], [0, 1, 2], [127, 128, 255, 256, 16_511, 16_512], [262_143], [4_294_967_295]])
    t.strictSame([...unpackRows(packRows(rows))], rows)
  t.equal(packRows([0, 1, 200]), '0,1,199')
  t.end()
})
