/** Tests that a copy of rows is accepted only if the rows that are read back from it equal the original rows. */
import t from 'tap'
import type { Row } from '../../src/storage/engine.js'
import { copyAndVerify } from '../../src/storage/vault-rows.js'
import { digest } from './powers.js'

const mac = (bytes: Uint8Array) => digest(Buffer.from(bytes).toString('hex'), 16)
const rows: Row[] = ['a', 'b', 'c'].map((name, index) => ({
  ...{ kind: 3, tenant: 1, id: digest(name, 16), seq: index + 1, rev: index + 1, created: 1, modified: 0 },
  ...{ expires: 0, keys: digest('all', 8), sealed: Buffer.from(name) },
}))

/** Copies rows to a store that later returns `changed(rows)`. */
function copy(changed: (rows: Row[]) => Row[], progress = (_: number, __: number) => {}) {
  const there: Row[] = []
  async function* sent() {
    yield* rows
  }
  const target = {
    async put(given: AsyncIterable<Row>) {
      for await (const row of given) there.push(row)
    },
    async *read() {
      yield* changed(there)
    },
  }
  return copyAndVerify({ count: 3, rows: sent }, target, mac, progress)
}

t.test('a copy of rows returns the number and the digest of the rows, whatever their order', async (t) => {
  const steps: number[][] = []
  const turned = (all: Row[]) => all.toReversed().map((row) => ({ ...row, keys: new Uint8Array(0) }))
  const arrived = await copy(turned, (...step) => steps.push(step))
  t.equal(arrived.count, 3)
  t.match(arrived.digest, /^[0-9a-f]{32}$/)
  t.strictSame(steps, [[3, 3]])
})

t.test('a copy of rows that differs from the original is refused', async (t) => {
  const changes = [{ seq: 9 }, { rev: 9 }, { expires: 9 }, { tenant: 2 }, { sealed: Buffer.from('x') }]
  for (const changed of [
    (all: Row[]) => all.slice(1),
    (all: Row[]) => [...all, all[0]!],
    ...changes.map((change) => ([first, ...rest]: Row[]) => [{ ...first!, ...change }, ...rest]),
  ])
    await t.rejects(copy(changed), { code: 'storage_failed' })
})
