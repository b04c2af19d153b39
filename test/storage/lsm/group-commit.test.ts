/** Group commit removes a change from memory as soon as the tree contains the change. */
import t from 'tap'
import { toText } from '../../../src/storage/bytes.js'
import { GroupCommit } from '../../../src/storage/lsm/group-commit.js'
import { Memtable } from '../../../src/storage/lsm/memtable.js'
import { ChangeCounters, type View } from '../../../src/storage/lsm/query.js'
import { Transaction } from '../../../src/storage/lsm/transaction.js'
import type { LsmTree } from '../../../src/storage/lsm/tree.js'
import type { Change } from '../../../src/storage/rows/frame.js'
import { createCounters } from '../../../src/storage/time.js'

const KIND = 3
const idOf = (number: number) => new Uint8Array(16).fill(number)

/** A tree that keeps its changes in memory, and contains them only after `publish`. */
function createTree() {
  const memtable = new Memtable()
  const tree = {
    counters: createCounters(),
    pending: [] as Change[],
    isUnsynced: false,
    manifest: { isSound: true },
    view: (): View => {
      const nothing = { uncommitted: 0, pendingEntries: [], sstables: [] }
      return { ...nothing, memtables: [memtable], changeCounters: new ChangeCounters() }
    },
    append: (changes: readonly Change[]) => {
      tree.pending.push(...changes)
      tree.isUnsynced = true
    },
  }
  const publish = () => {
    for (const change of tree.pending.splice(0)) memtable.apply(change)
    tree.isUnsynced = false
  }
  return { tree, publish }
}

t.test('after a sync, only the changes that are not in the log stay in memory', async (t) => {
  const { tree, publish } = createTree()
  const groupCommit = new GroupCommit(
    tree as unknown as LsmTree,
    () => 0,
    () => {},
  )
  const put = (number: number) => {
    const transaction = new Transaction(groupCommit.view(), groupCommit.counters, 0)
    transaction.put({
      ...{ kind: KIND, tenant: 1, id: idOf(number), modified: 0, expires: 0, keys: new Uint8Array() },
      seal: () => new Uint8Array(40),
    })
    transaction.end()
    groupCommit.enqueue(transaction, 'soon', { done: () => {}, fail: (error) => t.fail(String(error)) })
  }
  /**
   * Returns the rows in each memtable that a writer sees: first the memtable of the commit, then the memtable of the
   * tree.
   */
  const rows = () =>
    groupCommit
      .view()
      .memtables.map((memtable) =>
        [1, 2, 3].filter((number) => memtable.entry(toText(idOf(number))) !== undefined),
      )
  put(1)
  put(2)
  t.equal(await groupCommit.commit(), undefined)
  t.strictSame(rows(), [[1, 2], []], 'in the log and unsynced')
  // Under steady writes, each sync ends while a newer change is not yet in the log.
  put(3)
  groupCommit.endSync(publish)
  t.strictSame(rows(), [[3], [1, 2]])
  t.equal(await groupCommit.commit(), undefined)
  groupCommit.endSync(publish)
  t.strictSame(rows(), [[], [1, 2, 3]])
})
