import t from 'tap'
import { prefixOf } from '../../../src/storage/postgres/row-name.js'
import { WriteSet } from '../../../src/storage/postgres/write-set.js'
import { createChange, INSERT, REPLACE } from '../../../src/storage/postgres/write-sql.js'

const name = (id: number, kind = 1, tenant = 1) => ({ kind, tenant, id: new Uint8Array(16).fill(id) })
const pending = { id: new Uint8Array(16), tenant: 1, chain: 2, written: 5, sealed: new Uint8Array(1) }

function filled() {
  const writes = new WriteSet()
  writes.add(createChange(INSERT, name(1)))
  writes.add(createChange(REPLACE, name(2, 2), 7))
  writes.addPending(pending, false)
  return writes
}

t.test('until the changes of a unit are sent, they can be found by a prefix of their names', async (t) => {
  const writes = filled()
  const table: [prefix: string, isFound: boolean][] = [
    ['', true],
    [prefixOf({ kind: 1, tenant: 1 }), true],
    [prefixOf({ kind: 2, tenant: 1 }), true],
    [prefixOf({ kind: 1, tenant: 2 }), false],
    [prefixOf({ kind: 1, tenant: 11 }), false],
    [prefixOf({ kind: 3, tenant: 1 }), false],
  ]
  for (const [prefix, isFound] of table) t.equal(writes.hasUnsentWith(prefix), isFound, prefix)
  t.strictSame([writes.hasUnsent(name(1)), writes.hasUnsent(name(3))], [true, false])
  writes.take()
  t.notOk(writes.hasUnsentWith(''))
})

t.test(
  'changes of one kind, or of all kinds, are taken in their order, and each change is taken once',
  async (t) => {
    const writes = filled()
    writes.add(createChange(INSERT, name(3)))
    const taken = (kind?: number) => [...writes.take(kind).values()].map(({ id }) => id[0])
    t.strictSame(taken(1), [1, 3])
    t.strictSame(taken(1), [])
    // The pending log entries of chain 2 do not count as a row of kind 2.
    t.strictSame(taken(2), [2])
    t.strictSame(taken(), [0])
  },
)

t.test('pending log entries do not count as changed rows', async (t) => {
  const writes = new WriteSet()
  writes.addPending(pending, true)
  t.notOk(writes.hasChangedRows())
  t.strictSame(writes.unsentRows(), [])
  t.ok(writes.hasUnsentWith(''))
})

t.test('a kind of rows still counts as changed after its changes are sent', async (t) => {
  const writes = filled()
  t.strictSame(
    writes.unsentRows().map(({ was }) => was),
    [0, 7],
  )
  writes.take()
  writes.addKinds([9])
  t.strictSame(
    [1, 2, 9, 3].map((kind) => writes.hasChanged(kind)),
    [true, true, true, false],
  )
  t.ok(writes.hasChangedRows())
})
