import t from 'tap'
import type { Row } from '../../../../src/storage/engine.js'
import { createContext } from '../../../../src/storage/lsm/context.js'
import { RowReader } from '../../../../src/storage/lsm/sstable/row-reader.js'
import { finish, writeRows } from '../../../../src/storage/lsm/sstable/write-tables.js'
import { diskOptions } from '../../disk.js'
import { FakeFiles } from '../../fake-files.js'
import { digest } from '../../powers.js'

const ROWS = 1000
/** Records of very different lengths: some are larger than the largest piece that the reader reads at once. */
const lengthOf = (number: number) => (number % 250 === 249 ? 100_000 : number % 10 === 0 ? 2000 : 80)

function rowOf(number: number): Row {
  return {
    kind: 3,
    tenant: 1,
    id: digest(`id ${number}`, 16),
    seq: 10 + number,
    rev: number + 1,
    created: 1,
    modified: 0,
    expires: 0,
    keys: digest('all', 8),
    sealed: Buffer.alloc(lengthOf(number), number % 256),
  }
}

const files = new FakeFiles()
files.makeDirectory('/vault')
files.makeDirectory('/vault/segments')
const { sstable } = finish(
  writeRows(
    createContext(diskOptions(files)),
    Array.from({ length: ROWS }, (_, n) => rowOf(n)),
  ),
)[0]!
const ascending = Array.from({ length: ROWS }, (_, number) => number)
const orders: [title: string, rows: number[]][] = [
  ['ascending', ascending],
  ['descending', [...ascending].reverse()],
  ['with gaps', ascending.filter((number) => number % 3 !== 1 && number % 17 > 5)],
  ['in both directions', [5, 6, 7, 6, 5, 400, 401, 399, 402, 0, 999, 998, 0, 1, 2, 999]],
  ['far apart', ascending.filter((number) => number % 50 === 0)],
]

for (const [title, rows] of orders)
  t.test(`rows are read unchanged: ${title}`, async (t) => {
    const reader = new RowReader(sstable)
    for (const number of rows) {
      const { sealed, seq } = reader.read(number, Number.POSITIVE_INFINITY)
      const isSame = Buffer.from(sealed).equals(rowOf(number).sealed) && seq === 10 + number
      if (!isSame) t.fail(`row ${number} differs`)
    }
    t.pass()
  })

t.test('a record is left unread if it has more bytes than the caller wants', async (t) => {
  const reader = new RowReader(sstable)
  t.match(reader.read(248, 1500), { unread: undefined })
  t.match(reader.read(249, 1500), { unread: 100_000 })
})

for (const [title, rows] of orders.slice(0, 2))
  t.test(`neighboring rows are read together: ${title}`, async (t) => {
    const small = rows.filter((number) => lengthOf(number) < 100_000).slice(0, 240)
    const bytes = small.reduce((sum, number) => sum + lengthOf(number), 0)
    const reader = new RowReader(sstable)
    for (const number of small.slice(0, 1)) sstable.entry(number)
    const before = files.reads
    for (const number of small) reader.read(number, Number.POSITIVE_INFINITY)
    // The reader reads the first row alone, and then pieces of 4, 16 and 64 KiB. The reader also reads a few blocks of
    // the index.
    t.ok(bytes < 100_000)
    t.ok(files.reads - before <= 12, `${files.reads - before} reads for ${small.length} rows`)
  })
