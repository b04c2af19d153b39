import t from 'tap'
import { StateCheck } from '../../../src/storage/postgres/state-check.js'

const state = (changes: number, generation = 1) => ({
  changes,
  generation,
  times: { time: 0, last: 0, since: 0, until: 0 },
})

t.test(
  'an answer is accepted unless a cached record that the attempt used, or a key slot, has changed',
  async (t) => {
    /** `uses` is true if the attempt has used cached records. */
    const table: [uses: boolean, changes: number, generation: number, isAccepted: boolean][] = [
      [false, 5, 1, true],
      [false, 6, 1, true],
      [false, 5, 2, false],
      [true, 5, 1, true],
      [true, 6, 1, false],
      [true, 4, 1, false],
      [true, 5, 2, false],
    ]
    for (const [uses, changes, generation, isAccepted] of table) {
      const check = new StateCheck(state(5))
      if (uses) t.equal(check.useCache(), 5)
      t.equal(check.accept(state(changes, generation)), isAccepted, `${[uses, changes, generation]}`)
      t.equal(check.state.changes, isAccepted ? changes : 5)
    }
  },
)

t.test('a commit requires an unchanged counter only if the attempt used cached records', async (t) => {
  const check = new StateCheck(state(5))
  t.strictSame(check.expected, { generation: 1, changes: -1 })
  check.accept(state(6))
  t.equal(check.useCache(), 6, 'the required counter is the counter of the last answer')
  t.strictSame(check.expected, { generation: 1, changes: 6 })
})

t.test(
  'if no answer has confirmed the cached records yet, a separate statement must confirm them',
  async (t) => {
    const check = new StateCheck(state(5))
    t.notOk(check.needsConfirmation)
    check.useCache()
    t.ok(check.needsConfirmation)
    check.accept(state(5))
    t.notOk(check.needsConfirmation)
  },
)
