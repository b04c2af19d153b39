/** The rows of the form that edits an application. */
import t from 'tap'
import * as drafts from '../../src/page/draft.js'

const counter = () => {
  let key = 0
  return () => ++key
}
const rule = (priority: number, more: object = {}) => ({
  ...{ priority, container: `/c/${priority}/`, transform: 'mask', permissions: ['token:read'] },
  ...more,
})
const numbersOf = (rows: drafts.RuleRow[]) =>
  rows.map(({ rule: { priority, container } }) => [priority, container])

t.test('rows are in the order of their priorities, and rows without a priority come last', async (t) => {
  const rows = drafts.toRows([rule(7), rule(2), { container: '/x/' }, rule(3)], counter())
  t.same(
    rows.map(({ rule: { priority } }) => priority),
    [2, 3, 7, undefined],
  )
  t.equal(new Set(rows.map(({ key }) => key)).size, 4)
  t.same(drafts.toRows(undefined, counter()), [])
})

t.test('a new rule comes last', async (t) => {
  const next = counter()
  t.match(drafts.addRule([], 1), [{ key: 1, rule: { priority: 1, container: '/', transform: 'mask' } }])
  const rows = drafts.toRows([rule(7), { container: '/x/' }], next)
  t.match(drafts.addRule(rows, 9)[2], { key: 9, rule: { priority: 8 } })
})

t.test(
  'moving a rule exchanges the priorities of two rules, and every other rule keeps its priority',
  async (t) => {
    const rows = drafts.toRows([rule(2), rule(5), rule(9)], counter())
    const down = drafts.moveRule(rows, rows[0]!.key, 1)
    t.same(numbersOf(down), [
      [2, '/c/5/'],
      [5, '/c/2/'],
      [9, '/c/9/'],
    ])
    t.same(drafts.moveRule(down, rows[0]!.key, -1), rows, 'moving back restores the rules')
    t.same(drafts.moveRule(rows, rows[0]!.key, -1), rows, 'the first rule stays')
    t.same(drafts.moveRule(rows, rows[2]!.key, 1), rows, 'the last rule stays')
    t.same(drafts.moveRule(rows, 99, 1), rows)
  },
)

t.test('properties that the form does not support are kept', async (t) => {
  const strange: Record<string, unknown> & { permissions: unknown[] } = {
    ...rule(1),
    conditions: [{ attribute: 'id', operator: 'equals', value: 'x' }],
    only_at_night: true,
    transform: 'rot13',
    permissions: ['token:read', 'token:teleport', 7],
  }
  const [row] = drafts.toRows([strange], counter())
  t.same(drafts.unknownPart(row!.rule), { conditions: strange.conditions, only_at_night: true })
  t.equal(drafts.unknownPart(rule(1)), undefined)
  const [changed] = drafts.setAttribute([row!], row!.key, 'container', '/pci/')
  t.same(changed!.rule, { ...strange, container: '/pci/' })
  t.same(drafts.toggle(strange.permissions, 'token:use', true), [
    'token:read',
    'token:teleport',
    7,
    'token:use',
  ])
  t.same(drafts.toggle(strange.permissions, 'token:read', false), ['token:teleport', 7])
})

t.test('an empty attribute is removed from its rule, and no other rule changes', async (t) => {
  const rows = drafts.toRows([rule(1, { description: 'd' }), rule(2)], counter())
  const [first, second] = drafts.setAttribute(rows, rows[0]!.key, 'description', undefined)
  t.same(first!.rule, rule(1))
  t.equal(second, rows[1])
})

t.test('for a draft that the form cannot show, `whyNotShown` returns the reason', async (t) => {
  t.equal(drafts.whyNotShown({}), undefined)
  t.equal(drafts.whyNotShown({ rules: [{}], permissions: [] }), undefined)
  t.equal(drafts.whyNotShown({ rules: {} as never }), 'rules is not a list')
  t.equal(drafts.whyNotShown({ permissions: 'x' as never }), 'permissions is not a list')
  t.equal(drafts.whyNotShown({ rules: [1] }), 'a rule is not an object')
})

t.test('a date in a form is a time in UTC, and a text that is no date is sent unchanged', async (t) => {
  t.equal(drafts.dateOf('2090-01-15T09:00'), '2090-01-15T09:00:00.000Z')
  t.equal(drafts.dateOf('2090-01-15T09:00:30'), '2090-01-15T09:00:30.000Z')
  t.equal(drafts.dateOf(''), undefined)
  t.equal(drafts.dateOf('12090-01-15T09:00'), '12090-01-15T09:00')
})
