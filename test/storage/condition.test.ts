import fc from 'fast-check'
import t from 'tap'
import { simplify } from '../../src/storage/condition.js'
import type { Condition } from '../../src/storage/store.js'

const a: Condition = { field: 'type', value: 'card' }
const b: Condition = { field: 'metadata', value: 'x' }
const c: Condition = { field: 'type', value: 'token' }

const CASES: [title: string, given: Condition | undefined, expected: Condition | undefined][] = [
  ['no condition', undefined, undefined],
  ['a field', a, a],
  ['and of one', { and: [a] }, a],
  ['and of nothing', { and: [] }, undefined],
  ['nested and', { and: [{ and: [a] }, { and: [] }] }, a],
  ['and of two', { and: [{ and: [a, b] }, c] }, { and: [a, b, c] }],
  ['a repeated field', { and: [a, { and: [a, b] }] }, { and: [a, b] }],
  ['or of one', { or: [{ or: [a] }] }, a],
  ['or of nothing matches nothing', { or: [] }, { or: [] }],
  ['or with everything', { or: [a, { and: [] }] }, undefined],
  ['nested or', { or: [a, { or: [b, a] }] }, { or: [a, b] }],
  ['and with an or of nothing', { and: [a, { or: [] }] }, { and: [a, { or: [] }] }],
  ['not of everything matches nothing', { not: { and: [{ and: [] }] } }, { not: { and: [] } }],
  ['not of nested and', { not: { and: [{ and: [a] }] } }, { not: a }],
]

for (const [title, given, expected] of CASES)
  t.test(`a condition is simplified: ${title}`, async (t) => t.strictSame(simplify(given), expected))

/** Returns whether a record whose fields have these values matches the condition. */
function matches(condition: Condition | undefined, values: ReadonlySet<string>): boolean {
  if (condition === undefined) return true
  if ('field' in condition) return values.has(condition.value)
  if ('and' in condition) return condition.and.every((part) => matches(part, values))
  if ('or' in condition) return condition.or.some((part) => matches(part, values))
  if ('not' in condition) return !matches(condition.not, values)
  throw new Error('not generated')
}

t.test('a simplified condition matches the same records as the original condition', async (t) => {
  const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
    condition: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(...'wxyz').map((value) => ({ field: 'f', value })),
      fc.array(tie('condition'), { maxLength: 3 }).map((and) => ({ and })),
      fc.array(tie('condition'), { maxLength: 3 }).map((or) => ({ or })),
      tie('condition').map((not) => ({ not })),
    ),
  }))
  const record = fc.subarray([...'wxyz']).map((values) => new Set(values))
  fc.assert(
    fc.property(
      condition,
      record,
      (given, values) => matches(simplify(given), values) === matches(given, values),
    ),
    { numRuns: 2000 },
  )
  t.pass()
})
