/** The proof of a log: what it finds when somebody with every key but the chain's rewrites the vault's files. */
import t from 'tap'
import type { LogDraft } from '../../src/storage/engine.js'
import { openFileEngine } from '../../src/storage/engines/file-engine.js'
import { copyCounters } from '../../src/storage/lsm/counters.js'
import { createLsmTree } from '../../src/storage/lsm/recovery.js'
import type { Change } from '../../src/storage/lsm/sstable/row-change.js'
import { Transaction } from '../../src/storage/lsm/transaction.js'
import type { LogCheck } from '../../src/storage/store.js'
import { writeHeader } from '../../src/storage/vault-file.js'
import { FakeFiles } from './fake-files.js'
import { createClock, digest, engineKeys, repeatableRandom, testHeader } from './powers.js'

const query = { kind: 255, tenant: 1, all: digest('logs', 8) }

function logRow(text: string): LogDraft {
  const sealed = new Uint8Array(Buffer.from(text))
  return { ...query, keys: query.all, seal: () => ({ id: digest(text, 16), sealed }) }
}

/** Verifies a log of nine records that lies in tables as `tamper` left it, in a vault that is whole otherwise. */
async function verifyAfter(tamper: (changes: Change[]) => Change[]): Promise<LogCheck> {
  const random = repeatableRandom()
  const files = new FakeFiles()
  files.makeDirectory('/vault')
  files.makeDirectory('/vault/segments')
  const keys = engineKeys(random)
  const notice = () => undefined
  const clock = createClock()
  const options = { files, directory: '/vault', header: testHeader(), keys, random, clock, notice }
  const tree = await createLsmTree({ ...options, cacheBytes: 1024 })
  const counters = copyCounters(tree.counters)
  const transaction = new Transaction(tree.view(), counters, keys.chain, 1_000)
  for (let index = 1; index <= 9; index++) await transaction.append(logRow(`row ${index}`))
  transaction.advance(counters)
  tree.append(tamper([...transaction.changes]), counters, true)
  await tree.flush()
  tree.close()
  await writeHeader(files, '/vault', random, testHeader())
  const engine = await openFileEngine({ ...options, role: 'command' })
  const check = await engine.verifyLogs(query, () => true)
  await engine.close()
  return check
}

/** The row at `at` with the contents of another, in its own place. */
function withContents(changes: readonly Change[], at: number, from: Partial<Change['row']>): Change {
  const { kind, row } = changes[at]!
  const { id = row.id, sealed = row.sealed, chain = row.chain } = from
  return { kind, row: { ...row, id, sealed, ...(chain && { chain }) } }
}

t.test('an untouched log is whole', async (t) => {
  t.strictSame(await verifyAfter((changes) => changes), { count: 9 })
})

t.test('finds a record that was changed', async (t) => {
  const forged = new Uint8Array(Buffer.from('row X'))
  const check = await verifyAfter((changes) => changes.with(4, withContents(changes, 4, { sealed: forged })))
  t.strictSame(check, { count: 9, brokenAt: 5 })
})

t.test('finds a record that was dropped', async (t) => {
  t.strictSame(await verifyAfter((changes) => changes.toSpliced(4, 1)), { count: 8, brokenAt: 5 })
})

t.test('finds a record that was put in', async (t) => {
  const check = await verifyAfter((changes) => {
    const copy = { ...changes[8]!.row, seq: 10, id: digest('one more', 16) }
    return [...changes, { kind: changes[8]!.kind, row: copy }]
  })
  t.strictSame(check, { count: 10, brokenAt: 10 })
})

t.test('finds two records that were exchanged', async (t) => {
  const check = await verifyAfter((changes) => {
    const [left, right] = [changes[2]!.row, changes[6]!.row]
    return changes.with(2, withContents(changes, 2, right)).with(6, withContents(changes, 6, left))
  })
  t.strictSame(check, { count: 9, brokenAt: 3 })
})

t.test('finds that the newest records are missing', async (t) => {
  t.strictSame(await verifyAfter((changes) => changes.slice(0, 6)), { count: 6, brokenAt: 7 })
})

t.test('finds that the oldest records are missing', async (t) => {
  t.strictSame(await verifyAfter((changes) => changes.slice(3)), { count: 6, brokenAt: 1 })
})
