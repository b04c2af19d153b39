import t from 'tap'
import { LOG_ROWS } from '../../../src/storage/engine.js'
import type { Plan } from '../../../src/storage/postgres/attempt.js'
import { ReadSet } from '../../../src/storage/postgres/read-set.js'
import type { FoundRow } from '../../../src/storage/postgres/read-sql.js'
import { CHECK, COUNT } from '../../../src/storage/postgres/write-sql.js'

const KIND = 1
const CACHED = 2
const name = (id: number, kind = KIND) => ({ kind, tenant: 1, id: new Uint8Array(16).fill(id) })
const key = (id: number, kind = KIND) => ({ kind, tenant: 1, id: new Uint8Array(8).fill(id) })
const found = (id: number, rev: number, kind = KIND) => ({ ...name(id, kind), rev }) as FoundRow

const open = (mode: Plan['mode'] = 'change') => new ReadSet(mode, new Set([CACHED]))
/** Formats each precondition as three words: its action, its id, and the revision that was read. */
const list = (reads: Pick<ReadSet, 'preconditions'>) =>
  [...reads.preconditions.values()].map(({ action, id, was }) =>
    [action === CHECK ? 'row' : action === COUNT ? 'key' : action, id[0], was].join(' '),
  )

t.test(
  'a unit that reads may send only one statement for rows that are not cached, and other plans any number',
  async (t) => {
    /**
     * The columns of the table are: plan, statements, expected, hasMoment, spansMoments. In the column of statements,
     * `c` reads cached rows and `r` reads other rows. In the column of expected results, `y` or `n` says whether the
     * statement may be sent.
     */
    const table: [Plan['mode'], string, string, hasMoment: boolean, spansMoments: boolean][] = [
      ['read', '', '', false, false],
      ['read', 'c', 'y', false, false],
      ['read', 'ccrcc', 'yyyyy', true, false],
      ['read', 'rr', 'yn', true, true],
      ['read', 'crcr', 'yyyn', true, true],
      ['snapshot', 'c', 'y', true, false],
      ['snapshot', 'crrr', 'yyyy', true, false],
      ['change', 'c', 'y', false, false],
      ['change', 'r', 'y', true, false],
      ['change', 'rcr', 'yyy', true, true],
    ]
    for (const [mode, statements, expected, hasMoment, spansMoments] of table) {
      const reads = open(mode)
      const allowed = [...statements].map((each) => (reads.beginStatement(each === 'c') ? 'y' : 'n')).join('')
      t.strictSame(
        [allowed, reads.hasMoment, reads.spansMoments],
        [expected, hasMoment, spansMoments],
        `${mode} ${statements}`,
      )
    }
  },
)

t.test(
  'the preconditions of a commit are the first revision of each row and the first count of each key',
  async (t) => {
    const reads = open()
    reads.addPage([found(1, 10), found(2, 20)] as never)
    reads.addRow(name(1), found(1, 11))
    reads.addRow(name(3), undefined)
    reads.addCount(key(7), 2)
    reads.addCount(key(7), 3)
    t.strictSame(list(reads), ['row 1 10', 'row 2 20', 'row 3 0', 'key 7 2'])
    t.strictSame(
      [reads.revisionOf(name(1)), reads.revisionOf(name(3)), reads.revisionOf(name(4))],
      [10, 0, undefined],
    )
    t.strictSame([reads.countOf(key(7)), reads.countOf(key(8))], [2, undefined])
  },
)

t.test(
  'cached rows and log rows are not preconditions of a commit, and each row is read only once',
  async (t) => {
    const reads = open()
    for (const kind of [CACHED, LOG_ROWS]) {
      reads.addRow(name(1, kind), found(1, 10, kind))
      reads.addPage([found(2, 20, kind)] as never)
      t.equal(reads.rowOf(name(1, kind))?.rev, 10)
    }
    t.strictSame(list(reads), [])
  },
)

t.test(
  'a unit remembers that a row is missing, and reads a row again after the row has changed',
  async (t) => {
    const reads = open()
    t.notOk(reads.hasRow(name(1)))
    reads.addRow(name(1), undefined)
    t.ok(reads.hasRow(name(1)))
    reads.forget(name(1))
    t.notOk(reads.hasRow(name(1)))
    t.strictSame(list(reads), [], 'the change of the row is compared instead of the read')
    reads.requireRevision(name(1), 5)
    t.strictSame(list(reads), ['row 1 5'])
  },
)

t.test('the set of reads returns the counted keys of one kind or of all kinds, each key once', async (t) => {
  const reads = open()
  reads.addRow(name(1), found(1, 10))
  for (const kind of [KIND, 3]) reads.addCount(key(kind, kind), 0)
  const taken = (kind?: number) => [...reads.takeCounts(kind).values()].map(({ id }) => id[0])
  t.strictSame(taken(3), [3])
  t.strictSame(taken(3), [])
  t.strictSame(taken(), [KIND])
  t.strictSame(list(reads), ['row 1 10'])
  reads.clear()
  t.strictSame(list(reads), [])
  t.notOk(reads.hasRow(name(1)))
})
