import fc from 'fast-check'
import t from 'tap'
import type { TakenBatches } from '../../src/domain/records/log-record.js'
import { batchKey, isTaken, takeBatches } from '../../src/storage/taken-batches.js'

const NONE: TakenBatches = { until: 0, by: {} }
const maker = (index: number) => Uint8Array.from([index >> 8, index & 255, ...Array(14).fill(1)])
const name = (index: number, number: number, at = number) => batchKey(maker(index), number, at)

t.test(
  'a log chain stores exactly the batches that it has taken, whatever the order of the batches',
  async (t) => {
    const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 30 })
    fc.assert(
      fc.property(numbers, numbers, (first, second) => {
        const batches = (found: number[]) => found.map((number) => name(1, number))
        const chains = [takeBatches(NONE, batches(first)), takeBatches(NONE, batches(second))]
        for (let number = 1; number <= 41; number++) {
          const isIn = first.includes(number) || second.includes(number)
          t.equal(isTaken(chains, name(1, number)), isIn)
          t.equal(isTaken(chains, name(2, number)), false)
        }
      }),
      { numRuns: 50 },
    )
    const { by } = takeBatches(NONE, [name(1, 3), name(1, 1), name(1, 2), name(1, 7)])
    t.equal(JSON.stringify(Object.values(by)), '[{"at":7,"ranges":[[1,3],[7,7]]}]')
    t.equal(
      isTaken([takeBatches(NONE, [name(1, 2 ** 40 - 1, 2 ** 41)])], name(1, 2 ** 40 - 1, 2 ** 41)),
      true,
    )
  },
)

t.test('a log chain remembers a limited number of batches', async (t) => {
  let taken = NONE
  for (let number = 1; number < 400; number += 2) taken = takeBatches(taken, [name(1, number)])
  t.equal(taken.by['0001010101']!.ranges.length, 64)
  t.equal(isTaken([taken], name(1, 398)), false)
  // Only the last 64 of the numbers 1, 3 … 399 are remembered: the numbers from 273 on.
  for (const number of [1, 2, 271, 272])
    t.equal(isTaken([taken], name(1, number)), undefined, 'the batch is too old to be known')
  t.strictSame([isTaken([taken], name(1, 273)), isTaken([taken], name(1, 274))], [true, false])
  const other = takeBatches(NONE, [name(1, 2)])
  t.equal(isTaken([taken, other], name(1, 2)), true, 'another chain knows the batch')
  t.equal(isTaken([taken, other], name(1, 4)), undefined)
  taken = takeBatches(
    taken,
    Array.from({ length: 63 }, (_, index) => name(1, 274 + 2 * index)),
  )
  t.equal(taken.by['0001010101']!.ranges.length, 1)
  t.equal(
    isTaken([taken], name(1, 272)),
    undefined,
    'merged ranges do not move the limit below which batches are unknown',
  )
  for (let index = 2; index < 300; index++) taken = takeBatches(taken, [name(index, 1, 1000 + index)])
  t.equal(Object.keys(taken.by).length, 256)
  t.equal(isTaken([taken], name(1, 1)), undefined, 'the maker of the batch was forgotten')
  t.equal(
    isTaken([taken], name(1, 500, 2000)),
    false,
    'a later batch of the forgotten maker is known not to be taken',
  )
  t.equal(isTaken([taken], name(299, 1, 1299)), true)
})
