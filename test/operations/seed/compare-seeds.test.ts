/** Which records of two seeds are counted as missing, added or changed. */
import t from 'tap'
import { compareSeeds, type Difference } from '../../../src/operations/seed/compare-seeds.js'
import type { Item } from '../../../src/operations/seed/seed-items.js'

const rule = (id: string) => ({ id, name: 'shop', rules: [{ container: '/', transform: 'mask' }] })

const CASES: [title: string, first: Item[], second: Item[], expected: Difference[]][] = [
  ['equal lists have no difference', [{ name: 'a' }], [{ name: 'a' }], []],
  [
    'the order of the items does not matter',
    [{ name: 'a' }, { name: 'b' }],
    [{ name: 'b' }, { name: 'a' }],
    [],
  ],
  [
    'the order of the attributes does not matter',
    [{ name: 'a', data: { x: 1, y: 2 } }],
    [{ data: { y: 2, x: 1 }, name: 'a' }],
    [],
  ],
  [
    'a record that only the first seed has counts as missing',
    [{ name: 'a' }],
    [],
    [{ list: 'items', name: 'a', difference: 'missing' }],
  ],
  [
    'a record that only the second seed has counts as added',
    [],
    [{ email: 'ada@example.com' }],
    [{ list: 'items', name: 'ada@example.com', difference: 'added' }],
  ],
  [
    'records with the same id are compared, and the changed attributes are named',
    [{ id: '1', name: 'a', type: 'private', url: 'x' }],
    [{ id: '1', name: 'b', type: 'private', url: 'y' }],
    [{ list: 'items', name: 'a', difference: 'changed', attributes: ['name', 'url'] }],
  ],
  [
    'an attribute that only one of two records has is a changed attribute',
    [{ id: '1', name: 'a' }],
    [{ id: '1', name: 'a', url: 'y' }],
    [{ list: 'items', name: 'a', difference: 'changed', attributes: ['url'] }],
  ],
  [
    'an item without an id is equal to a record with its attributes',
    [{ name: 'a' }],
    [{ id: '7', name: 'a' }],
    [],
  ],
  [
    'an item without an id and a key is compared with the record of the same name, except id and key',
    [{ name: 'a', type: 'private' }],
    [{ id: '7', key: 'drawn', name: 'a', type: 'public' }],
    [{ list: 'items', name: 'a', difference: 'changed', attributes: ['type'] }],
  ],
  [
    'two records with one name are told apart by their ids',
    [rule('1'), rule('2')],
    [rule('2'), { ...rule('1'), rules: [] }],
    [{ list: 'items', name: 'shop', difference: 'changed', attributes: ['rules'] }],
  ],
  [
    'if the first seed has two equal items and the second seed has one record, one item is missing',
    [{ name: 'a' }, { name: 'a' }],
    [{ id: '1', name: 'a' }],
    [{ list: 'items', name: 'a', difference: 'missing' }],
  ],
  [
    'an association is named by its two tokens',
    [{ parent_id: 'card', child_id: 'note' }],
    [],
    [{ list: 'items', name: 'card note', difference: 'missing' }],
  ],
]

for (const [title, first, second, expected] of CASES)
  t.test(title, async (t) => {
    t.same(compareSeeds({ items: first }, { items: second }, ['items']), expected)
  })

t.test(
  'a list that only one seed has is compared with an empty list, and other lists are not compared',
  async (t) => {
    const differences = compareSeeds({ rules: [{ name: 'a' }] }, { notes: [{ name: 'b' }] }, ['rules'])
    t.same(differences, [{ list: 'rules', name: 'a', difference: 'missing' }])
  },
)
