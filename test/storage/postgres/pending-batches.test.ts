import t from 'tap'
import { PendingBatches } from '../../../src/storage/postgres/pending-batches.js'

const open = () => new PendingBatches(new Uint8Array(16).fill(1), () => 5.5)
const entry = (tenant = 1) => ({ tenant, bytes: 1, time: 0 })
const sizes = (batches: readonly { tenant: number; entries: readonly object[] }[]) =>
  batches.map(({ tenant, entries }) => `${tenant}: ${entries.length}`)

t.test(
  'log entries of reads are collected in one batch for each tenant until the batches are closed',
  async (t) => {
    const batches = open()
    for (const tenant of [1, 2, 1]) batches.addRead(entry(tenant))
    const closed = batches.closeReads()
    t.strictSame(sizes(closed), ['1: 2', '2: 1'])
    t.equal(closed[0]!.entries[0]!.time, 5, 'the batch has the time of the clock')
    batches.addRead(entry())
    t.strictSame(sizes(batches.closeReads()), ['1: 2', '2: 1', '1: 1'])
    batches.removeReads(2)
    t.strictSame(sizes(batches.closeReads()), ['1: 1'])
  },
)

t.test(
  'a log entry of a read is not added to a batch if a commit has happened since the batch began',
  async (t) => {
    const batches = open()
    batches.addRead(entry())
    t.strictSame(sizes(batches.addCommit([entry(1), entry(2), entry(1)])), ['1: 2', '2: 1'])
    batches.addRead(entry())
    t.strictSame(sizes(batches.closeReads()), ['1: 1', '1: 1'])
  },
)

t.test(
  'each batch of log entries has a unique name and a later time than all batches before it',
  async (t) => {
    const batches = open()
    const made = Array.from({ length: 50 }, () => batches.addCommit([entry()])[0]!)
    t.equal(new Set(made.map(({ id }) => Buffer.from(id).toString('hex'))).size, 50)
    for (const [at, { written }] of made.slice(1).entries()) t.ok(written > made[at]!.written)
    t.ok(batches.nextMoment() > made.at(-1)!.written)
  },
)

t.test(
  '`oldest` is the oldest batch that is not stored, whether it has entries of reads or of commits',
  async (t) => {
    const batches = open()
    t.equal(batches.oldest, undefined)
    const [commit] = batches.addCommit([entry()])
    batches.addRead(entry())
    const [read] = batches.closeReads()
    t.strictSame([batches.oldest, batches.oldestOfReads], [commit, read])
    batches.remove([commit!])
    t.equal(batches.oldest, read)
    batches.removeReads(1)
    t.strictSame([batches.oldest, batches.oldestOfReads], [undefined, undefined])
  },
)
